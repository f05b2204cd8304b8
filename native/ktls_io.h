/* SPDX-License-Identifier: MIT
 *
 * What happens on an established connection: reading, writing, closing, key updates.
 */
#ifndef KTLS_IO_H
#define KTLS_IO_H

#include "ktls_connection.h"
#include "ktls_export.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* Whether OpenSSL sends (receives) through the kernel; false where the BIO is absent. */
bool KtlsIo_IsSendOffloaded(const KtlsOpenSsl* api, const SSL* ssl);
bool KtlsIo_IsReceiveOffloaded(const KtlsOpenSsl* api, const SSL* ssl);

/* After SSL_set_fd: a record that cannot be decrypted is answered with its alert, and a client's session survives the
 * end of its connection. */
void KtlsIo_WatchReads(const KtlsOpenSsl* api, KtlsConnection* connection);

/* As KtlsConnection_Enter, for calls that need a finished handshake. *ended: a failure of before is repeated. */
int32_t KtlsIo_Enter(
    const KtlsConnection* connection, int32_t socket, KtlsResult* result, const KtlsOpenSsl** api, bool* ended);

/* SSL_write, and its result. */
void KtlsIo_Write(const KtlsOpenSsl* api, SSL* ssl, const uint8_t* buffer, int32_t length, KtlsResult* result);

/* After each of those calls: any of them may have written the queued KeyUpdate, and any may have ended the connection.
 */
void KtlsIo_Settle(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result);

#endif

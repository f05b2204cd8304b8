/* SPDX-License-Identifier: MIT
 *
 * A client's certificate after the handshake (RFC 8446, 4.6.2): the server's request, and the pause of a client that
 * meets one.
 */
#ifndef KTLS_POSTHANDSHAKE_H
#define KTLS_POSTHANDSHAKE_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* Around the SSL_read of a client. Where OpenSSL has sent close_notify it would not ignore a request, as it means to:
 * it changes its sending key back to the handshake's, whose first nonce is used up, and answers under that. */
void KtlsPostHandshake_HideClose(const KtlsOpenSsl* api, KtlsConnection* connection);
void KtlsPostHandshake_ShowClose(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Whether this libssl can ask, answer, and ask without new tickets. */
bool KtlsPostHandshake_IsSupported(const KtlsOpenSsl* api);

/* Within OpenSSL's callback of a client: the request came after the handshake. */
bool KtlsPostHandshake_IsRequest(const KtlsOpenSsl* api, const KtlsConnection* connection);

/* What that callback returns: -1 until a Read has taken the request up, then 1; 0 after close_notify: no answer. */
int KtlsPostHandshake_Pause(const KtlsOpenSsl* api, KtlsConnection* connection);

/* KtlsNative_Write in the pause: what OpenSSL has begun to write goes first, and here alone it can. */
void KtlsPostHandshake_FinishWrite(
    const KtlsOpenSsl* api, KtlsConnection* connection, const uint8_t* buffer, int32_t length, KtlsResult* result);

/* At the beginning of a Read, which takes up a request it had paused at. false: the answer to a request of this server
 * must not meet it, who brings no judge. */
bool KtlsPostHandshake_MayRead(const KtlsOpenSsl* api, KtlsConnection* connection);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Wrappers of OpenSSL calls. They repeat the call after EINTR and fill the result.
 */
#ifndef KTLS_CALL_H
#define KTLS_CALL_H

#include "ktls_export.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* Calls SSL_do_handshake. writes is as for KtlsResult_Complete. */
void KtlsCall_DoHandshake(const KtlsOpenSsl* api, SSL* ssl, bool writes, KtlsResult* result);

/* Calls SSL_write. */
void KtlsCall_Write(const KtlsOpenSsl* api, SSL* ssl, const uint8_t* buffer, int32_t length, KtlsResult* result);

#endif

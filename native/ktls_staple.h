/* SPDX-License-Identifier: MIT
 *
 * OCSP stapling (RFC 6066, 8): the response that a server staples, and the client's request for one.
 */
#ifndef KTLS_STAPLE_H
#define KTLS_STAPLE_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

/* Sets the status request callback of a server context, which staples the response of KtlsNative_SetOcspResponse. */
void KtlsStaple_SetCallback(const KtlsOpenSsl* api, SSL_CTX* context);

/* Makes a client request a response, as .NET does on every SSL. */
void KtlsStaple_Request(const KtlsOpenSsl* api, const KtlsConnection* connection);

/* Returns KTLS_STAPLE_*. */
int32_t KtlsStaple_GetState(const KtlsOpenSsl* api, const KtlsConnection* connection);

#endif

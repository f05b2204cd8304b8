/* SPDX-License-Identifier: MIT
 *
 * OCSP stapling on a server (RFC 6066, 8).
 */
#ifndef KTLS_STAPLE_H
#define KTLS_STAPLE_H

#include "ktls_openssl.h"

/* Sets the status request callback of a server context, which staples the response of KtlsNative_SetOcspResponse. */
void KtlsStaple_SetCallback(const KtlsOpenSsl* api, SSL_CTX* context);

#endif

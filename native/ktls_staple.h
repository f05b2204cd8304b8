/* SPDX-License-Identifier: MIT
 *
 * A server's OCSP response, stapled to its certificate (RFC 6066, 8).
 */
#ifndef KTLS_STAPLE_H
#define KTLS_STAPLE_H

#include "ktls_openssl.h"

/* Lets the connections of this server context staple what KtlsNative_SetOcspResponse gave them. */
void KtlsStaple_Allow(const KtlsOpenSsl* api, SSL_CTX* context);

#endif

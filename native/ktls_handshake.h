/* SPDX-License-Identifier: MIT
 *
 * The handshake, and the judgement on the peer's certificate in the middle of it.
 */
#ifndef KTLS_HANDSHAKE_H
#define KTLS_HANDSHAKE_H

#include "ktls_openssl.h"

/* SSL_CTX_set_cert_verify_callback of every context. Refuses outside KtlsNative_Handshake and
 * KtlsNative_RequestCertificate, which bring the judge. */
int KtlsHandshake_VerifyPeer(X509_STORE_CTX* store, void* argument);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The handshake, and the validation of the peer's certificate during it.
 */
#ifndef KTLS_HANDSHAKE_H
#define KTLS_HANDSHAKE_H

#include "ktls_openssl.h"

/* The certificate verify callback of every context (SSL_CTX_set_cert_verify_callback). It rejects every chain outside
 * KtlsNative_Handshake and KtlsNative_RequestCertificate, because only they have a KtlsVerifyCallback. */
int KtlsHandshake_OnVerify(X509_STORE_CTX* store, void* argument);

/* Sets the callback of a client context for the end of the server's first flight, where a late verdict is made. */
void KtlsHandshake_SetFlightCallback(const KtlsOpenSsl* api, SSL_CTX* context);

#endif

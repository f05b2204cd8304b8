/* SPDX-License-Identifier: MIT
 *
 * The certificate a client shows: asked for in the middle of the handshake, given by the caller.
 */
#ifndef KTLS_CERTIFICATE_H
#define KTLS_CERTIFICATE_H

#include "ktls_export.h"
#include "ktls_openssl.h"

/* NULL where the blob is no certificate; else to be given to X509_free. */
X509* KtlsCertificate_Decode(const KtlsOpenSsl* api, const KtlsBlob* blob);

/* SSL_CTX_set_cert_cb of client contexts: a CertificateRequest has come. Not SSL_CTX_set_client_cert_cb, which is
 * passed over where the context has a certificate, and has no room for a chain. */
int KtlsCertificate_OnRequest(SSL* ssl, void* argument);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The certificate of a client, which the caller selects when the server requests it.
 */
#ifndef KTLS_CERTIFICATE_H
#define KTLS_CERTIFICATE_H

#include "ktls_export.h"
#include "ktls_openssl.h"

/* Decodes a certificate. The caller must pass it to X509_free. Returns NULL if the blob is not a certificate. */
X509* KtlsCertificate_Decode(const KtlsOpenSsl* api, const KtlsBlob* blob);

/* The certificate callback of client contexts (SSL_CTX_set_cert_cb), which runs on a CertificateRequest. The callback
 * of SSL_CTX_set_client_cert_cb is not used: OpenSSL does not call it if the context has a certificate, and it cannot
 * return a chain. */
int KtlsCertificate_OnCertificateRequest(SSL* ssl, void* argument);

#endif

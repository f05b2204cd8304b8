/* SPDX-License-Identifier: MIT
 *
 * Post-handshake authentication (RFC 8446, 4.6.2): the CertificateRequest of a server, and the pause of a client that
 * receives one.
 */
#ifndef KTLS_POSTHANDSHAKE_H
#define KTLS_POSTHANDSHAKE_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* Clear SSL_SENT_SHUTDOWN before the SSL_read of a client, and set it again afterwards. OpenSSL intends to ignore a
 * CertificateRequest after it has sent close_notify. In fact it resets its sending key to the handshake key, whose
 * first nonce is already used, and responds under that key. */
void KtlsPostHandshake_HideSentShutdown(const KtlsOpenSsl* api, KtlsConnection* connection);
void KtlsPostHandshake_RestoreSentShutdown(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Returns whether a CertificateRequest of a client context arrived after the handshake. */
bool KtlsPostHandshake_IsRequest(const KtlsOpenSsl* api, const KtlsConnection* connection);

/* Handles such a request in the certificate callback, and returns the result of that callback: -1 until a Read accepts
 * the request, then 1; 0 after close_notify, because no response can be sent. */
int KtlsPostHandshake_OnRequest(KtlsConnection* connection);

/* Begins a Read. On a client it accepts the request at which an earlier Read paused. Returns false on a server if Read
 * could process the response to its request, because Read has no verify callback. */
bool KtlsPostHandshake_BeginRead(const KtlsOpenSsl* api, KtlsConnection* connection);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A callback on the reading BIO of a connection. It observes and corrects OpenSSL's reads of the socket.
 */
#ifndef KTLS_BIO_H
#define KTLS_BIO_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

/* Sets the callback; call it after SSL_set_fd. With it OpenSSL sends the alert for a record that the kernel rejects,
 * and a client session stays resumable when its connection ends without close_notify. */
void KtlsBio_WatchReads(const KtlsOpenSsl* api, KtlsConnection* connection);

#endif

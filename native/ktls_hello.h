/* SPDX-License-Identifier: MIT
 *
 * The ClientHello on a server: its server name, and the pause before the response.
 */
#ifndef KTLS_HELLO_H
#define KTLS_HELLO_H

#include "ktls_openssl.h"

/* The client hello callback of server contexts (SSL_CTX_set_client_hello_cb). Stores the server name, and pauses if
 * argument is not NULL. */
int KtlsHello_OnClientHello(SSL* ssl, int* alert, void* argument);

#endif

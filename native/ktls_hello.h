/* SPDX-License-Identifier: MIT
 *
 * What a server does between the ClientHello and its answer: it notes the name asked for, and may pause.
 */
#ifndef KTLS_HELLO_H
#define KTLS_HELLO_H

#include "ktls_openssl.h"

#include <stdbool.h>

/* Whether this libssl can hold a handshake at the ClientHello, and show it. */
bool KtlsHello_IsSupported(const KtlsOpenSsl* api);

/* SSL_CTX_set_client_hello_cb of servers: notes the server name; an argument other than NULL makes it pause. */
int KtlsHello_See(SSL* ssl, int* alert, void* argument);

#endif

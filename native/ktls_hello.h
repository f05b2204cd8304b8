/* SPDX-License-Identifier: MIT
 *
 * The pause of a server between the ClientHello and its answer.
 */
#ifndef KTLS_HELLO_H
#define KTLS_HELLO_H

#include "ktls_openssl.h"

#include <stdbool.h>

/* Whether this libssl can hold a handshake at the ClientHello, and show it. */
bool KtlsHello_IsSupported(const KtlsOpenSsl* api);

/* SSL_CTX_set_client_hello_cb of the contexts that pause. */
int KtlsHello_Pause(SSL* ssl, int* alert, void* argument);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The message callback of a connection. It selects SSL_OP_ENABLE_KTLS for the next key, checks for a sockmap, and
 * counts the messages after the handshake.
 */
#ifndef KTLS_MESSAGES_H
#define KTLS_MESSAGES_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns whether an SSL with these KTLS_FLAG_* starts with SSL_OP_ENABLE_KTLS. */
bool KtlsMessages_StartsWithKtls(int32_t flags);

/* Sets the callback. Call it again after SwitchContext, which has replaced the options of the SSL. */
void KtlsMessages_SetCallback(const KtlsOpenSsl* api, const KtlsConnection* connection);

#endif

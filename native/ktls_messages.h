/* SPDX-License-Identifier: MIT
 *
 * The messages of the TLS protocol as they pass: which direction's key changes next, and whether the kernel is to have
 * it; how many come after the handshake.
 */
#ifndef KTLS_MESSAGES_H
#define KTLS_MESSAGES_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether an SSL with these KTLS_FLAG_* starts with SSL_OP_ENABLE_KTLS. */
bool KtlsMessages_AsksFirst(int32_t flags);

/* Sees to what the connection's context asks for; again after the context was switched. */
void KtlsMessages_Watch(const KtlsOpenSsl* api, const KtlsConnection* connection);

#endif

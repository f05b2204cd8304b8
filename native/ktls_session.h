/* SPDX-License-Identifier: MIT
 *
 * Sessions: those that a client connection keeps for its caller, and the tickets of a server.
 */
#ifndef KTLS_SESSION_H
#define KTLS_SESSION_H

#include "ktls_openssl.h"

#include <stdbool.h>

/* Makes every connection of a client context keep the newest session that the server provides. */
void KtlsSession_KeepNewest(const KtlsOpenSsl* api, SSL_CTX* context);

/* Makes a server context encrypt its session tickets with KtlsContext.tickets. Returns false on failure. */
bool KtlsSession_SetTicketCallback(const KtlsOpenSsl* api, SSL_CTX* context);

#endif

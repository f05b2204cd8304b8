/* SPDX-License-Identifier: MIT
 *
 * Sessions of clients: kept by the connection as they come, handed to the caller, offered again.
 */
#ifndef KTLS_SESSION_H
#define KTLS_SESSION_H

#include "ktls_openssl.h"

/* Makes every connection of this client context keep the newest session it is given. */
void KtlsSession_KeepNew(const KtlsOpenSsl* api, SSL_CTX* context);

#endif

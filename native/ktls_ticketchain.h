/* SPDX-License-Identifier: MIT
 *
 * The issuers of a client's certificate in the tickets of a server. OpenSSL's ticket holds the client's certificate and
 * not the chain that came with it, which the validation of a resumed session needs.
 */
#ifndef KTLS_TICKETCHAIN_H
#define KTLS_TICKETCHAIN_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* Makes a server context write the issuers into each ticket, and refuse tickets whose issuers had no room. Returns
 * false on failure. */
bool KtlsTicketChain_SetCallbacks(const KtlsOpenSsl* api, SSL_CTX* context);

/* Gets an issuer from the ticket that the connection was resumed by. It is valid until the next call of this function.
 * Sets *issuer to NULL if there is no such index. Returns ENOMEM on failure. */
int32_t KtlsTicketChain_GetIssuer(
    const KtlsOpenSsl* api, KtlsConnection* connection, int32_t index, const X509** issuer);

#endif

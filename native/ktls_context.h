/* SPDX-License-Identifier: MIT
 *
 * KtlsContext: an SSL_CTX with what its callbacks need, counted by reference because connections outlive
 * KtlsNative_ContextFree.
 */
#ifndef KTLS_CONTEXT_H
#define KTLS_CONTEXT_H

#include "ktls_export.h"
#include "ktls_openssl.h"
#include "ktls_tickets.h"

#include <stdatomic.h>
#include <stdbool.h>

struct KtlsContext
{
    uint32_t magic;
    atomic_int references; /* the caller's and one for each connection */
    bool server;
    KtlsKeyLogCallback keyLog; /* NULL for none */
    int32_t flags;             /* KTLS_FLAG_*, as given */
    bool verifiesPeer;
    bool pausesAtCertificate; /* a CertificateRequest stops the handshake */
    bool answersLater;        /* client: takes a CertificateRequest after the handshake, too */
    SSL_CTX* context;
    KtlsTicketKeys tickets; /* server */
    uint8_t* alpn;          /* server: own copy of the protocol list, read by the selection callback */
    unsigned int alpnLength;
};

/* Whether the pointer is a live context; anything else is the caller's mistake (EINVAL). */
bool KtlsContext_IsValid(const KtlsContext* context);

void KtlsContext_AddReference(KtlsContext* context);
void KtlsContext_Release(KtlsContext* context);

#endif

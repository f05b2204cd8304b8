/* SPDX-License-Identifier: MIT
 *
 * KtlsContext: an SSL_CTX and the state of its callbacks. It is reference-counted, because connections may outlive
 * KtlsNative_ContextFree.
 */
#ifndef KTLS_CONTEXT_H
#define KTLS_CONTEXT_H

#include "ktls_export.h"
#include "ktls_openssl.h"
#include "ktls_tickets.h"

#include <stdatomic.h>
#include <stdbool.h>

#define KTLS_CONTEXT_MAGIC 0x4B746378U /* "Ktcx" */

struct KtlsContext
{
    uint32_t magic;        /* KTLS_CONTEXT_MAGIC once the context is complete */
    atomic_int references; /* one for the caller and one for each connection */
    bool server;
    KtlsKeyLogCallback keyLog; /* or NULL */
    int32_t flags;             /* KTLS_FLAG_*, as passed by the caller */
    bool verifiesPeer;
    bool pausesAtCertificate; /* client: a CertificateRequest pauses the handshake */
    bool postHandshakeAuth;   /* client: accepts a CertificateRequest after the handshake */
    SSL_CTX* sslContext;
    KtlsTicketKeys tickets; /* server */
    uint8_t* alpn;          /* server: owned copy of the protocol list for the selection callback */
    unsigned int alpnLength;
};

/* Returns whether the pointer is a live context. If it is not, the export returns EINVAL. */
bool KtlsContext_IsValid(const KtlsContext* context);

/* Allocates a context with one reference and without an SSL_CTX. Returns NULL on failure. */
KtlsContext* KtlsContext_Allocate(const KtlsContextOptions* options);

void KtlsContext_AddReference(KtlsContext* context);
void KtlsContext_Release(KtlsContext* context);

#endif

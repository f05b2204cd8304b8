/* SPDX-License-Identifier: MIT */
#include "ktls_context.h"

#include <stdlib.h>
#include <string.h>

bool KtlsContext_IsValid(const KtlsContext* context)
{
    return context != NULL && context->magic == KTLS_CONTEXT_MAGIC;
}

KtlsContext* KtlsContext_Allocate(const KtlsContextOptions* options)
{
    KtlsContext* context = calloc(1, sizeof(*context));
    if (context == NULL)
    {
        return NULL;
    }
    context->server = options->role == KTLS_ROLE_SERVER;
    context->verifiesPeer = (options->flags & (KTLS_FLAG_VERIFY_PEER | KTLS_FLAG_REQUIRE_PEER)) != 0;
    context->pausesAtCertificate = (options->flags & KTLS_FLAG_PAUSE_AT_CERTIFICATE) != 0;
    context->postHandshakeAuth = (options->flags & KTLS_FLAG_POST_HANDSHAKE_AUTH) != 0;
    context->flags = options->flags;
    context->keyLog = options->keyLog;
    atomic_init(&context->references, 1);
    if (KtlsTickets_Create(&context->tickets) != 0)
    {
        free(context);
        return NULL;
    }
    if (options->alpnLength > 0)
    {
        context->alpnLength = (unsigned int)options->alpnLength;
        context->alpn = malloc(context->alpnLength);
        if (context->alpn == NULL)
        {
            KtlsTickets_Free(&context->tickets);
            free(context);
            return NULL;
        }
        memcpy(context->alpn, options->alpn, context->alpnLength);
    }
    return context;
}

void KtlsContext_AddReference(KtlsContext* context)
{
    (void)atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
}

void KtlsContext_Release(KtlsContext* context)
{
    if (atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) != 1)
    {
        return;
    }
    KtlsOpenSsl_Get()->SSL_CTX_free(context->sslContext);
    free(context->alpn);
    KtlsTickets_Free(&context->tickets);
    explicit_bzero(context, sizeof(*context));
    free(context);
}

void KtlsNative_ContextFree(KtlsContext* context)
{
    if (KtlsContext_IsValid(context))
    {
        KtlsContext_Release(context);
    }
}

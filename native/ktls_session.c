/* SPDX-License-Identifier: MIT */
#include "ktls_session.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_tickets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_MAGIC 0x4B747365U /* "Ktse" */

struct KtlsSession
{
    uint32_t magic;
    SSL_SESSION* session; /* counted reference */
};

static bool IsValid(const KtlsSession* session)
{
    return session != NULL && session->magic == SESSION_MAGIC;
}

/* Returns 1 to keep the reference that OpenSSL passes. */
static int OnNewSession(SSL* ssl, SSL_SESSION* session)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = KtlsConnection_FromSsl(api, ssl);
    if (connection == NULL)
    {
        return 0;
    }
    api->SSL_SESSION_free(connection->session);
    connection->session = session;
    return 1;
}

void KtlsSession_KeepNewest(const KtlsOpenSsl* api, SSL_CTX* context)
{
    const long mode = SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL;
    (void)api->SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, mode, NULL);
    api->SSL_CTX_sess_set_new_cb(context, OnNewSession);
}

static int OnTicketKey(
    SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypts)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    const KtlsConnection* connection = KtlsConnection_FromSsl(api, ssl);
    if (connection == NULL)
    {
        return KTLS_TICKET_ERROR;
    }
    /* A connection keeps using the keys of its first context. */
    KtlsContext* context = connection->firstContext != NULL ? connection->firstContext : connection->context;
    int status = KtlsTickets_SetupCipher(api, &context->tickets, name, iv, cipher, mac, encrypts != 0);
    /* TLS 1.3 sessions are used once: each connection gets a ticket for the next one (RFC 8446, C.4), as it does
     * without this callback. */
    return status == KTLS_TICKET_VALID && encrypts == 0 && api->SSL_version(ssl) == TLS1_3_VERSION ? KTLS_TICKET_RENEW
                                                                                                   : status;
}

bool KtlsSession_SetTicketCallback(const KtlsOpenSsl* api, SSL_CTX* context)
{
    return api->SSL_CTX_set_tlsext_ticket_key_evp_cb(context, OnTicketKey) == 1;
}

int32_t KtlsNative_RotateTicketKeys(KtlsContext* context)
{
    if (KtlsOpenSsl_Get() == NULL)
    {
        return ENOSYS;
    }
    return KtlsContext_IsValid(context) && context->server ? KtlsTickets_Rotate(&context->tickets) : EINVAL;
}

int32_t KtlsNative_TakeSession(KtlsConnection* connection, KtlsSession** session)
{
    if (session == NULL)
    {
        return EINVAL;
    }
    *session = NULL;
    if (KtlsOpenSsl_Get() == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection))
    {
        return EINVAL;
    }
    if (connection->session == NULL)
    {
        return 0;
    }
    KtlsSession* taken = calloc(1, sizeof(*taken));
    if (taken == NULL)
    {
        return ENOMEM;
    }
    taken->session = connection->session;
    taken->magic = SESSION_MAGIC;
    connection->session = NULL;
    *session = taken;
    return 0;
}

int32_t KtlsNative_UseSession(KtlsConnection* connection, KtlsSession* session)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection) || !IsValid(session) || connection->context->server)
    {
        return EINVAL;
    }
    if (!connection->beforeHello)
    {
        return EBUSY;
    }
    KtlsOpenSsl_ClearErrors(api);
    int set = api->SSL_set_session(connection->ssl, session->session);
    KtlsOpenSsl_ClearErrors(api);
    return set == 1 ? 0 : ENOMEM;
}

int32_t KtlsNative_SessionInfo(KtlsSession* session, KtlsSessionInfo* info)
{
    if (info == NULL)
    {
        return EINVAL;
    }
    memset(info, 0, sizeof(*info));
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!IsValid(session))
    {
        return EINVAL;
    }
    info->protocolVersion = api->SSL_SESSION_get_protocol_version(session->session);
    info->resumable = api->SSL_SESSION_is_resumable(session->session) != 0;
    info->createdSeconds = api->SSL_SESSION_get_time(session->session);
    info->timeoutSeconds = api->SSL_SESSION_get_timeout(session->session);
    info->ticketLifetimeSeconds = (int64_t)api->SSL_SESSION_get_ticket_lifetime_hint(session->session);
    return 0;
}

void KtlsNative_SessionFree(KtlsSession* session)
{
    if (IsValid(session))
    {
        KtlsOpenSsl_Get()->SSL_SESSION_free(session->session);
        explicit_bzero(session, sizeof(*session));
        free(session);
    }
}

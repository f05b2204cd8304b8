/* SPDX-License-Identifier: MIT */
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_ticketchain.h"

#include <errno.h>
#include <string.h>

int32_t KtlsNative_GetConnectionInfo(KtlsConnection* connection, KtlsConnectionInfo* info)
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
    if (!KtlsConnection_IsValid(connection))
    {
        return EINVAL;
    }

    const SSL* ssl = connection->ssl;
    if (connection->serverName != NULL)
    {
        memcpy(info->serverName, connection->serverName, (size_t)connection->serverNameLength);
        info->serverNameLength = connection->serverNameLength;
    }
    const SSL_CIPHER* cipher = api->SSL_get_current_cipher(ssl);
    if (cipher == NULL && api->SSL_get_pending_cipher != NULL)
    {
        cipher = api->SSL_get_pending_cipher(ssl); /* TLS 1.2, during certificate validation */
    }
    if (cipher == NULL)
    {
        return 0;
    }

    const unsigned char* alpn = NULL;
    unsigned int alpnLength = 0;
    api->SSL_get0_alpn_selected(ssl, &alpn, &alpnLength);
    if (alpn != NULL && alpnLength <= sizeof(info->alpn))
    {
        memcpy(info->alpn, alpn, alpnLength);
        info->alpnLength = (int32_t)alpnLength;
    }
    info->protocolVersion = api->SSL_version(ssl);
    info->cipherSuite = api->SSL_CIPHER_get_protocol_id(cipher);
    info->ktlsSend = KtlsConnection_IsSendOffloaded(api, connection);
    info->ktlsReceive = KtlsConnection_IsReceiveOffloaded(api, connection);
    info->resumed = api->SSL_session_reused(ssl) != 0;
    info->pending = api->SSL_has_pending(ssl) != 0;
    info->certificateRequested = connection->certificateRequested;
    const SSL_SESSION* session = api->SSL_get_session(ssl);
    info->shortRecords = session != NULL && api->SSL_SESSION_get_max_fragment_length(session) != 0;
    info->sockmap = connection->inSockmap;
    return 0;
}

/* Sets *certificate to NULL if there is no such index. */
static int32_t FindPeerCertificate(
    const KtlsOpenSsl* api, KtlsConnection* connection, int32_t index, const X509** certificate)
{
    if (index == 0)
    {
        *certificate = api->SSL_get0_peer_certificate(connection->ssl);
        return 0;
    }
    /* SSL_get_peer_cert_chain includes the leaf only on a client, and is NULL on a server that resumed by a ticket. */
    bool server = connection->context->server;
    const OPENSSL_STACK* chain = api->SSL_get_peer_cert_chain(connection->ssl);
    if (chain == NULL && server)
    {
        return KtlsTicketChain_GetIssuer(api, connection, index - 1, certificate);
    }
    int count = chain != NULL ? api->OPENSSL_sk_num(chain) : 0;
    int at = server ? index - 1 : index;
    *certificate = at < count ? api->OPENSSL_sk_value(chain, at) : NULL;
    return 0;
}

int32_t KtlsNative_GetPeerCertificate(KtlsConnection* connection, int32_t index, intptr_t* certificate)
{
    if (certificate == NULL)
    {
        return EINVAL;
    }
    *certificate = 0;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection) || index < 0)
    {
        return EINVAL;
    }
    const X509* found = NULL;
    int32_t error = FindPeerCertificate(api, connection, index, &found);
    *certificate = (intptr_t)found;
    return error != 0 ? error : found != NULL ? 0 : ENODATA;
}

int32_t KtlsNative_GetFinished(
    KtlsConnection* connection, int32_t peer, uint8_t* buffer, int32_t capacity, int32_t* length)
{
    if (length == NULL)
    {
        return EINVAL;
    }
    *length = 0;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection) || (peer != 0 && peer != 1) || capacity < 0 ||
        (capacity > 0 && buffer == NULL))
    {
        return EINVAL;
    }

    uint8_t finished[KTLS_FINISHED_MAX];
    size_t size = !connection->established ? 0
                  : peer != 0              ? api->SSL_get_peer_finished(connection->ssl, finished, sizeof(finished))
                                           : api->SSL_get_finished(connection->ssl, finished, sizeof(finished));
    if (size == 0 || size > sizeof(finished))
    {
        return ENODATA;
    }
    *length = (int32_t)size;
    if ((size_t)capacity < size)
    {
        return ERANGE;
    }
    memcpy(buffer, finished, size);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "ktls_bio.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_messages.h"
#include "ktls_result.h"
#include "ktls_socketbio.h"
#include "ktls_staple.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int32_t CheckSocket(int32_t socket)
{
    int type = 0;
    socklen_t length = sizeof(type);
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) != 0)
    {
        return errno;
    }
    if (type != SOCK_STREAM)
    {
        return EINVAL;
    }
    int flags = fcntl(socket, F_GETFL);
    if (flags < 0)
    {
        return errno;
    }
    if ((flags & O_NONBLOCK) == 0)
    {
        return EINVAL;
    }
    struct sockaddr_storage peer;
    length = sizeof(peer);
    /* SSL_set_fd attaches the TLS layer. That fails silently if the socket is not connected. */
    return getpeername(socket, (struct sockaddr*)&peer, &length) == 0 ? 0 : errno;
}

static void Destroy(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->ssl != NULL)
    {
        /* Without SSL_SENT_SHUTDOWN, SSL_free would make the session not resumable: at a client for all of its holders,
         * at a server for clients without tickets. TLS requires that no more (RFC 5246, 7.2.1). The caller decides
         * whether to send close_notify. A fatal alert has already made the session not resumable. */
        api->SSL_set_shutdown(connection->ssl, SSL_SENT_SHUTDOWN);
    }
    api->SSL_free(connection->ssl);
    KtlsSocketBio_Free(connection);
    api->SSL_SESSION_free(connection->session);
    api->X509_free(connection->ticketIssuer);
    free(connection->hello);
    free(connection->serverName);
    KtlsContext_Release(connection->context);
    if (connection->firstContext != NULL)
    {
        KtlsContext_Release(connection->firstContext);
    }
    explicit_bzero(connection, sizeof(*connection));
    free(connection);
}

/* Without ENABLE_KTLS the socket stays as it is. SSL_set_fd of OpenSSL 3.0 puts "tls" on it, even over a sockmap. */
static bool BindSocket(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if ((connection->context->flags & KTLS_FLAG_ENABLE_KTLS) == 0)
    {
        return KtlsSocketBio_StartReading(api, connection) && KtlsSocketBio_StartWriting(api, connection);
    }
    if (api->SSL_set_fd(connection->ssl, connection->socket) != 1)
    {
        return false;
    }
    KtlsBio_WatchReads(api, connection);
    return true;
}

static bool InitSsl(const KtlsOpenSsl* api, KtlsConnection* connection, const char* serverName)
{
    const KtlsContext* context = connection->context;
    connection->ssl = api->SSL_new(context->sslContext);
    if (connection->ssl == NULL || api->SSL_set_ex_data(connection->ssl, api->connectionIndex, connection) != 1 ||
        !BindSocket(api, connection))
    {
        return false;
    }
    KtlsMessages_SetCallback(api, connection);
    if (context->server)
    {
        api->SSL_set_accept_state(connection->ssl);
        return true;
    }
    api->SSL_set_connect_state(connection->ssl);
    KtlsStaple_Request(api, connection);
    /* OpenSSL copies the name, although the parameter is not const. */
    return serverName == NULL || api->SSL_ctrl(
                                     connection->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_HOST_NAME,
                                     (void*)(uintptr_t)serverName) == 1;
}

int32_t KtlsNative_ConnectionCreate(
    KtlsContext* context, int32_t socket, const char* serverName, KtlsConnection** connection, KtlsResult* result)
{
    if (connection == NULL || result == NULL)
    {
        return EINVAL;
    }
    *connection = NULL;
    memset(result, 0, sizeof(*result));
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsContext_IsValid(context))
    {
        return EINVAL;
    }
    int32_t error = CheckSocket(socket);
    if (error != 0)
    {
        return error;
    }

    KtlsConnection* created = calloc(1, sizeof(*created));
    if (created == NULL)
    {
        return ENOMEM;
    }
    if (!KtlsSocketBio_Init(created))
    {
        free(created);
        return ENOMEM;
    }
    KtlsContext_AddReference(context);
    created->context = context;
    created->socket = socket;
    created->beforeHello = true;
    KtlsResult_Begin(api, result);
    if (!InitSsl(api, created, serverName))
    {
        KtlsResult_Fail(api, result);
        Destroy(api, created);
        return 0;
    }
    KtlsOpenSsl_ClearErrors(api);
    created->magic = KTLS_CONNECTION_MAGIC;
    *connection = created;
    return 0;
}

void KtlsNative_ConnectionFree(KtlsConnection* connection)
{
    if (KtlsConnection_IsValid(connection))
    {
        Destroy(KtlsOpenSsl_Get(), connection);
    }
}

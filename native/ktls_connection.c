/* SPDX-License-Identifier: MIT */
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_io.h"
#include "ktls_messages.h"
#include "ktls_result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECTION_MAGIC 0x4B74636FU /* "Ktco" */

bool KtlsConnection_IsValid(const KtlsConnection* connection)
{
    return connection != NULL && connection->magic == CONNECTION_MAGIC;
}

KtlsConnection* KtlsConnection_Of(const KtlsOpenSsl* api, const SSL* ssl)
{
    KtlsConnection* connection = api->SSL_get_ex_data(ssl, api->connectionIndex);
    return KtlsConnection_IsValid(connection) ? connection : NULL;
}

int32_t KtlsConnection_Enter(
    const KtlsConnection* connection, int32_t socket, KtlsResult* result, const KtlsOpenSsl** api)
{
    if (result == NULL)
    {
        return EINVAL;
    }
    memset(result, 0, sizeof(*result));
    *api = KtlsOpenSsl_Get();
    if (*api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection))
    {
        return EINVAL;
    }
    return socket == connection->socket ? 0 : EBADF;
}

void KtlsConnection_NoteFailure(const KtlsOpenSsl* api, KtlsConnection* connection, const KtlsResult* result)
{
    bool mayEnd = result->status == KTLS_STATUS_TLS_ERROR || result->status == KTLS_STATUS_UNEXPECTED_EOF;
    /* OpenSSL falls back to its handshake state when it fails for good, and stays out of it when it merely refused
     * a call. SSL_shutdown refuses while half a handshake message has been read: that one is not fatal. */
    if (mayEnd && !api->SSL_is_init_finished(connection->ssl) && result->reason != SSL_R_SHUTDOWN_WHILE_IN_INIT)
    {
        connection->failure = *result;
    }
}

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
    /* OpenSSL attaches the TLS layer in SSL_set_fd, which fails silently before the socket is connected. */
    return getpeername(socket, (struct sockaddr*)&peer, &length) == 0 ? 0 : errno;
}

static void Destroy(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->ssl != NULL && !connection->context->server)
    {
        /* Freed without close_notify, OpenSSL would take the session for a broken one, and spoil it for all who hold
         * it. Whether one was sent is the caller's affair; a fatal alert has spoiled it before. */
        api->SSL_set_shutdown(connection->ssl, SSL_SENT_SHUTDOWN);
    }
    api->SSL_free(connection->ssl);
    api->SSL_SESSION_free(connection->session);
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

static bool Setup(const KtlsOpenSsl* api, KtlsConnection* connection, const char* serverName)
{
    const KtlsContext* context = connection->context;
    connection->ssl = api->SSL_new(context->context);
    if (connection->ssl == NULL || api->SSL_set_ex_data(connection->ssl, api->connectionIndex, connection) != 1 ||
        api->SSL_set_fd(connection->ssl, connection->socket) != 1)
    {
        return false;
    }
    KtlsIo_WatchReads(api, connection);
    KtlsMessages_Watch(api, connection);
    if (context->server)
    {
        api->SSL_set_accept_state(connection->ssl);
        return true;
    }
    api->SSL_set_connect_state(connection->ssl);
    /* The parameter is not const in OpenSSL; it copies the name. */
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
    KtlsContext_AddReference(context);
    created->context = context;
    created->socket = socket;
    created->beforeHello = true;
    KtlsResult_Begin(api, result);
    if (!Setup(api, created, serverName))
    {
        KtlsResult_Refused(api, result);
        Destroy(api, created);
        return 0;
    }
    KtlsOpenSsl_ClearErrors(api);
    created->magic = CONNECTION_MAGIC;
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

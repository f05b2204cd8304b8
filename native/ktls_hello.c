/* SPDX-License-Identifier: MIT */
#include "ktls_hello.h"
#include "ktls_call.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_messages.h"
#include "ktls_result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Copies the content of an extension. Returns its length: -1 if there is none, 0 if it does not fit. */
static int32_t CopyExtension(const KtlsOpenSsl* api, SSL* ssl, unsigned int type, uint8_t* target, size_t capacity)
{
    const unsigned char* content = NULL;
    size_t length = 0;
    if (api->SSL_client_hello_get0_ext(ssl, type, &content, &length) != 1)
    {
        return -1;
    }
    if (length == 0 || length > capacity)
    {
        return 0;
    }
    memcpy(target, content, length);
    return (int32_t)length;
}

/* Stores server_name for GetConnectionInfo, because OpenSSL does not keep the name when it resumes a TLS 1.2 session.
 */
static bool StoreServerName(const KtlsOpenSsl* api, SSL* ssl, KtlsConnection* connection)
{
    if (connection->serverName != NULL)
    {
        return true;
    }
    uint8_t content[KTLS_SERVER_NAME_MAX];
    int32_t length = CopyExtension(api, ssl, TLSEXT_TYPE_SERVER_NAME, content, sizeof(content));
    if (length <= 0)
    {
        return true;
    }
    connection->serverName = malloc((size_t)length);
    if (connection->serverName == NULL)
    {
        return false;
    }
    memcpy(connection->serverName, content, (size_t)length);
    connection->serverNameLength = length;
    return true;
}

int KtlsHello_OnClientHello(SSL* ssl, int* alert, void* argument)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = KtlsConnection_FromSsl(api, ssl);
    *alert = SSL_AD_INTERNAL_ERROR;
    if (connection == NULL || !StoreServerName(api, ssl, connection))
    {
        return SSL_CLIENT_HELLO_ERROR;
    }
    if (argument == NULL)
    {
        return SSL_CLIENT_HELLO_SUCCESS;
    }
    if (connection->helloDecision == KTLS_DECISION_MADE)
    {
        *alert = connection->abortAlert;
        return connection->abortAlert == 0 ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
    }
    if (connection->hello == NULL)
    {
        /* The ClientHello is accessible only in this callback. */
        connection->hello = calloc(1, sizeof(*connection->hello));
        if (connection->hello == NULL)
        {
            return SSL_CLIENT_HELLO_ERROR;
        }
        KtlsClientHello* hello = connection->hello;
        hello->legacyVersion = (int32_t)api->SSL_client_hello_get0_legacy_version(ssl);
        hello->versionsLength =
            CopyExtension(api, ssl, TLSEXT_TYPE_SUPPORTED_VERSIONS, hello->versions, sizeof(hello->versions));
        if (connection->serverName != NULL)
        {
            memcpy(hello->serverName, connection->serverName, (size_t)connection->serverNameLength);
            hello->serverNameLength = connection->serverNameLength;
        }
    }
    connection->helloDecision = KTLS_DECISION_WAITING;
    return SSL_CLIENT_HELLO_RETRY;
}

static bool IsPaused(const KtlsConnection* connection)
{
    return connection->helloDecision == KTLS_DECISION_WAITING;
}

static void EndPause(KtlsConnection* connection, int32_t alert)
{
    connection->helloDecision = KTLS_DECISION_MADE;
    connection->abortAlert = alert;
    free(connection->hello);
    connection->hello = NULL;
}

int32_t KtlsNative_GetClientHello(KtlsConnection* connection, KtlsClientHello* clientHello)
{
    if (clientHello == NULL)
    {
        return EINVAL;
    }
    memset(clientHello, 0, sizeof(*clientHello));
    if (KtlsOpenSsl_Get() == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection))
    {
        return EINVAL;
    }
    if (!IsPaused(connection))
    {
        return EBUSY;
    }
    *clientHello = *connection->hello;
    return 0;
}

/* Copies the settings that SSL_new copies from a context and SSL_set_SSL_CTX does not. SSL_set_SSL_CTX copies
 * certificates and signature algorithms and replaces the session ID context. The SSL reads ciphers, the ALPN list,
 * announced issuers and callbacks from the new context when it needs them. These calls cannot fail, because the values
 * come from a context that accepted them. */
static void CopyContextSettings(const KtlsOpenSsl* api, SSL* ssl, SSL_CTX* context)
{
    uint64_t options = api->SSL_CTX_get_options(context);
    (void)api->SSL_clear_options(ssl, api->SSL_get_options(ssl) & ~options);
    (void)api->SSL_set_options(ssl, options);

    long mode = api->SSL_CTX_ctrl(context, SSL_CTRL_MODE, 0, NULL);
    (void)api->SSL_ctrl(ssl, SSL_CTRL_CLEAR_MODE, api->SSL_ctrl(ssl, SSL_CTRL_MODE, 0, NULL) & ~mode, NULL);
    (void)api->SSL_ctrl(ssl, SSL_CTRL_MODE, mode, NULL);

    long minimum = api->SSL_CTX_ctrl(context, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, NULL);
    long maximum = api->SSL_CTX_ctrl(context, SSL_CTRL_GET_MAX_PROTO_VERSION, 0, NULL);
    /* The maximum is removed first, because OpenSSL rejects a minimum above it. */
    (void)api->SSL_ctrl(ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, 0, NULL);
    (void)api->SSL_ctrl(ssl, SSL_CTRL_SET_MIN_PROTO_VERSION, minimum, NULL);
    (void)api->SSL_ctrl(ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, maximum, NULL);

    api->SSL_set_verify(ssl, api->SSL_CTX_get_verify_mode(context), NULL);
    if (api->SSL_CTX_get_num_tickets != NULL && api->SSL_set_num_tickets != NULL)
    {
        (void)api->SSL_set_num_tickets(ssl, api->SSL_CTX_get_num_tickets(context));
    }
}

int32_t KtlsNative_SwitchContext(KtlsConnection* connection, KtlsContext* newContext, KtlsResult* result)
{
    if (result == NULL)
    {
        return EINVAL;
    }
    memset(result, 0, sizeof(*result));
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection) || !KtlsContext_IsValid(newContext) || !newContext->server)
    {
        return EINVAL;
    }
    if (!IsPaused(connection))
    {
        return EBUSY;
    }

    KtlsResult_Begin(api, result);
    if (api->SSL_set_SSL_CTX(connection->ssl, newContext->sslContext) == NULL)
    {
        KtlsResult_Fail(api, result);
        return 0;
    }
    CopyContextSettings(api, connection->ssl, newContext->sslContext);
    KtlsOpenSsl_ClearErrors(api);
    KtlsContext_AddReference(newContext);
    connection->firstContext = connection->context;
    connection->context = newContext;
    KtlsMessages_SetCallback(api, connection);
    EndPause(connection, 0);
    return 0;
}

/* Returns whether OpenSSL sends this alert number unchanged in every protocol version. */
static bool IsFatalAlert(int32_t alert)
{
    static const uint8_t s_alerts[] = {10, 20, 22, 40, 42, 43, 44,  45,  46,  47,  48, 49,
                                       50, 51, 70, 71, 80, 86, 110, 112, 113, 115, 120};
    for (size_t i = 0; i < sizeof(s_alerts); i++)
    {
        if (s_alerts[i] == alert)
        {
            return true;
        }
    }
    return false;
}

int32_t KtlsNative_AbortHandshake(KtlsConnection* connection, int32_t socket, int32_t alert, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    int32_t error = KtlsConnection_Enter(connection, socket, result, &api);
    if (error != 0)
    {
        return error;
    }
    if (!IsFatalAlert(alert))
    {
        return EINVAL;
    }
    if (!IsPaused(connection))
    {
        return EBUSY;
    }

    EndPause(connection, alert);
    connection->beforeHello = false;
    KtlsCall_DoHandshake(api, connection->ssl, false, result);
    KtlsConnection_SaveFailure(api, connection, result);
    return 0;
}

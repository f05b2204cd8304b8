/* SPDX-License-Identifier: MIT */
#include "ktls_hello.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_messages.h"
#include "ktls_result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is left of an extension's body while it is taken apart. */
typedef struct Bytes
{
    const uint8_t* at;
    size_t left;
} Bytes;

bool KtlsHello_IsSupported(const KtlsOpenSsl* api)
{
    return api->SSL_CTX_set_client_hello_cb != NULL && api->SSL_client_hello_get0_ext != NULL &&
           api->SSL_client_hello_get0_legacy_version != NULL;
}

static bool TakeNumber(Bytes* bytes, size_t width, size_t* number)
{
    if (bytes->left < width)
    {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < width; i++)
    {
        *number = *number << 8 | bytes->at[i];
    }
    bytes->at += width;
    bytes->left -= width;
    return true;
}

/* Takes a length of that width. Returns whether it covers all that follows it, and something does. */
static bool TakeWholeLength(Bytes* bytes, size_t width)
{
    size_t length = 0;
    return TakeNumber(bytes, width, &length) && length == bytes->left && length > 0;
}

static bool FindExtension(const KtlsOpenSsl* api, SSL* ssl, unsigned int type, Bytes* bytes)
{
    bytes->at = NULL;
    bytes->left = 0;
    return api->SSL_client_hello_get0_ext(ssl, type, &bytes->at, &bytes->left) == 1;
}

/* RFC 6066, 3: a list, in which only one entry makes sense, of a type and a name. Names should be ASCII; some clients
 * (SslStream) send what they were given in UTF-8. */
static void ReadServerName(const KtlsOpenSsl* api, SSL* ssl, KtlsClientHello* hello)
{
    Bytes bytes;
    size_t type = 0;
    if (!FindExtension(api, ssl, TLSEXT_TYPE_SERVER_NAME, &bytes) || !TakeWholeLength(&bytes, 2) ||
        !TakeNumber(&bytes, 1, &type) || type != TLSEXT_NAMETYPE_HOST_NAME || !TakeWholeLength(&bytes, 2) ||
        bytes.left >= sizeof(hello->serverName))
    {
        return;
    }
    for (size_t i = 0; i < bytes.left; i++)
    {
        if (bytes.at[i] <= ' ' || bytes.at[i] == 0x7F)
        {
            return;
        }
    }
    memcpy(hello->serverName, bytes.at, bytes.left);
}

static int32_t ToBit(size_t version)
{
    return version >= SSL3_VERSION && version <= TLS1_3_VERSION ? 1 << (version - SSL3_VERSION) : 0;
}

/* RFC 8446, 4.2.1: with the extension, the version of the hello itself means nothing. */
static int32_t ReadVersions(const KtlsOpenSsl* api, SSL* ssl)
{
    Bytes bytes;
    if (!FindExtension(api, ssl, TLSEXT_TYPE_SUPPORTED_VERSIONS, &bytes))
    {
        return ToBit(api->SSL_client_hello_get0_legacy_version(ssl));
    }
    int32_t versions = 0;
    if (TakeWholeLength(&bytes, 1) && bytes.left % 2 == 0)
    {
        for (size_t version = 0; TakeNumber(&bytes, 2, &version);)
        {
            versions |= ToBit(version); /* others are GREASE (RFC 8701) or to come */
        }
    }
    return versions;
}

static void ReadAlpn(const KtlsOpenSsl* api, SSL* ssl, KtlsClientHello* hello)
{
    Bytes bytes;
    if (!FindExtension(api, ssl, TLSEXT_TYPE_ALPN, &bytes) || !TakeWholeLength(&bytes, 2))
    {
        return;
    }
    size_t fitting = 0;
    for (size_t at = 0; at < bytes.left;)
    {
        size_t next = at + 1 + bytes.at[at];
        if (bytes.at[at] == 0 || next > bytes.left)
        {
            return;
        }
        fitting = next <= sizeof(hello->alpn) ? next : fitting;
        at = next;
    }
    memcpy(hello->alpn, bytes.at, fitting);
    hello->alpnLength = (int32_t)fitting;
    hello->alpnTruncated = fitting < bytes.left;
}

/* Kept for the connection's information: OpenSSL itself forgets the name where it resumes a TLS 1.2 session. */
static bool NoteServerName(const KtlsOpenSsl* api, SSL* ssl, KtlsConnection* connection)
{
    if (connection->serverName == NULL)
    {
        KtlsClientHello hello;
        memset(&hello, 0, sizeof(hello));
        ReadServerName(api, ssl, &hello);
        connection->serverName = strdup((const char*)hello.serverName);
    }
    return connection->serverName != NULL;
}

int KtlsHello_See(SSL* ssl, int* alert, void* argument)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = KtlsConnection_Of(api, ssl);
    *alert = SSL_AD_INTERNAL_ERROR;
    if (connection == NULL || !NoteServerName(api, ssl, connection))
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
        /* Read now: OpenSSL shows the hello in this callback only. */
        connection->hello = calloc(1, sizeof(*connection->hello));
        if (connection->hello == NULL)
        {
            return SSL_CLIENT_HELLO_ERROR;
        }
        connection->hello->versions = ReadVersions(api, ssl);
        ReadServerName(api, ssl, connection->hello);
        ReadAlpn(api, ssl, connection->hello);
    }
    connection->helloDecision = KTLS_DECISION_WAITING;
    return SSL_CLIENT_HELLO_RETRY;
}

static bool IsPaused(const KtlsConnection* connection)
{
    return connection->helloDecision == KTLS_DECISION_WAITING;
}

static void Decide(KtlsConnection* connection, int32_t alert)
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

/* What SSL_new copies from its context and SSL_set_SSL_CTX leaves alone. The rest follows the new context: its
 * certificates and signature algorithms are copied, its ciphers, ALPN list, announced issuers and callbacks are read
 * through the SSL when they are needed, and its session ID context replaces the old one's. None of this can fail: all
 * values are those of a context that took them. */
static void CarryOver(const KtlsOpenSsl* api, SSL* ssl, SSL_CTX* context)
{
    uint64_t options = api->SSL_CTX_get_options(context);
    (void)api->SSL_clear_options(ssl, api->SSL_get_options(ssl) & ~options);
    (void)api->SSL_set_options(ssl, options);

    long mode = api->SSL_CTX_ctrl(context, SSL_CTRL_MODE, 0, NULL);
    (void)api->SSL_ctrl(ssl, SSL_CTRL_CLEAR_MODE, api->SSL_ctrl(ssl, SSL_CTRL_MODE, 0, NULL) & ~mode, NULL);
    (void)api->SSL_ctrl(ssl, SSL_CTRL_MODE, mode, NULL);

    long minimum = api->SSL_CTX_ctrl(context, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, NULL);
    long maximum = api->SSL_CTX_ctrl(context, SSL_CTRL_GET_MAX_PROTO_VERSION, 0, NULL);
    /* No maximum meanwhile, or a minimum above the old one would be refused. */
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
    if (api->SSL_set_SSL_CTX(connection->ssl, newContext->context) == NULL)
    {
        KtlsResult_Refused(api, result);
        return 0;
    }
    CarryOver(api, connection->ssl, newContext->context);
    KtlsOpenSsl_ClearErrors(api);
    KtlsContext_AddReference(newContext);
    connection->firstContext = connection->context;
    connection->context = newContext;
    KtlsMessages_Watch(api, connection);
    Decide(connection, 0);
    return 0;
}

/* Those OpenSSL sends under their own number, whatever the version to be. */
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
    int32_t refusal = KtlsConnection_Enter(connection, socket, result, &api);
    if (refusal != 0)
    {
        return refusal;
    }
    if (!IsFatalAlert(alert))
    {
        return EINVAL;
    }
    if (!IsPaused(connection))
    {
        return EBUSY;
    }

    Decide(connection, alert);
    connection->beforeHello = false;
    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_do_handshake(connection->ssl);
        error = errno;
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, false, result));
    KtlsConnection_NoteFailure(api, connection, result);
    return 0;
}

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

/* The unread part of an extension, as OpenSSL's PACKET. */
typedef struct Packet
{
    const uint8_t* current;
    size_t remaining;
} Packet;

static bool ReadInteger(Packet* packet, size_t width, size_t* number)
{
    if (packet->remaining < width)
    {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < width; i++)
    {
        *number = *number << 8 | packet->current[i];
    }
    packet->current += width;
    packet->remaining -= width;
    return true;
}

/* Reads a length field of width bytes. Returns whether it equals the number of bytes that follow, and is not 0. */
static bool ReadFullLength(Packet* packet, size_t width)
{
    size_t length = 0;
    return ReadInteger(packet, width, &length) && length == packet->remaining && length > 0;
}

static bool FindExtension(const KtlsOpenSsl* api, SSL* ssl, unsigned int type, Packet* packet)
{
    packet->current = NULL;
    packet->remaining = 0;
    return api->SSL_client_hello_get0_ext(ssl, type, &packet->current, &packet->remaining) == 1;
}

/* Reads server_name, a list of types and names in which only one entry makes sense (RFC 6066, 3). Names should be
 * ASCII, but some clients (SslStream) send UTF-8; the caller decides which bytes are a name. */
static void ReadServerName(const KtlsOpenSsl* api, SSL* ssl, KtlsClientHello* hello)
{
    Packet packet;
    size_t type = 0;
    if (!FindExtension(api, ssl, TLSEXT_TYPE_SERVER_NAME, &packet) || !ReadFullLength(&packet, 2) ||
        !ReadInteger(&packet, 1, &type) || type != TLSEXT_NAMETYPE_HOST_NAME || !ReadFullLength(&packet, 2) ||
        packet.remaining >= sizeof(hello->serverName))
    {
        return;
    }
    // OpenSSL refuses the connection for it.
    if (memchr(packet.current, 0, packet.remaining) != NULL)
    {
        return;
    }
    memcpy(hello->serverName, packet.current, packet.remaining);
}

static int32_t VersionBit(size_t version)
{
    return version >= SSL3_VERSION && version <= TLS1_3_VERSION ? 1 << (version - SSL3_VERSION) : 0;
}

/* Reads supported_versions. If it is present, legacy_version is ignored (RFC 8446, 4.2.1). */
static int32_t ReadVersions(const KtlsOpenSsl* api, SSL* ssl)
{
    Packet packet;
    if (!FindExtension(api, ssl, TLSEXT_TYPE_SUPPORTED_VERSIONS, &packet))
    {
        return VersionBit(api->SSL_client_hello_get0_legacy_version(ssl));
    }
    int32_t versions = 0;
    if (ReadFullLength(&packet, 1) && packet.remaining % 2 == 0)
    {
        for (size_t version = 0; ReadInteger(&packet, 2, &version);)
        {
            versions |= VersionBit(version); /* other values are GREASE (RFC 8701) or future versions */
        }
    }
    return versions;
}

static void ReadAlpn(const KtlsOpenSsl* api, SSL* ssl, KtlsClientHello* hello)
{
    Packet packet;
    if (!FindExtension(api, ssl, TLSEXT_TYPE_ALPN, &packet) || !ReadFullLength(&packet, 2))
    {
        return;
    }
    size_t fittingLength = 0;
    for (size_t at = 0; at < packet.remaining;)
    {
        size_t next = at + 1 + packet.current[at];
        if (packet.current[at] == 0 || next > packet.remaining)
        {
            return;
        }
        fittingLength = next <= sizeof(hello->alpn) ? next : fittingLength;
        at = next;
    }
    memcpy(hello->alpn, packet.current, fittingLength);
    hello->alpnLength = (int32_t)fittingLength;
    hello->alpnTruncated = fittingLength < packet.remaining;
}

/* Stores the name for GetConnectionInfo, because OpenSSL does not keep it when it resumes a TLS 1.2 session. */
static bool StoreServerName(const KtlsOpenSsl* api, SSL* ssl, KtlsConnection* connection)
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

/* SPDX-License-Identifier: MIT
 *
 * OpenSSL has one option for both directions, and looks at it whenever it changes a key. So the option is set to what
 * is wanted of the next key, at the last message before it:
 *
 *             read key                                    write key
 *   TLS 1.2   behind the peer's ChangeCipherSpec: comes   behind the own ChangeCipherSpec
 *             first, or behind the own Finished
 *   TLS 1.3   behind the peer's Finished, KeyUpdate       behind the own Finished, KeyUpdate
 *
 * TLS 1.3 has further keys before these, of the handshake itself, which OpenSSL never gives to the kernel. Its
 * ChangeCipherSpec (RFC 8446, D.4) changes none, and is always followed by one of the messages above.
 *
 * And OpenSSL answers a KeyUpdate when it next writes, or when it reads the next message: in the midst of data that
 * somebody else is handing to the kernel under the old key. So it is not told that it is to answer.
 */
#include "ktls_messages.h"
#include "ktls_context.h"
#include "ktls_export.h"
#include "ktls_socket.h"

static bool WantsSend(int32_t flags)
{
    return (flags & KTLS_FLAG_ENABLE_KTLS) != 0 && (flags & KTLS_FLAG_RECEIVE_ONLY) == 0;
}

static bool WantsReceive(int32_t flags)
{
    return (flags & KTLS_FLAG_ENABLE_KTLS) != 0 && (flags & KTLS_FLAG_SEND_ONLY) == 0;
}

bool KtlsMessages_AsksFirst(int32_t flags)
{
    return WantsReceive(flags);
}

static void Ask(const KtlsOpenSsl* api, SSL* ssl, bool wanted)
{
    (void)(wanted ? api->SSL_set_options(ssl, SSL_OP_ENABLE_KTLS) : api->SSL_clear_options(ssl, SSL_OP_ENABLE_KTLS));
}

static void BeforeKeyChange(const KtlsOpenSsl* api, const KtlsConnection* connection, bool written, int type)
{
    int32_t flags = connection->context->flags;
    bool isTls13 = api->SSL_version(connection->ssl) == TLS1_3_VERSION;
    bool writeKeyIsNext = written && (isTls13 || type == SSL3_RT_CHANGE_CIPHER_SPEC);
    Ask(api, connection->ssl, writeKeyIsNext ? WantsSend(flags) : WantsReceive(flags));
}

/* The ClientHello is out of the queue and the client waits for its answer: nothing hides a sockmap now. "tls" on top of
 * one is two layers that replace each other's functions, in an order that no close undoes: it is not to happen. */
static void LookForSockmap(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    bool asks = (connection->context->flags & KTLS_FLAG_ENABLE_KTLS) != 0;
    if (asks && !connection->sockmap && KtlsSocket_IsInSockmap(connection->socket))
    {
        connection->sockmap = true;
        Ask(api, connection->ssl, false);
    }
}

/* RFC 8446, 4.6.3: type, a length of 1, request_update. The buffer is the SSL's own, and is read after this callback;
 * where a libssl to come has read it before, SSL_get_key_update_type tells. */
static void TakeRequest(KtlsConnection* connection, const uint8_t* message, size_t length)
{
    enum
    {
        LENGTH = 5,
        REQUEST = 4
    };
    if (length == LENGTH && message[REQUEST] == SSL_KEY_UPDATE_REQUESTED)
    {
        connection->updateAsked = true;
        ((uint8_t*)(uintptr_t)message)[REQUEST] = SSL_KEY_UPDATE_NOT_REQUESTED;
    }
}

static void OnMessage(
    int written, int version, int contentType, const void* data, size_t length, SSL* ssl, void* argument)
{
    (void)version;
    (void)argument;
    const uint8_t* message = data;
    bool isHandshake = contentType == SSL3_RT_HANDSHAKE && length > 0;
    bool isCipherSpec = contentType == SSL3_RT_CHANGE_CIPHER_SPEC;
    if (!isHandshake && !isCipherSpec)
    {
        return;
    }
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = KtlsConnection_Of(api, ssl);
    if (connection == NULL)
    {
        return;
    }

    if (isHandshake && written == 0 && connection->established)
    {
        connection->messages++;
    }
    int type = isHandshake ? message[0] : SSL3_RT_CHANGE_CIPHER_SPEC;
    if (isHandshake && written == 0 && connection->established && type == SSL3_MT_KEY_UPDATE)
    {
        TakeRequest(connection, message, length);
    }
    bool isServersHello = isHandshake && type == SSL3_MT_CLIENT_HELLO && connection->context->server;
    if (isServersHello && written == 0)
    {
        LookForSockmap(api, connection);
    }
    bool limited = (connection->context->flags & (KTLS_FLAG_SEND_ONLY | KTLS_FLAG_RECEIVE_ONLY)) != 0;
    bool changesKey = isCipherSpec || type == SSL3_MT_FINISHED || type == SSL3_MT_KEY_UPDATE;
    if (limited && changesKey && !connection->sockmap)
    {
        BeforeKeyChange(api, connection, written != 0, isCipherSpec ? SSL3_RT_CHANGE_CIPHER_SPEC : SSL3_RT_HANDSHAKE);
    }
}

void KtlsMessages_Watch(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    api->SSL_set_msg_callback(connection->ssl, OnMessage);
    if (connection->sockmap)
    {
        Ask(api, connection->ssl, false);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * OpenSSL has one option for both directions, SSL_OP_ENABLE_KTLS, and reads it each time it changes a key. The message
 * callback therefore sets the option for the next key at the last message before that key:
 *
 *             read key                                    write key
 *   TLS 1.2   after the peer's ChangeCipherSpec, which    after the own ChangeCipherSpec
 *             comes first or follows the own Finished
 *   TLS 1.3   after the peer's Finished or KeyUpdate      after the own Finished or KeyUpdate
 *
 * TLS 1.3 has earlier keys, those of the handshake, which OpenSSL never gives to the kernel. A TLS 1.3 ChangeCipherSpec
 * (RFC 8446, D.4) changes no key, and one of the messages above always follows it.
 *
 * OpenSSL gathers a flight in a buffer, with two exceptions: each of a server's TLS 1.3 tickets, and what a TLS 1.2
 * flight has behind the key that the kernel takes over. These would leave in segments of their own, where SslStream
 * sends one; of two segments the kernel repeats the last one if the peer delays its acknowledgment (RFC 8985, tail loss
 * probe). The callback therefore corks the socket before them.
 */
#include "ktls_messages.h"
#include "ktls_context.h"
#include "ktls_keyupdate.h"
#include "ktls_socket.h"

static bool OffloadsSend(int32_t flags)
{
    return (flags & KTLS_FLAG_ENABLE_KTLS) != 0 && (flags & KTLS_FLAG_RECEIVE_ONLY) == 0;
}

static bool OffloadsReceive(int32_t flags)
{
    return (flags & KTLS_FLAG_ENABLE_KTLS) != 0 && (flags & KTLS_FLAG_SEND_ONLY) == 0;
}

bool KtlsMessages_StartsWithKtls(int32_t flags)
{
    return OffloadsReceive(flags);
}

static void SetKtlsOption(const KtlsOpenSsl* api, SSL* ssl, bool enabled)
{
    (void)(enabled ? api->SSL_set_options(ssl, SSL_OP_ENABLE_KTLS) : api->SSL_clear_options(ssl, SSL_OP_ENABLE_KTLS));
}

static void SetKtlsOptionForNextKey(const KtlsOpenSsl* api, const KtlsConnection* connection, bool written, int type)
{
    int32_t flags = connection->context->flags;
    bool isTls13 = api->SSL_version(connection->ssl) == TLS1_3_VERSION;
    bool writeKeyIsNext = written && (isTls13 || type == SSL3_RT_CHANGE_CIPHER_SPEC);
    SetKtlsOption(api, connection->ssl, writeKeyIsNext ? OffloadsSend(flags) : OffloadsReceive(flags));
}

/* Disables kernel TLS if the socket is in a sockmap. The ClientHello has just been read and the client waits for the
 * response, so that no unread data hides a sockmap. "tls" on top of a sockmap must be avoided: each replaces the proto
 * operations of the other, and no order of closing restores them. */
static void CheckSockmap(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    bool enabled = (connection->context->flags & KTLS_FLAG_ENABLE_KTLS) != 0;
    if (enabled && !connection->inSockmap && KtlsSocket_IsInSockmap(connection->socket))
    {
        connection->inSockmap = true;
        SetKtlsOption(api, connection->ssl, false);
    }
}

/* Returns whether this message, a ChangeCipherSpec or Finished, precedes records that OpenSSL would send one by one. */
static bool PrecedesSingleRecords(
    const KtlsOpenSsl* api, const KtlsConnection* connection, bool written, bool isCipherSpec)
{
    int32_t flags = connection->context->flags;
    if (api->SSL_version(connection->ssl) != TLS1_3_VERSION)
    {
        return written && isCipherSpec && OffloadsSend(flags) && !connection->inSockmap;
    }
    /* A resumed session has one ticket. */
    return !written && !isCipherSpec && connection->context->server && (flags & KTLS_FLAG_NO_TICKETS) == 0 &&
           api->SSL_session_reused(connection->ssl) == 0;
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
    KtlsConnection* connection = KtlsConnection_FromSsl(api, ssl);
    if (connection == NULL)
    {
        return;
    }

    if (isHandshake && written == 0 && connection->established)
    {
        connection->messageCount++;
        KtlsKeyUpdate_OnReceived(connection, message, length);
    }
    int type = isHandshake ? message[0] : SSL3_RT_CHANGE_CIPHER_SPEC;
    bool isClientHello = isHandshake && type == SSL3_MT_CLIENT_HELLO && connection->context->server;
    if (isClientHello && written == 0)
    {
        CheckSockmap(api, connection);
    }
    bool changesKey = isCipherSpec || type == SSL3_MT_FINISHED || type == SSL3_MT_KEY_UPDATE;
    if (connection->inHandshake && !connection->corked && changesKey &&
        PrecedesSingleRecords(api, connection, written != 0, isCipherSpec))
    {
        connection->corked = KtlsSocket_Cork(connection->socket);
    }
    bool limited = (connection->context->flags & (KTLS_FLAG_SEND_ONLY | KTLS_FLAG_RECEIVE_ONLY)) != 0;
    if (limited && changesKey && !connection->inSockmap)
    {
        SetKtlsOptionForNextKey(
            api, connection, written != 0, isCipherSpec ? SSL3_RT_CHANGE_CIPHER_SPEC : SSL3_RT_HANDSHAKE);
    }
}

void KtlsMessages_SetCallback(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    api->SSL_set_msg_callback(connection->ssl, OnMessage);
    if (connection->inSockmap)
    {
        SetKtlsOption(api, connection->ssl, false);
    }
}

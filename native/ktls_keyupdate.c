/* SPDX-License-Identifier: MIT
 *
 * KeyUpdates (RFC 8446, 4.6.3). One that requests a response is processed in two steps:
 *   1. SSL_read, in KtlsNative_Read, calls the message callback, and that calls KtlsKeyUpdate_OnReceived. It clears
 *      request_update in the message and sets keyUpdateRequested.
 *   2. SSL_read then updates the receiving key only. KtlsConnection_Leave reports the request in KtlsResult.keyUpdate,
 *      and the caller answers it with KtlsNative_KeyUpdate while no data is being sent.
 *
 * If OpenSSL saw the request, it would respond in its next write or while it reads the next message, and change the
 * sending key while another thread passes data to the kernel under the old key.
 */
#include "ktls_keyupdate.h"
#include "ktls_call.h"
#include "ktls_result.h"

#include <errno.h>

/* A KeyUpdate consists of the type, a length of 1 in three bytes, and request_update. The buffer belongs to the SSL,
 * and OpenSSL parses it after the callback. If a future libssl parses it earlier, SSL_get_key_update_type reports the
 * request, and KtlsResult_Complete sets KtlsResult.keyUpdate. */
void KtlsKeyUpdate_OnReceived(KtlsConnection* connection, const uint8_t* message, size_t length)
{
    enum
    {
        LENGTH = 5,
        REQUEST_UPDATE = 4
    };
    if (message[0] == SSL3_MT_KEY_UPDATE && length == LENGTH && message[REQUEST_UPDATE] == SSL_KEY_UPDATE_REQUESTED)
    {
        connection->keyUpdateRequested = true;
        ((uint8_t*)(uintptr_t)message)[REQUEST_UPDATE] = SSL_KEY_UPDATE_NOT_REQUESTED;
    }
}

/* Queues the message in OpenSSL once; it stays queued after WANT_WRITE. Returns false if result is final. */
static bool QueueKeyUpdate(const KtlsOpenSsl* api, KtlsConnection* connection, int32_t requestPeer, KtlsResult* result)
{
    if (connection->keyUpdateQueued)
    {
        return true;
    }
    if (!api->SSL_is_init_finished(connection->ssl))
    {
        /* A handshake message of the peer is partly read. OpenSSL cannot send one until it has read the rest. */
        result->status = KTLS_STATUS_WANT_READ;
        return false;
    }
    KtlsResult_Begin(api, result);
    /* This message also answers a pending request of the peer, which only expects a new key. */
    if (api->SSL_key_update(
            connection->ssl, requestPeer != 0 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
    {
        KtlsResult_Fail(api, result);
        return false;
    }
    connection->keyUpdateRequested = false;
    connection->keyUpdateQueued = true;
    return true;
}

int32_t KtlsNative_KeyUpdate(KtlsConnection* connection, int32_t socket, int32_t requestPeer, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t checkError = KtlsConnection_EnterEstablished(connection, socket, result, &api, &ended);
    if (checkError != 0)
    {
        return checkError;
    }
    if (requestPeer != 0 && requestPeer != 1)
    {
        return EINVAL;
    }
    if (ended)
    {
        return 0;
    }
    if (connection->closeNotifySent)
    {
        return EPIPE;
    }
    if (api->SSL_key_update == NULL || api->SSL_get_key_update_type == NULL)
    {
        return ENOSYS;
    }
    /* Before 3.2 OpenSSL changes its own key but not the kernel's: the peer could not decrypt any later record. */
    if (api->SSL_version(connection->ssl) != TLS1_3_VERSION ||
        (api->version < KTLS_OPENSSL_3_2 && KtlsConnection_IsSendOffloaded(api, connection)))
    {
        return ENOTSUP;
    }
    if (!KtlsConnection_ReportSendError(connection, result) && QueueKeyUpdate(api, connection, requestPeer, result))
    {
        KtlsCall_DoHandshake(api, connection->ssl, true, result);
        (void)KtlsConnection_ReportSendError(connection, result);
        KtlsConnection_Leave(api, connection, result);
    }
    return 0;
}

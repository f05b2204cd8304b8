/* SPDX-License-Identifier: MIT
 *
 * Sending a KeyUpdate (RFC 8446, 4.6.3). ktls_read.c processes the KeyUpdates of the peer.
 */
#include "ktls_call.h"
#include "ktls_connection.h"
#include "ktls_result.h"

#include <errno.h>

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

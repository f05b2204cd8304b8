/* SPDX-License-Identifier: MIT
 *
 * The end of sending: close_notify, the records that kernel TLS still holds, and the FIN.
 *
 * Kernel TLS accepts a record as soon as the send buffer has any space, encrypts it, and keeps what does not fit until
 * there is more space (tls_sw.c, tls_tx_records). No call returns how much it keeps, and close(2) and SHUT_WR discard
 * it: TCP's FIN then follows data that is incomplete. A call that sends a record also passes on what was kept before.
 * So nothing is kept if TCP has taken exactly the length of close_notify's record during the call that sends it.
 */
#include "ktls_connection.h"
#include "ktls_result.h"
#include "ktls_socket.h"

#include <errno.h>
#include <sys/socket.h>

enum
{
    RECORD_ALERT = 21,
    ALERT_WARNING = 1,
    ALERT_CLOSE_NOTIFY = 0,
    ALERT_SIZE = 2,
    HEADER_SIZE = 5,
    TYPE_SIZE = 1,  /* TLS 1.3 (RFC 8446, section 5.2) */
    NONCE_SIZE = 8, /* TLS 1.2 with AES, ARIA or SM4 (RFC 5288, section 3) */
    TAG_SIZE = 16,  /* of all ciphers that the kernel has */
    FIRST_CHACHA20 = 0xcca8,
    LAST_CHACHA20 = 0xccae
};

/* Returns the length of a record of kernel TLS that contains an alert. */
static uint64_t AlertRecordSize(const KtlsOpenSsl* api, const SSL* ssl)
{
    uint64_t size = HEADER_SIZE + ALERT_SIZE + TAG_SIZE;
    if (api->SSL_version(ssl) == TLS1_3_VERSION)
    {
        return size + TYPE_SIZE;
    }
    uint16_t cipher = api->SSL_CIPHER_get_protocol_id(api->SSL_get_current_cipher(ssl));
    return cipher >= FIRST_CHACHA20 && cipher <= LAST_CHACHA20 ? size : size + NONCE_SIZE;
}

/* Returns whether TCP has taken more since `before` than the record of an alert, or less: kernel TLS may hold records.
 */
static bool MayHoldRecords(const KtlsOpenSsl* api, const KtlsConnection* connection, const KtlsTcpCounts* before)
{
    KtlsTcpCounts after;
    return KtlsSocket_ReadCounts(connection->socket, &after) &&
           after.written - before->written != AlertRecordSize(api, connection->ssl);
}

static void SendCloseNotify(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    if (KtlsConnection_ReportSendError(connection, result))
    {
        return;
    }
    KtlsTcpCounts before;
    bool counted = connection->sendOffloaded && KtlsSocket_ReadCounts(connection->socket, &before);
    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_shutdown(connection->ssl);
        error = errno;
        /* 0: close_notify is sent, and the peer's has not been received. */
        returned = returned == 0 ? 1 : returned;
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, true, result));

    if (!KtlsConnection_ReportSendError(connection, result) && result->status == KTLS_STATUS_OK)
    {
        connection->closeNotifySent = true;
        connection->mayHoldRecords = counted && MayHoldRecords(api, connection, &before);
    }
    KtlsConnection_Leave(api, connection, result);
}

/* Returns whether TCP has taken everything. Only a record makes kernel TLS pass on what it holds at once, and tell. It
 * is another close_notify: a peer ignores what follows the first one (RFC 8446, section 6.1). It is sent when TCP has
 * sent all that it has taken, because otherwise kernel TLS would probably keep it as well. */
static bool HasPassedAll(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    KtlsTcpCounts before;
    if (!connection->mayHoldRecords || !KtlsSocket_ReadCounts(connection->socket, &before) || before.closed)
    {
        return true;
    }
    if (!KtlsSocket_IsQueueEmpty(connection->socket))
    {
        return false;
    }
    static const uint8_t closeNotify[ALERT_SIZE] = {ALERT_WARNING, ALERT_CLOSE_NOTIFY};
    int32_t error =
        KtlsSocket_SendRecord(connection->socket, RECORD_ALERT, closeNotify, sizeof(closeNotify), MSG_DONTWAIT);
    if (error == 0)
    {
        connection->mayHoldRecords = MayHoldRecords(api, connection, &before);
    }
    else if (error != EAGAIN)
    {
        connection->mayHoldRecords = false; /* the connection has failed: nothing arrives any more */
    }
    return !connection->mayHoldRecords;
}

int32_t KtlsNative_Shutdown(KtlsConnection* connection, int32_t socket, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t checkError = KtlsConnection_EnterEstablished(connection, socket, result, &api, &ended);
    /* A second SSL_shutdown would read until the peer's close_notify. */
    if (checkError == 0 && !ended && !connection->closeNotifySent)
    {
        SendCloseNotify(api, connection, result);
    }
    return checkError;
}

int32_t KtlsNative_CloseSending(KtlsConnection* connection, int32_t socket, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t checkError = KtlsConnection_EnterEstablished(connection, socket, result, &api, &ended);
    if (checkError != 0 || ended)
    {
        return checkError;
    }

    bool corked = !connection->closeNotifySent;
    if (corked)
    {
        KtlsSocket_SetCork(socket, true);
        SendCloseNotify(api, connection, result);
    }
    if (connection->closeNotifySent)
    {
        if (HasPassedAll(api, connection))
        {
            /* The FIN sends what TCP_CORK holds back. A failure means that the peer has reset the connection. */
            (void)shutdown(socket, SHUT_WR);
            return 0;
        }
        result->status = KTLS_STATUS_WANT_WRITE;
    }
    if (corked)
    {
        /* A cork of the caller's ends too: what it holds back must leave. */
        KtlsSocket_SetCork(socket, false);
    }
    KtlsTcpCounts counts;
    if (result->status == KTLS_STATUS_WANT_WRITE && KtlsSocket_ReadCounts(socket, &counts))
    {
        result->bytes = (int64_t)counts.acknowledged;
    }
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "ktls_posthandshake.h"
#include "ktls_call.h"
#include "ktls_context.h"
#include "ktls_result.h"

#include <errno.h>
#include <string.h>

bool KtlsPostHandshake_IsRequest(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    return connection->context->postHandshakeAuth && connection->established &&
           api->SSL_version(connection->ssl) == TLS1_3_VERSION;
}

void KtlsPostHandshake_HideSentShutdown(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    int mode = connection->context->postHandshakeAuth ? api->SSL_get_shutdown(connection->ssl) : 0;
    connection->sentShutdownHidden = (mode & SSL_SENT_SHUTDOWN) != 0;
    if (connection->sentShutdownHidden)
    {
        api->SSL_set_shutdown(connection->ssl, mode & ~SSL_SENT_SHUTDOWN);
    }
}

void KtlsPostHandshake_RestoreSentShutdown(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->sentShutdownHidden)
    {
        api->SSL_set_shutdown(connection->ssl, api->SSL_get_shutdown(connection->ssl) | SSL_SENT_SHUTDOWN);
        connection->sentShutdownHidden = false;
    }
}

int KtlsPostHandshake_OnRequest(KtlsConnection* connection)
{
    if (connection->sentShutdownHidden)
    {
        return 0;
    }
    if (connection->postHandshakeDecision == KTLS_DECISION_MADE)
    {
        connection->postHandshakeDecision = KTLS_DECISION_NONE; /* the next request pauses again */
        return 1;
    }
    connection->postHandshakeDecision = KTLS_DECISION_WAITING;
    return -1;
}

bool KtlsPostHandshake_BeginRead(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->postHandshakeDecision == KTLS_DECISION_WAITING)
    {
        connection->postHandshakeDecision = KTLS_DECISION_MADE;
    }
    /* SSL_read returns decrypted data before it processes another record. */
    return connection->request == KTLS_REQUEST_NONE || connection->responseLost ||
           (connection->request == KTLS_REQUEST_SENT && api->SSL_pending(connection->ssl) > 0);
}

/* Processes control records until application data is available, a handshake message was processed, or more bytes are
 * needed. Consumes no data. */
static void DrainControlRecords(const KtlsOpenSsl* api, const KtlsConnection* connection, KtlsResult* result)
{
    int returned;
    int error;
    do
    {
        uint8_t scratch = 0;
        KtlsResult_Begin(api, result);
        returned = api->SSL_peek(connection->ssl, &scratch, sizeof(scratch));
        error = errno;
        explicit_bzero(&scratch, sizeof(scratch));
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, false, result));
    if (result->status == KTLS_STATUS_OK)
    {
        result->status = KTLS_STATUS_DATA_WAITING;
    }
}

static void GetPeerFinished(const KtlsOpenSsl* api, const SSL* ssl, uint8_t finished[KTLS_FINISHED_MAX])
{
    memset(finished, 0, KTLS_FINISHED_MAX);
    (void)api->SSL_get_peer_finished(ssl, finished, KTLS_FINISHED_MAX);
}

/* Returns whether the response has been processed. Each response ends with a new Finished. */
static bool IsResponseComplete(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    uint8_t finished[KTLS_FINISHED_MAX];
    GetPeerFinished(api, connection->ssl, finished);
    return api->SSL_is_init_finished(connection->ssl) &&
           memcmp(finished, connection->savedPeerFinished, sizeof(finished)) != 0;
}

static bool IsKeyUpdateDue(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    return connection->keyUpdateRequested || connection->keyUpdateQueued ||
           (api->SSL_get_key_update_type != NULL &&
            api->SSL_get_key_update_type(connection->ssl) != SSL_KEY_UPDATE_NONE);
}

/* Queues the request in OpenSSL. If it returns 0 and request is still KTLS_REQUEST_NONE, result has the reason. */
static int32_t QueueRequest(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    SSL* ssl = connection->ssl;
    if (!IsKeyUpdateDue(api, connection) && !api->SSL_is_init_finished(ssl))
    {
        /* A handshake message of the client is partly read. OpenSSL cannot send one until it has read the rest. */
        DrainControlRecords(api, connection, result);
        if (result->status != KTLS_STATUS_WANT_READ || !api->SSL_is_init_finished(ssl))
        {
            return 0;
        }
    }
    /* With a KeyUpdate due, OpenSSL would write only the KeyUpdate and drop the request. */
    if (IsKeyUpdateDue(api, connection))
    {
        return EBUSY;
    }
    if (api->SSL_pending(ssl) > 0)
    {
        result->status = KTLS_STATUS_DATA_WAITING;
        result->pending = 1;
        return 0;
    }

    KtlsResult_Begin(api, result);
    connection->savedVerifyMode = api->SSL_get_verify_mode(ssl);
    GetPeerFinished(api, ssl, connection->savedPeerFinished);
    api->SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    /* OpenSSL sends new tickets after the response. A session resumed from one would have this certificate, but no
     * verify callback would validate it. */
    if (api->SSL_set_num_tickets(ssl, 0) != 1 || api->SSL_verify_client_post_handshake(ssl) != 1)
    {
        KtlsResult_Fail(api, result);
        api->SSL_set_verify(ssl, connection->savedVerifyMode, NULL);
        return 0;
    }
    connection->request = KTLS_REQUEST_QUEUED;
    return 0;
}

static void SendRequest(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    KtlsCall_DoHandshake(api, connection->ssl, true, result);
    if (!KtlsConnection_ReportSendError(connection, result) && result->status == KTLS_STATUS_OK)
    {
        connection->request = KTLS_REQUEST_SENT;
    }
}

static void ReceiveResponse(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    DrainControlRecords(api, connection, result);
    if (!IsResponseComplete(api, connection))
    {
        connection->responseLost = result->status != KTLS_STATUS_WANT_READ &&
                                   result->status != KTLS_STATUS_WANT_WRITE &&
                                   result->status != KTLS_STATUS_DATA_WAITING;
        return;
    }
    connection->request = KTLS_REQUEST_NONE;
    api->SSL_set_verify(connection->ssl, connection->savedVerifyMode, NULL);
    /* The next Read reports what followed the response. */
    if (result->status == KTLS_STATUS_WANT_READ || result->status == KTLS_STATUS_DATA_WAITING ||
        result->status == KTLS_STATUS_CLOSE_NOTIFY)
    {
        result->status = KTLS_STATUS_OK;
    }
}

static int32_t AdvanceRequest(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    if (connection->request == KTLS_REQUEST_NONE)
    {
        int32_t error = QueueRequest(api, connection, result);
        if (connection->request == KTLS_REQUEST_NONE)
        {
            return error;
        }
    }
    if (connection->request == KTLS_REQUEST_QUEUED)
    {
        SendRequest(api, connection, result);
    }
    if (connection->request == KTLS_REQUEST_SENT)
    {
        ReceiveResponse(api, connection, result);
    }
    return 0;
}

int32_t KtlsNative_RequestCertificate(
    KtlsConnection* connection, int32_t socket, KtlsVerifyCallback verify, intptr_t state, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t error = KtlsConnection_EnterEstablished(connection, socket, result, &api, &ended);
    if (error != 0)
    {
        return error;
    }
    if (verify == NULL || !connection->context->server)
    {
        return EINVAL;
    }
    if (ended)
    {
        return 0;
    }
    if (connection->closeNotifySent && connection->request == KTLS_REQUEST_NONE)
    {
        return EPIPE;
    }
    if (!KtlsOpenSsl_HasPostHandshakeAuth(api) || api->SSL_version(connection->ssl) != TLS1_3_VERSION)
    {
        return ENOTSUP;
    }

    connection->verify = verify;
    connection->verifyState = state;
    connection->messageCount = 0;
    error = AdvanceRequest(api, connection, result);
    connection->verify = NULL;
    connection->verifyState = 0;
    result->pending |= KtlsReadAhead_MayHaveMore(&connection->readAhead);
    result->messages = connection->messageCount;
    KtlsConnection_Leave(api, connection, result);
    return error;
}

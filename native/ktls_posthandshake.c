/* SPDX-License-Identifier: MIT */
#include "ktls_posthandshake.h"
#include "ktls_context.h"
#include "ktls_export.h"
#include "ktls_io.h"
#include "ktls_result.h"

#include <errno.h>
#include <string.h>

bool KtlsPostHandshake_IsSupported(const KtlsOpenSsl* api)
{
    return api->SSL_CTX_set_post_handshake_auth != NULL && api->SSL_verify_client_post_handshake != NULL &&
           api->SSL_set_num_tickets != NULL;
}

bool KtlsPostHandshake_IsRequest(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    return connection->context->answersLater && connection->established &&
           api->SSL_version(connection->ssl) == TLS1_3_VERSION;
}

void KtlsPostHandshake_HideClose(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    int mode = connection->context->answersLater ? api->SSL_get_shutdown(connection->ssl) : 0;
    connection->closeBegun = (mode & SSL_SENT_SHUTDOWN) != 0;
    if (connection->closeBegun)
    {
        api->SSL_set_shutdown(connection->ssl, mode & ~SSL_SENT_SHUTDOWN);
    }
}

void KtlsPostHandshake_ShowClose(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->closeBegun)
    {
        api->SSL_set_shutdown(connection->ssl, api->SSL_get_shutdown(connection->ssl) | SSL_SENT_SHUTDOWN);
        connection->closeBegun = false;
    }
}

int KtlsPostHandshake_Pause(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->closeBegun)
    {
        return 0;
    }
    KtlsRetry* retry = connection->retry;
    if (retry != NULL)
    {
        /* From here OpenSSL writes what it is given at once. From outside it would go on with the handshake first, and
         * end the connection over the half record in the way of the answer. */
        KtlsIo_Write(api, connection->ssl, retry->buffer, retry->length, retry->result);
        retry->done = true;
        return -1;
    }
    if (connection->answerDecision == KTLS_DECISION_MADE)
    {
        connection->answerDecision = KTLS_DECISION_NONE; /* the next request pauses again */
        return 1;
    }
    connection->answerDecision = KTLS_DECISION_WAITING;
    return -1;
}

void KtlsPostHandshake_FinishWrite(
    const KtlsOpenSsl* api, KtlsConnection* connection, const uint8_t* buffer, int32_t length, KtlsResult* result)
{
    KtlsRetry retry = {buffer, length, false, result};
    KtlsResult_Begin(api, result);
    connection->retry = &retry;
    int returned = api->SSL_do_handshake(connection->ssl);
    int error = errno;
    connection->retry = NULL;
    if (!retry.done)
    {
        (void)KtlsResult_Complete(api, connection->ssl, returned, error, true, result);
    }
    KtlsOpenSsl_ClearErrors(api);
}

bool KtlsPostHandshake_MayRead(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->answerDecision == KTLS_DECISION_WAITING && !connection->writeWaits)
    {
        connection->answerDecision = KTLS_DECISION_MADE;
    }
    /* What is decrypted is handed out before anything else is looked at. */
    return connection->request == KTLS_REQUEST_NONE || connection->answerLost ||
           (connection->request == KTLS_REQUEST_OUT && api->SSL_pending(connection->ssl) > 0);
}

/* Takes control records until data or nothing is there, and consumes no data. */
static void Look(const KtlsOpenSsl* api, const KtlsConnection* connection, KtlsResult* result)
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

/* Each answer ends with a Finished of its own. */
static bool IsAnswered(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    uint8_t finished[KTLS_FINISHED_MAX];
    GetPeerFinished(api, connection->ssl, finished);
    return api->SSL_is_init_finished(connection->ssl) &&
           memcmp(finished, connection->peerFinished, sizeof(finished)) != 0;
}

static bool IsUpdateDue(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    return connection->updateAsked || connection->updateStarted ||
           (api->SSL_get_key_update_type != NULL &&
            api->SSL_get_key_update_type(connection->ssl) != SSL_KEY_UPDATE_NONE);
}

/* Puts the request into OpenSSL. result->status other than OK: it could not yet, or not at all. */
static int32_t Queue(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    SSL* ssl = connection->ssl;
    if (!IsUpdateDue(api, connection) && !api->SSL_is_init_finished(ssl))
    {
        /* Half of a handshake message of the client's is in; OpenSSL can send none before it has read the rest. */
        Look(api, connection, result);
        if (result->status != KTLS_STATUS_WANT_READ || !api->SSL_is_init_finished(ssl))
        {
            return 0;
        }
    }
    /* OpenSSL would write the KeyUpdate alone and forget the request; under half a record it would end. */
    if (IsUpdateDue(api, connection) || connection->writeWaits)
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
    connection->verifyMode = api->SSL_get_verify_mode(ssl);
    GetPeerFinished(api, ssl, connection->peerFinished);
    api->SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    /* OpenSSL follows the answer with new tickets, which would show this certificate where nobody judges it. */
    if (api->SSL_set_num_tickets(ssl, 0) != 1 || api->SSL_verify_client_post_handshake(ssl) != 1)
    {
        KtlsResult_Refused(api, result);
        api->SSL_set_verify(ssl, connection->verifyMode, NULL);
        return 0;
    }
    connection->request = KTLS_REQUEST_QUEUED;
    return 0;
}

static void Send(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_do_handshake(connection->ssl);
        error = errno;
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, true, result));
    if (result->status == KTLS_STATUS_OK)
    {
        connection->request = KTLS_REQUEST_OUT;
    }
}

static void Await(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    Look(api, connection, result);
    if (!IsAnswered(api, connection))
    {
        connection->answerLost = result->status != KTLS_STATUS_WANT_READ && result->status != KTLS_STATUS_WANT_WRITE &&
                                 result->status != KTLS_STATUS_DATA_WAITING;
        return;
    }
    connection->request = KTLS_REQUEST_NONE;
    api->SSL_set_verify(connection->ssl, connection->verifyMode, NULL);
    /* What came after the answer is for the next Read, which meets it again. */
    if (result->status == KTLS_STATUS_WANT_READ || result->status == KTLS_STATUS_DATA_WAITING ||
        result->status == KTLS_STATUS_CLOSE_NOTIFY)
    {
        result->status = KTLS_STATUS_OK;
    }
}

static int32_t Advance(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    if (connection->request == KTLS_REQUEST_NONE)
    {
        int32_t refusal = Queue(api, connection, result);
        if (connection->request == KTLS_REQUEST_NONE)
        {
            return refusal;
        }
    }
    if (connection->request == KTLS_REQUEST_QUEUED)
    {
        Send(api, connection, result);
    }
    if (connection->request == KTLS_REQUEST_OUT)
    {
        Await(api, connection, result);
    }
    return 0;
}

int32_t KtlsNative_RequestCertificate(
    KtlsConnection* connection, int32_t socket, KtlsVerifyCallback verify, intptr_t state, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t refusal = KtlsIo_Enter(connection, socket, result, &api, &ended);
    if (refusal != 0)
    {
        return refusal;
    }
    if (verify == NULL || !connection->context->server)
    {
        return EINVAL;
    }
    if (ended)
    {
        return 0;
    }
    if (connection->closeSent && connection->request == KTLS_REQUEST_NONE)
    {
        return EPIPE;
    }
    if (!KtlsPostHandshake_IsSupported(api) || api->SSL_version(connection->ssl) != TLS1_3_VERSION)
    {
        return ENOTSUP;
    }

    connection->verify = verify;
    connection->verifyState = state;
    refusal = Advance(api, connection, result);
    connection->verify = NULL;
    connection->verifyState = 0;
    KtlsIo_Settle(api, connection, result);
    return refusal;
}

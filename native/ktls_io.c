/* SPDX-License-Identifier: MIT */
#include "ktls_io.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_posthandshake.h"
#include "ktls_result.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

bool KtlsIo_IsSendOffloaded(const KtlsOpenSsl* api, const SSL* ssl)
{
    BIO* bio = api->SSL_get_wbio(ssl);
    return bio != NULL && api->BIO_ctrl(bio, BIO_CTRL_GET_KTLS_SEND, 0, NULL) > 0;
}

bool KtlsIo_IsReceiveOffloaded(const KtlsOpenSsl* api, const SSL* ssl)
{
    BIO* bio = api->SSL_get_rbio(ssl);
    return bio != NULL && api->BIO_ctrl(bio, BIO_CTRL_GET_KTLS_RECV, 0, NULL) > 0;
}

/* A record that is refused leaves its error on the socket, where OpenSSL's alert would meet it instead of being sent
 * (RFC 8446, section 5.2). Asking for the error takes it away. */
static void TakeError(const KtlsOpenSsl* api, BIO* bio)
{
    int socket = -1;
    int pending = 0;
    socklen_t size = sizeof(pending);
    if (api->BIO_ctrl(bio, BIO_C_GET_FD, 0, &socket) >= 0)
    {
        (void)getsockopt(socket, SOL_SOCKET, SO_ERROR, &pending, &size);
    }
}

/* OpenSSL answers the end of an established connection with an alert, and every alert spoils the session. But without
 * close_notify only data may be missing: the session stays good (RFC 5246, 7.2.1). After a close_notify, which this
 * looks like, OpenSSL does neither. */
static void SpareSession(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    if (connection->established && !connection->context->server)
    {
        api->SSL_set_shutdown(connection->ssl, api->SSL_get_shutdown(connection->ssl) | SSL_SENT_SHUTDOWN);
    }
}

/* What OpenSSL has an alert for, where the kernel decrypts. */
static bool IsRefusal(int error)
{
    return error == EBADMSG || error == EMSGSIZE || error == EINVAL;
}

/* Makes a read of OpenSSL's fail with the kernel's refusal, of which it makes an alert; behind close_notify it makes
 * none, if it is told of that again. */
static long Refuse(const KtlsOpenSsl* api, KtlsConnection* connection, BIO* bio, int error)
{
    KtlsPostHandshake_ShowClose(api, connection);
    api->BIO_clear_flags(bio, BIO_FLAGS_RETRY | BIO_FLAGS_IN_EOF);
    TakeError(api, bio);
    errno = error;
    return -1;
}

/* OpenSSL is about to read the socket: the kernel may have told a receive of the caller's why that would be in vain. */
static long BeforeRead(const KtlsOpenSsl* api, KtlsConnection* connection, BIO* bio, int returned)
{
    return IsRefusal(connection->receiveError) ? Refuse(api, connection, bio, connection->receiveError) : returned;
}

static long AfterRead(const KtlsOpenSsl* api, KtlsConnection* connection, BIO* bio, int returned, int error)
{
    bool isUnnamed = connection->receiveError == EIO;
    connection->receiveError = 0;
    if (isUnnamed && (returned == 0 || (returned < 0 && error == EAGAIN)))
    {
        /* A record that is not data would have been here, and one that cannot be decrypted fails again. */
        return Refuse(api, connection, bio, EBADMSG);
    }
    if (returned < 0 && IsRefusal(error))
    {
        return Refuse(api, connection, bio, error);
    }
    if (returned == 0)
    {
        connection->finSeen = true;
        SpareSession(api, connection);
    }
    errno = error;
    return returned;
}

static long OnRead(
    BIO* bio, int operation, const char* argument, size_t length, int integer, long number, int returned,
    size_t* processed)
{
    (void)argument, (void)length, (void)integer, (void)number, (void)processed;
    int error = errno;
    if (operation != BIO_CB_READ && operation != BIO_CB_READ_RETURN)
    {
        return returned;
    }
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = (KtlsConnection*)(void*)api->BIO_get_callback_arg(bio);
    return operation == BIO_CB_READ ? BeforeRead(api, connection, bio, returned)
                                    : AfterRead(api, connection, bio, returned, error);
}

void KtlsIo_WatchReads(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    BIO* bio = api->SSL_get_rbio(connection->ssl);
    api->BIO_set_callback_arg(bio, (char*)connection);
    api->BIO_set_callback_ex(bio, OnRead);
}

int32_t KtlsIo_Enter(
    const KtlsConnection* connection, int32_t socket, KtlsResult* result, const KtlsOpenSsl** api, bool* ended)
{
    int32_t refusal = KtlsConnection_Enter(connection, socket, result, api);
    if (refusal != 0)
    {
        return refusal;
    }
    *ended = connection->failure.status != KTLS_STATUS_OK;
    if (*ended)
    {
        *result = connection->failure;
        return 0;
    }
    return connection->established ? 0 : ENOTCONN;
}

/* OpenSSL forgets the update's type when it builds the message, and leaves its handshake state once it is out. */
void KtlsIo_Settle(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    if (connection->updateStarted)
    {
        connection->updateStarted = result->keyUpdate != 0 || !api->SSL_is_init_finished(connection->ssl);
        result->keyUpdate = connection->updateStarted;
    }
    result->keyUpdate |= connection->updateAsked;
    KtlsConnection_NoteFailure(api, connection, result);
}

int32_t KtlsNative_AllowTruncation(KtlsConnection* connection)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection))
    {
        return EINVAL;
    }
    if (!connection->established)
    {
        return ENOTCONN;
    }
    (void)api->SSL_set_options(connection->ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
    connection->allowsTruncation = true;
    return 0;
}

/* Whether a FIN came within a record. "RH" is OpenSSL's word for waiting for a record's header. Where the kernel reads
 * records, OpenSSL sees none in part, but their bytes stay with TCP until they are whole. */
static bool IsWithinRecord(const KtlsOpenSsl* api, const KtlsConnection* connection, int32_t socket)
{
    if (KtlsIo_IsReceiveOffloaded(api, connection->ssl))
    {
        int unread = 0;
        return ioctl(socket, FIONREAD, &unread) == 0 && unread > 0;
    }
    return strcmp(api->SSL_rstate_string(connection->ssl), "RH") != 0;
}

/* OpenSSL then takes any FIN for a close_notify, also one within a record, part of whose header counts as pending. */
static void FindTruncatedRecord(
    const KtlsOpenSsl* api, const KtlsConnection* connection, int32_t socket, KtlsResult* result)
{
    if (connection->finSeen && connection->allowsTruncation && result->status == KTLS_STATUS_CLOSE_NOTIFY &&
        (result->pending != 0 || IsWithinRecord(api, connection, socket)))
    {
        result->status = KTLS_STATUS_UNEXPECTED_EOF;
    }
}

int32_t KtlsNative_ReceiveFailed(KtlsConnection* connection, int32_t socket, int32_t error)
{
    KtlsResult ignored;
    const KtlsOpenSsl* api = NULL;
    int32_t refusal = KtlsConnection_Enter(connection, socket, &ignored, &api);
    if (refusal != 0)
    {
        return refusal;
    }
    if (error != EIO && !IsRefusal(error))
    {
        return EINVAL;
    }
    if (KtlsIo_IsReceiveOffloaded(api, connection->ssl))
    {
        connection->receiveError = error;
    }
    return 0;
}

int32_t KtlsNative_Read(
    KtlsConnection* connection, int32_t socket, uint8_t* buffer, int32_t capacity, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t refusal = KtlsIo_Enter(connection, socket, result, &api, &ended);
    if (refusal != 0)
    {
        return refusal;
    }
    if (capacity < 0 || (capacity > 0 && buffer == NULL))
    {
        return EINVAL;
    }
    if (ended)
    {
        return 0;
    }
    if (!KtlsPostHandshake_MayRead(api, connection))
    {
        return EBUSY;
    }

    int returned;
    int error;
    connection->messages = 0;
    do
    {
        uint8_t scratch = 0;
        KtlsResult_Begin(api, result);
        KtlsPostHandshake_HideClose(api, connection);
        returned = capacity > 0 ? api->SSL_read(connection->ssl, buffer, capacity)
                                : api->SSL_peek(connection->ssl, &scratch, sizeof(scratch));
        error = errno;
        KtlsPostHandshake_ShowClose(api, connection);
        explicit_bzero(&scratch, sizeof(scratch));
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, false, result));

    FindTruncatedRecord(api, connection, socket, result);
    if (result->status == KTLS_STATUS_OK && capacity > 0)
    {
        result->bytes = returned;
    }
    result->newSession = connection->session != NULL;
    result->messages = connection->messages;
    KtlsIo_Settle(api, connection, result);
    return 0;
}

void KtlsIo_Write(const KtlsOpenSsl* api, SSL* ssl, const uint8_t* buffer, int32_t length, KtlsResult* result)
{
    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_write(ssl, buffer, length);
        error = errno;
    } while (KtlsResult_Complete(api, ssl, returned, error, true, result));
    result->bytes = result->status == KTLS_STATUS_OK ? returned : 0;
}

int32_t KtlsNative_Write(
    KtlsConnection* connection, int32_t socket, const uint8_t* buffer, int32_t length, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t refusal = KtlsIo_Enter(connection, socket, result, &api, &ended);
    if (refusal != 0)
    {
        return refusal;
    }
    if (length < 1 || buffer == NULL)
    {
        return EINVAL;
    }
    if (ended)
    {
        return 0;
    }
    if (connection->closeSent)
    {
        return EPIPE;
    }
    if (KtlsIo_IsSendOffloaded(api, connection->ssl))
    {
        return EPERM;
    }
    bool paused = connection->answerDecision == KTLS_DECISION_WAITING;
    if (paused && !connection->writeWaits)
    {
        return EBUSY;
    }

    if (paused)
    {
        KtlsPostHandshake_FinishWrite(api, connection, buffer, length, result);
    }
    else
    {
        KtlsIo_Write(api, connection->ssl, buffer, length, result);
    }
    connection->writeWaits = result->status == KTLS_STATUS_WANT_WRITE;
    KtlsIo_Settle(api, connection, result);
    return 0;
}

int32_t KtlsNative_Shutdown(KtlsConnection* connection, int32_t socket, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t refusal = KtlsIo_Enter(connection, socket, result, &api, &ended);
    /* A further SSL_shutdown would read, in search of the peer's close_notify. */
    if (refusal != 0 || ended || connection->closeSent)
    {
        return refusal;
    }

    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_shutdown(connection->ssl);
        error = errno;
        /* 0: sent, and the peer's has not come yet. */
        returned = returned == 0 ? 1 : returned;
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, true, result));

    connection->closeSent |= result->status == KTLS_STATUS_OK;
    KtlsIo_Settle(api, connection, result);
    return 0;
}

/* Queues the message in OpenSSL once; what is queued survives WANT_WRITE. Returns false where result is final. */
static bool StartKeyUpdate(const KtlsOpenSsl* api, KtlsConnection* connection, int32_t requestPeer, KtlsResult* result)
{
    if (connection->updateStarted)
    {
        return true;
    }
    if (!api->SSL_is_init_finished(connection->ssl))
    {
        /* Half of a handshake message of the peer's is in; OpenSSL can send none before it has read the rest. */
        result->status = KTLS_STATUS_WANT_READ;
        return false;
    }
    KtlsResult_Begin(api, result);
    /* It also serves as the answer that is due, where one is: the peer only waits for new keys. */
    if (api->SSL_key_update(
            connection->ssl, requestPeer != 0 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
    {
        KtlsResult_Refused(api, result);
        return false;
    }
    connection->updateAsked = false;
    connection->updateStarted = true;
    return true;
}

int32_t KtlsNative_KeyUpdate(KtlsConnection* connection, int32_t socket, int32_t requestPeer, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t refusal = KtlsIo_Enter(connection, socket, result, &api, &ended);
    if (refusal != 0)
    {
        return refusal;
    }
    if (requestPeer != 0 && requestPeer != 1)
    {
        return EINVAL;
    }
    if (ended)
    {
        return 0;
    }
    if (connection->closeSent)
    {
        return EPIPE;
    }
    if (api->SSL_key_update == NULL || api->SSL_get_key_update_type == NULL)
    {
        return ENOSYS;
    }
    /* Before 3.2 OpenSSL changes its own key and leaves the kernel's: every later byte would be garbage. */
    if (api->SSL_version(connection->ssl) != TLS1_3_VERSION ||
        (api->version < KTLS_OPENSSL_3_2 && KtlsIo_IsSendOffloaded(api, connection->ssl)))
    {
        return ENOTSUP;
    }
    if (!StartKeyUpdate(api, connection, requestPeer, result))
    {
        return 0;
    }

    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_do_handshake(connection->ssl);
        error = errno;
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, true, result));

    KtlsIo_Settle(api, connection, result);
    return 0;
}

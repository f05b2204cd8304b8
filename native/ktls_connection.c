/* SPDX-License-Identifier: MIT */
#include "ktls_connection.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

bool KtlsConnection_IsValid(const KtlsConnection* connection)
{
    return connection != NULL && connection->magic == KTLS_CONNECTION_MAGIC;
}

KtlsConnection* KtlsConnection_FromSsl(const KtlsOpenSsl* api, const SSL* ssl)
{
    KtlsConnection* connection = api->SSL_get_ex_data(ssl, api->connectionIndex);
    return KtlsConnection_IsValid(connection) ? connection : NULL;
}

int32_t KtlsConnection_Enter(
    const KtlsConnection* connection, int32_t socket, KtlsResult* result, const KtlsOpenSsl** api)
{
    if (result == NULL)
    {
        return EINVAL;
    }
    memset(result, 0, sizeof(*result));
    *api = KtlsOpenSsl_Get();
    if (*api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection))
    {
        return EINVAL;
    }
    return socket == connection->socket ? 0 : EBADF;
}

int32_t KtlsConnection_EnterEstablished(
    const KtlsConnection* connection, int32_t socket, KtlsResult* result, const KtlsOpenSsl** api, bool* ended)
{
    int32_t error = KtlsConnection_Enter(connection, socket, result, api);
    if (error != 0)
    {
        return error;
    }
    *ended = connection->failure.status != KTLS_STATUS_OK;
    if (*ended)
    {
        *result = connection->failure;
        return 0;
    }
    return connection->established ? 0 : ENOTCONN;
}

/* Returns whether a FIN truncated a record. "RH" is OpenSSL's state while it waits for a record header. If the kernel
 * decrypts, OpenSSL never has a partial record, but TCP keeps the bytes of an incomplete record in its queue. */
static bool IsWithinRecord(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    if (KtlsConnection_IsReceiveOffloaded(api, connection))
    {
        int unread = 0;
        return ioctl(connection->socket, FIONREAD, &unread) == 0 && unread > 0;
    }
    return strcmp(api->SSL_rstate_string(connection->ssl), "RH") != 0;
}

/* Distinguishes a FIN from a close_notify. OpenSSL treats every FIN as a close_notify, even within a record
 * (SSL_OP_IGNORE_UNEXPECTED_EOF). A partial record header counts as pending. */
static void DetectTruncation(const KtlsOpenSsl* api, const KtlsConnection* connection, KtlsResult* result)
{
    if (connection->finReceived && result->status == KTLS_STATUS_CLOSE_NOTIFY)
    {
        bool isWithinRecord = result->pending != 0 || IsWithinRecord(api, connection);
        result->status = isWithinRecord ? KTLS_STATUS_UNEXPECTED_EOF : KTLS_STATUS_EOF;
    }
}

static void SetSystemError(KtlsResult* result, int32_t error)
{
    result->status = KTLS_STATUS_SYSCALL;
    result->sysErrno = error;
    result->bytes = 0;
}

static void ReportReadError(KtlsConnection* connection, KtlsResult* result)
{
    if (connection->bioReadError != 0 && result->status == KTLS_STATUS_WANT_READ)
    {
        SetSystemError(result, connection->bioReadError);
    }
    connection->bioReadError = 0;
}

bool KtlsConnection_ReportSendError(KtlsConnection* connection, KtlsResult* result)
{
    int32_t* sendError = &connection->held.sendError;
    (void)pthread_mutex_lock(&connection->held.mutex);
    int32_t error = *sendError;
    if (error != 0 && result->status <= KTLS_STATUS_WANT_WRITE)
    {
        SetSystemError(result, error);
        /* TCP reports the cause of its end once. */
        *sendError = error == ENOMEM || error == ENOBUFS ? error : EPIPE;
    }
    (void)pthread_mutex_unlock(&connection->held.mutex);
    return error != 0;
}

/* OpenSSL resets the type of the KeyUpdate when it builds the message, and finishes its handshake state when the
 * message is written. */
void KtlsConnection_Leave(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
{
    if (connection->keyUpdateQueued)
    {
        connection->keyUpdateQueued = result->keyUpdate != 0 || !api->SSL_is_init_finished(connection->ssl);
        result->keyUpdate = connection->keyUpdateQueued;
    }
    result->keyUpdate |= connection->keyUpdateRequested;
    ReportReadError(connection, result);
    DetectTruncation(api, connection, result);
    KtlsConnection_SaveFailure(api, connection, result);
}

void KtlsConnection_SaveFailure(const KtlsOpenSsl* api, KtlsConnection* connection, const KtlsResult* result)
{
    bool mayBeFatal = result->status == KTLS_STATUS_TLS_ERROR || result->status == KTLS_STATUS_UNEXPECTED_EOF;
    /* OpenSSL enters its handshake state after a fatal error, but not if it only rejects a call. SSL_shutdown rejects
     * the call while a handshake message is partly read, which is not fatal. */
    if (mayBeFatal && !api->SSL_is_init_finished(connection->ssl) && result->reason != SSL_R_SHUTDOWN_WHILE_IN_INIT)
    {
        connection->failure = *result;
    }
}

bool KtlsReadAhead_HoldsBytes(const KtlsReadAhead* ahead)
{
    return ahead->start < ahead->end;
}

bool KtlsReadAhead_MayHaveMore(const KtlsReadAhead* ahead)
{
    return KtlsReadAhead_HoldsBytes(ahead) || ahead->socketMayHaveMore;
}

bool KtlsConnection_IsSendOffloaded(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    BIO* bio = api->SSL_get_wbio(connection->ssl);
    return bio != NULL && api->BIO_ctrl(bio, BIO_CTRL_GET_KTLS_SEND, 0, NULL) > 0;
}

bool KtlsConnection_IsReceiveOffloaded(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    BIO* bio = api->SSL_get_rbio(connection->ssl);
    return bio != NULL && api->BIO_ctrl(bio, BIO_CTRL_GET_KTLS_RECV, 0, NULL) > 0;
}

/* SPDX-License-Identifier: MIT */
#include "ktls_bio.h"
#include "ktls_posthandshake.h"

#include <errno.h>
#include <sys/socket.h>

/* Returns whether the kernel reports a bad record with this error, for which OpenSSL has an alert. */
static bool IsRecordError(int error)
{
    return error == EBADMSG || error == EMSGSIZE || error == EINVAL;
}

/* Clears the error that the kernel left on the socket for a bad record. Otherwise OpenSSL would receive it when it
 * sends the alert (RFC 8446, section 5.2). Getting SO_ERROR clears it. */
static void ClearSocketError(const KtlsOpenSsl* api, BIO* bio)
{
    int socket = -1;
    int pending = 0;
    socklen_t size = sizeof(pending);
    if (api->BIO_ctrl(bio, BIO_C_GET_FD, 0, &socket) >= 0)
    {
        (void)getsockopt(socket, SOL_SOCKET, SO_ERROR, &pending, &size);
    }
}

/* Makes a read by OpenSSL fail with the kernel's record error, for which OpenSSL sends an alert. SSL_SENT_SHUTDOWN is
 * restored first, because OpenSSL must not send an alert after close_notify. */
static long FailRead(const KtlsOpenSsl* api, KtlsConnection* connection, BIO* bio, int error)
{
    KtlsPostHandshake_RestoreSentShutdown(api, connection);
    api->BIO_clear_flags(bio, BIO_FLAGS_RETRY | BIO_FLAGS_IN_EOF);
    ClearSocketError(api, bio);
    errno = error;
    return -1;
}

/* A protected ChangeCipherSpec must end a TLS 1.3 connection (RFC 8446, section 5). If the kernel has decrypted it,
 * OpenSSL 3.5 mistakes it for an unprotected one and drops it. Therefore its type is replaced with an invalid one. */
static void RejectChangeCipherSpec(
    const KtlsOpenSsl* api, const KtlsConnection* connection, uint8_t* record, int returned)
{
    if (returned > 0 && record != NULL && record[0] == SSL3_RT_CHANGE_CIPHER_SPEC && connection->established &&
        api->SSL_version(connection->ssl) == TLS1_3_VERSION && KtlsConnection_IsReceiveOffloaded(api, connection))
    {
        record[0] = 0;
    }
}

static long AfterRead(const KtlsOpenSsl* api, KtlsConnection* connection, BIO* bio, int returned, int error)
{
    bool receiveFailedWithEio = connection->receiveError == EIO;
    connection->receiveError = 0;
    if (receiveFailedWithEio && (returned == 0 || (returned < 0 && error == EAGAIN)))
    {
        /* A control record would still be in the socket, and a record that cannot be decrypted would fail again. So the
         * kernel's parser has rejected the record, and no longer has it. */
        return FailRead(api, connection, bio, EBADMSG);
    }
    if (returned < 0 && IsRecordError(error))
    {
        return FailRead(api, connection, bio, error);
    }
    if (returned == 0)
    {
        connection->finReceived = true;
    }
    errno = error;
    return returned;
}

/* OpenSSL 4.0 takes the end of a stream that the kernel decrypts for a record without a type, and reports EMSGSIZE, as
 * the kernel does for a record that is too long. Therefore it reads only a record that is there. Returns 0 or less in
 * place of a read that would find none. */
static long LookForRecord(const KtlsOpenSsl* api, KtlsConnection* connection, BIO* bio, int returned)
{
    uint8_t first;
    if (api->version < KTLS_OPENSSL_4_0 || !KtlsConnection_IsReceiveOffloaded(api, connection))
    {
        return returned;
    }
    ssize_t found;
    do
    {
        found = recv(connection->socket, &first, sizeof(first), MSG_PEEK | MSG_DONTWAIT);
    } while (found < 0 && errno == EINTR);
    /* EIO: a record that is not data. */
    if (found > 0 || (found < 0 && errno == EIO))
    {
        return returned;
    }
    int error = found < 0 ? errno : 0;
    api->BIO_clear_flags(bio, BIO_FLAGS_RETRY | BIO_FLAGS_IN_EOF);
    if (found == 0)
    {
        api->BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    }
    else if (error == EAGAIN)
    {
        api->BIO_set_flags(bio, BIO_FLAGS_RETRY_READ);
    }
    return AfterRead(api, connection, bio, (int)found, error);
}

/* Runs before OpenSSL reads the socket. If the caller's receive has already failed with a record error, the read fails
 * too, because the kernel does not report the error again. */
static long BeforeRead(const KtlsOpenSsl* api, KtlsConnection* connection, BIO* bio, int returned)
{
    return IsRecordError(connection->receiveError) ? FailRead(api, connection, bio, connection->receiveError)
                                                   : LookForRecord(api, connection, bio, returned);
}

static long OnRead(
    BIO* bio, int operation, const char* argument, size_t length, int integer, long number, int returned,
    size_t* processed)
{
    (void)length, (void)integer, (void)number, (void)processed;
    int error = errno;
    if (operation != BIO_CB_READ && operation != BIO_CB_READ_RETURN)
    {
        return returned;
    }
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = (KtlsConnection*)(void*)api->BIO_get_callback_arg(bio);
    if (operation == BIO_CB_READ)
    {
        return BeforeRead(api, connection, bio, returned);
    }
    RejectChangeCipherSpec(api, connection, (uint8_t*)(uintptr_t)argument, returned);
    return AfterRead(api, connection, bio, returned, error);
}

void KtlsBio_WatchReads(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    BIO* bio = api->SSL_get_rbio(connection->ssl);
    api->BIO_set_callback_arg(bio, (char*)connection);
    api->BIO_set_callback_ex(bio, OnRead);
}

int32_t KtlsNative_ReceiveFailed(KtlsConnection* connection, int32_t socket, int32_t error)
{
    KtlsResult ignored;
    const KtlsOpenSsl* api = NULL;
    int32_t checkError = KtlsConnection_Enter(connection, socket, &ignored, &api);
    if (checkError != 0)
    {
        return checkError;
    }
    if (error != EIO && !IsRecordError(error))
    {
        return EINVAL;
    }
    if (KtlsConnection_IsReceiveOffloaded(api, connection) && !IsRecordError(connection->receiveError))
    {
        connection->receiveError = error;
    }
    return 0;
}

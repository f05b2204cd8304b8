/* SPDX-License-Identifier: MIT
 *
 * Sending a file with sendfile(2) if the kernel encrypts.
 */
#include "ktls_connection.h"
#include "ktls_socket.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <sys/types.h>

_Static_assert(sizeof(off_t) == sizeof(int64_t), "files over 2 GiB");

int32_t KtlsNative_SendFile(
    KtlsConnection* connection, int32_t socket, int32_t file, int64_t offset, int32_t count, int32_t last,
    KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    int32_t error = KtlsConnection_Enter(connection, socket, result, &api);
    if (error != 0)
    {
        return error;
    }
    if (count < 1 || offset < 0 || offset > INT64_MAX - count)
    {
        return EINVAL;
    }
    if (!connection->established)
    {
        return ENOTCONN;
    }
    if (connection->closeNotifySent)
    {
        return EPIPE;
    }
    /* If OpenSSL encrypts, sendfile would send plaintext. */
    if (!connection->sendOffloaded)
    {
        return EPERM;
    }

    /* sendfile has no flag like MSG_MORE. The records wait in the socket for the end of the call. In front of others
     * they need not: they wait for the peer anyway. */
    bool corked = last != 0 && KtlsSocket_MayShareSegments(socket, (size_t)count) && KtlsSocket_Cork(socket);
    off_t position = offset;
    ssize_t sent;
    do
    {
        sent = sendfile(socket, file, &position, (size_t)count);
    } while (sent < 0 && errno == EINTR);
    int sendError = errno;
    if (corked)
    {
        KtlsSocket_SetCork(socket, false);
    }

    if (sent >= 0)
    {
        result->bytes = sent;
    }
    else if (sendError == EAGAIN)
    {
        result->status = KTLS_STATUS_WANT_WRITE;
    }
    else
    {
        result->sysErrno = sendError;
        result->status = KTLS_STATUS_SYSCALL;
    }
    return 0;
}

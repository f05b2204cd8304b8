/* SPDX-License-Identifier: MIT
 *
 * File to socket without a look at the bytes: sendfile(2) where the kernel encrypts.
 */
#include "ktls_connection.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <sys/types.h>

_Static_assert(sizeof(off_t) == sizeof(int64_t), "files over 2 GiB");

int32_t KtlsNative_SendFile(
    KtlsConnection* connection, int32_t socket, int32_t file, int64_t offset, int32_t count, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    int32_t refusal = KtlsConnection_Enter(connection, socket, result, &api);
    if (refusal != 0)
    {
        return refusal;
    }
    if (count < 1 || offset < 0 || offset > INT64_MAX - count)
    {
        return EINVAL;
    }
    if (!connection->established)
    {
        return ENOTCONN;
    }
    if (connection->closeSent)
    {
        return EPIPE;
    }
    /* In user space sendfile would put plaintext on the wire. */
    if (!connection->sendOffloaded)
    {
        return EPERM;
    }

    off_t position = offset;
    ssize_t sent;
    do
    {
        sent = sendfile(socket, file, &position, (size_t)count);
    } while (sent < 0 && errno == EINTR);

    if (sent >= 0)
    {
        result->bytes = sent;
    }
    else if (errno == EAGAIN)
    {
        result->status = KTLS_STATUS_WANT_WRITE;
    }
    else
    {
        result->sysErrno = errno;
        result->status = KTLS_STATUS_SYSCALL;
    }
    return 0;
}

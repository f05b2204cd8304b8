/* SPDX-License-Identifier: MIT
 *
 * The end of a connection whose owner no longer waits for it: a second descriptor of the socket, with which the first
 * one may be closed, and the disposal of what still arrives.
 */
#include "ktls_connection.h"
#include "ktls_export.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define DISCARD_SIZE 16384 /* maximum plaintext length (RFC 8446, section 5.1) */
#define CONTROL_SIZE 64    /* the record type, if the kernel decrypts */

int32_t KtlsNative_SocketDuplicate(int32_t socket, int32_t* duplicate)
{
    if (duplicate == NULL)
    {
        return EINVAL;
    }
    *duplicate = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    return *duplicate >= 0 ? 0 : errno;
}

/* With room for a control message the kernel also returns records that are not data (tls_sw.c,
 * tls_record_content_type). */
static ssize_t Discard(int32_t socket)
{
    uint8_t bytes[DISCARD_SIZE];
    uint8_t control[CONTROL_SIZE];
    struct iovec part = {bytes, sizeof(bytes)};
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t received;
    do
    {
        received = recvmsg(socket, &message, MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    return received;
}

int32_t KtlsNative_SocketDiscard(int32_t socket, int64_t limit, int64_t* discarded)
{
    if (discarded == NULL)
    {
        return EINVAL;
    }
    *discarded = 0;
    if (limit < 1)
    {
        return EINVAL;
    }
    while (*discarded < limit)
    {
        ssize_t received = Discard(socket);
        if (received <= 0)
        {
            return received == 0 ? 0 : errno;
        }
        *discarded += received;
    }
    return EFBIG;
}

int32_t KtlsNative_ConnectionMove(KtlsConnection* connection, int32_t socket, int32_t duplicate)
{
    const KtlsOpenSsl* api = NULL;
    KtlsResult unused;
    int32_t error = KtlsConnection_Enter(connection, socket, &unused, &api);
    if (error != 0)
    {
        return error;
    }
    if (duplicate < 0)
    {
        return EINVAL;
    }
    /* The shim's own BIOs ignore this and use the connection's descriptor. */
    int descriptor = duplicate;
    (void)api->BIO_ctrl(api->SSL_get_rbio(connection->ssl), BIO_C_SET_FD, BIO_NOCLOSE, &descriptor);
    (void)api->BIO_ctrl(api->SSL_get_wbio(connection->ssl), BIO_C_SET_FD, BIO_NOCLOSE, &descriptor);
    connection->socket = duplicate;
    return 0;
}

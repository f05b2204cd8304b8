/* SPDX-License-Identifier: MIT
 *
 * Data through the kernel's TLS: plain calls on the socket, which OpenSSL has no part in.
 */
#include "ktls_export.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define MAX_SEGMENTS 64

int32_t KtlsNative_SocketReceive(int32_t socket, uint8_t* buffer, int32_t capacity, int32_t* received)
{
    if (received == NULL)
    {
        return EINVAL;
    }
    *received = 0;
    if (buffer == NULL || capacity < 1)
    {
        return EINVAL;
    }

    ssize_t count;
    do
    {
        count = recv(socket, buffer, (size_t)capacity, MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    if (count < 0)
    {
        return errno;
    }
    *received = (int32_t)count;
    return 0;
}

int32_t KtlsNative_SocketSend(int32_t socket, const KtlsBlob* segments, int32_t count, int64_t* sent)
{
    if (sent == NULL)
    {
        return EINVAL;
    }
    *sent = 0;
    if (segments == NULL || count < 1 || count > MAX_SEGMENTS)
    {
        return EINVAL;
    }
    struct iovec vector[MAX_SEGMENTS];
    for (int32_t i = 0; i < count; i++)
    {
        if (segments[i].length < 0 || (segments[i].length > 0 && segments[i].data == NULL))
        {
            return EINVAL;
        }
        vector[i].iov_base = (void*)(uintptr_t)segments[i].data;
        vector[i].iov_len = (size_t)segments[i].length;
    }

    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = vector;
    message.msg_iovlen = (size_t)count;
    ssize_t taken;
    do
    {
        taken = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (taken < 0 && errno == EINTR);
    if (taken < 0)
    {
        return errno;
    }
    *sent = taken;
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Data through the kernel's TLS: plain calls on the socket, which OpenSSL has no part in.
 */
#include "ktls_export.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define MAX_SEGMENTS 64
#define RECORD_SIZE 16384 /* RFC 8446, section 5.1: the most that a record carries */

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

/* How many of the segments, from the first, hold `size` bytes, the last of them in part; `last` is its part. */
static size_t Prefix(const struct iovec* vector, size_t size, size_t* last)
{
    size_t count = 0;
    while (size > vector[count].iov_len)
    {
        size -= vector[count].iov_len;
        count++;
    }
    *last = size;
    return count + 1;
}

static ssize_t SendSome(int32_t socket, struct iovec* vector, size_t count, int flags)
{
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = vector;
    message.msg_iovlen = count;
    ssize_t taken;
    do
    {
        taken = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL | flags);
    } while (taken < 0 && errno == EINTR);
    return taken;
}

/* What was sent with MSG_MORE waits for what follows, which there is no room for: without this for as long as 200 ms.
 * Uncorking a socket sends what waits; one that the application has corked is its own affair. */
static void SendWaiting(int32_t socket)
{
    int corked = 0;
    socklen_t length = sizeof(corked);
    if (getsockopt(socket, IPPROTO_TCP, TCP_CORK, &corked, &length) == 0 && corked == 0)
    {
        (void)setsockopt(socket, IPPROTO_TCP, TCP_CORK, &corked, sizeof(corked));
    }
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
    size_t total = 0;
    for (int32_t i = 0; i < count; i++)
    {
        if (segments[i].length < 0 || (segments[i].length > 0 && segments[i].data == NULL))
        {
            return EINVAL;
        }
        vector[i].iov_base = (void*)(uintptr_t)segments[i].data;
        vector[i].iov_len = (size_t)segments[i].length;
        total += vector[i].iov_len;
    }

    /* The kernel hands each record to TCP by itself, which would send each in segments of its own. With MSG_MORE those
     * of all but the last record wait for what follows, where they do not fill a segment. */
    struct iovec* rest = vector;
    size_t restCount = (size_t)count;
    if (total > RECORD_SIZE)
    {
        size_t head = (total - 1) / RECORD_SIZE * RECORD_SIZE;
        size_t part;
        size_t headCount = Prefix(vector, head, &part);
        struct iovec* cut = &vector[headCount - 1];
        size_t whole = cut->iov_len;
        cut->iov_len = part;
        ssize_t taken = SendSome(socket, vector, headCount, MSG_MORE);
        if (taken < 0)
        {
            return errno;
        }
        *sent = taken;
        if ((size_t)taken < head)
        {
            SendWaiting(socket);
            return 0;
        }
        cut->iov_base = (uint8_t*)cut->iov_base + part;
        cut->iov_len = whole - part;
        rest = cut;
        restCount -= headCount - 1;
    }

    ssize_t taken = SendSome(socket, rest, restCount, 0);
    if (taken >= 0)
    {
        *sent += taken;
        return 0;
    }
    if (*sent == 0)
    {
        return errno;
    }
    SendWaiting(socket); /* an error that stays is the next call's */
    return 0;
}

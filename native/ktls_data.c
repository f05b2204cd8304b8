/* SPDX-License-Identifier: MIT
 *
 * Transfer of data that the kernel encrypts or decrypts, without OpenSSL.
 */
#include "ktls_export.h"
#include "ktls_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define MAX_SEGMENTS 64

static int32_t Receive(int32_t socket, uint8_t* buffer, int32_t capacity, int flags, int32_t* received)
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
        count = recv(socket, buffer, (size_t)capacity, MSG_DONTWAIT | flags);
    } while (count < 0 && errno == EINTR);
    if (count < 0)
    {
        return errno;
    }
    *received = (int32_t)count;
    return 0;
}

int32_t KtlsNative_SocketReceive(int32_t socket, uint8_t* buffer, int32_t capacity, int32_t* received)
{
    return Receive(socket, buffer, capacity, 0, received);
}

int32_t KtlsNative_SocketPeek(int32_t socket, uint8_t* buffer, int32_t capacity, int32_t* received)
{
    return Receive(socket, buffer, capacity, MSG_PEEK, received);
}

/* Returns the number of segments that contain the first size bytes. *last is set to the number of these bytes in the
 * last of the segments. */
static uint8_t CountSegments(const struct iovec* vector, size_t size, size_t* last)
{
    uint8_t count = 0;
    while (size > vector[count].iov_len)
    {
        size -= vector[count].iov_len;
        count++;
    }
    *last = size;
    count++;
    return count;
}

/* Sends one segment without a vector, which saves the kernel from copying the vector. */
static ssize_t SendSegments(int32_t socket, struct iovec* vector, uint8_t count, int flags)
{
    /* msg_iovlen is a size_t, or an int with musl. uint8_t converts to both. */
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = vector;
    message.msg_iovlen = count;
    flags |= MSG_DONTWAIT | MSG_NOSIGNAL;
    ssize_t taken;
    do
    {
        taken = count == 1 ? send(socket, vector->iov_base, vector->iov_len, flags) : sendmsg(socket, &message, flags);
    } while (taken < 0 && errno == EINTR);
    return taken;
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

    struct iovec* rest = vector;
    uint8_t restCount = (uint8_t)count;
    if (KtlsSocket_MayShareSegments(socket, total))
    {
        /* The kernel passes each record to TCP separately, and TCP would send it in separate segments. With MSG_MORE,
         * TCP delays a segment that is not full until more data follows. */
        size_t head = (total - 1) / KTLS_RECORD_SIZE * KTLS_RECORD_SIZE;
        size_t part;
        uint8_t headCount = CountSegments(vector, head, &part);
        struct iovec* cut = &vector[headCount - 1];
        size_t whole = cut->iov_len;
        cut->iov_len = part;
        ssize_t taken = SendSegments(socket, vector, headCount, MSG_MORE);
        if (taken < 0)
        {
            return errno;
        }
        *sent = taken;
        if ((size_t)taken < head)
        {
            return 0;
        }
        cut->iov_base = (uint8_t*)cut->iov_base + part;
        cut->iov_len = whole - part;
        rest = cut;
        restCount = (uint8_t)(restCount - headCount + 1);
    }

    ssize_t taken = SendSegments(socket, rest, restCount, 0);
    if (taken < 0 && *sent == 0)
    {
        return errno;
    }
    *sent += taken < 0 ? 0 : taken; /* the next call reports a persistent error */
    return 0;
}

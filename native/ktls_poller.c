/* SPDX-License-Identifier: MIT
 *
 * Waiting for readiness: an epoll instance with sockets that are armed for one event each or watched for the peer's
 * end. A wait needs no further descriptor, and no state outside the kernel.
 */
#include "ktls_export.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MAX_EVENTS 256

/* The data of an epoll event: the token, and in the lowest bit whether the event is of a watch for the peer's end. */
static uint64_t DataOf(int64_t token, bool isWatch)
{
    return ((uint64_t)token << 1) | (isWatch ? 1 : 0);
}

/* epoll reports EPOLLERR unasked, for example for a record that the kernel has refused. It does not end a watch. */
static bool IsReported(const struct epoll_event* event)
{
    return (event->data.u64 & 1) == 0 || (event->events & (EPOLLRDHUP | EPOLLHUP)) != 0;
}

int32_t KtlsNative_PollerCreate(int32_t* poller)
{
    if (poller == NULL)
    {
        return EINVAL;
    }
    *poller = epoll_create1(EPOLL_CLOEXEC);
    return *poller >= 0 ? 0 : errno;
}

int32_t KtlsNative_PollerArm(int32_t poller, int32_t socket, int32_t wait, int64_t token)
{
    if (token < 0 || wait < KTLS_WAIT_WRITABLE || wait > (KTLS_WAIT_WRITABLE | KTLS_WAIT_READABLE))
    {
        return EINVAL;
    }
    struct epoll_event event;
    memset(&event, 0, sizeof(event));
    event.events = EPOLLONESHOT; /* epoll always reports EPOLLERR and EPOLLHUP */
    event.events |= (wait & KTLS_WAIT_WRITABLE) != 0 ? (uint32_t)EPOLLOUT : 0;
    event.events |= (wait & KTLS_WAIT_READABLE) != 0 ? (uint32_t)EPOLLIN : 0;
    event.data.u64 = DataOf(token, false);
    if (epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) == 0)
    {
        return 0;
    }
    return errno == EEXIST && epoll_ctl(poller, EPOLL_CTL_MOD, socket, &event) == 0 ? 0 : errno;
}

int32_t KtlsNative_PollerDisarm(int32_t poller, int32_t socket)
{
    struct epoll_event unused; /* kernels before 2.6.9 read it */
    memset(&unused, 0, sizeof(unused));
    return epoll_ctl(poller, EPOLL_CTL_DEL, socket, &unused) == 0 ? 0 : errno;
}

int32_t KtlsNative_PollerWatchPeer(int32_t poller, int32_t socket, int64_t token)
{
    if (token < 0)
    {
        return EINVAL;
    }
    struct epoll_event event;
    memset(&event, 0, sizeof(event));
    event.events = EPOLLRDHUP | EPOLLET; /* reports an error once and keeps watching */
    event.data.u64 = DataOf(token, true);
    return epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) == 0 ? 0 : errno;
}

int32_t KtlsNative_PollerWait(int32_t poller, int64_t* tokens, int32_t capacity, int32_t* count)
{
    if (count == NULL)
    {
        return EINVAL;
    }
    *count = 0;
    if (tokens == NULL || capacity < 1 || capacity > MAX_EVENTS)
    {
        return EINVAL;
    }

    struct epoll_event events[MAX_EVENTS];
    while (*count == 0)
    {
        int ready = epoll_wait(poller, events, capacity, -1);
        if (ready < 0 && errno != EINTR)
        {
            return errno;
        }
        for (int i = 0; i < ready; i++)
        {
            if (IsReported(&events[i]))
            {
                tokens[(*count)++] = (int64_t)(events[i].data.u64 >> 1);
            }
        }
    }
    return 0;
}

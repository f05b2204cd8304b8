/* SPDX-License-Identifier: MIT
 *
 * Waiting for readiness: an epoll set of duplicated descriptors, each armed for one report. The peer's end is watched
 * on the socket itself. No state is kept outside the kernel.
 */
#include "ktls_export.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MAX_EVENTS 256

int32_t KtlsNative_PollerCreate(int32_t* poller)
{
    if (poller == NULL)
    {
        return EINVAL;
    }
    *poller = epoll_create1(EPOLL_CLOEXEC);
    return *poller >= 0 ? 0 : errno;
}

void KtlsNative_PollerClose(int32_t poller)
{
    if (poller >= 0)
    {
        (void)close(poller);
    }
}

int32_t KtlsNative_PollerArm(int32_t poller, int32_t socket, int32_t wait, int64_t token, int32_t* watch)
{
    if (watch == NULL)
    {
        return EINVAL;
    }
    *watch = -1;
    if (wait != KTLS_WAIT_WRITABLE && wait != KTLS_WAIT_READABLE)
    {
        return EINVAL;
    }
    /* A duplicate: the set's entry must not vanish, nor pass to a stranger, when the caller's number is reused. */
    int duplicate = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0)
    {
        return errno;
    }
    struct epoll_event event;
    memset(&event, 0, sizeof(event));
    uint32_t wanted = wait == KTLS_WAIT_READABLE ? EPOLLIN : EPOLLOUT;
    event.events = wanted | EPOLLONESHOT; /* EPOLLERR and EPOLLHUP come unasked */
    event.data.u64 = (uint64_t)token;
    if (epoll_ctl(poller, EPOLL_CTL_ADD, duplicate, &event) != 0)
    {
        int error = errno;
        (void)close(duplicate);
        return error;
    }
    *watch = duplicate;
    return 0;
}

int32_t KtlsNative_PollerDisarm(int32_t poller, int32_t watch)
{
    struct epoll_event unused; /* kernels before 2.6.9 read it */
    memset(&unused, 0, sizeof(unused));
    if (epoll_ctl(poller, EPOLL_CTL_DEL, watch, &unused) != 0)
    {
        return errno; /* not a watch of this poller: not ours to close */
    }
    (void)close(watch); /* EINTR included, Linux has released the descriptor */
    return 0;
}

int32_t KtlsNative_PollerWatchPeer(int32_t poller, int32_t socket, int64_t token)
{
    struct epoll_event event;
    memset(&event, 0, sizeof(event));
    event.events = EPOLLRDHUP | EPOLLONESHOT;
    event.data.u64 = (uint64_t)token;
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
    int ready;
    do
    {
        ready = epoll_wait(poller, events, capacity, -1);
    } while (ready < 0 && errno == EINTR);
    if (ready < 0)
    {
        return errno;
    }
    for (int i = 0; i < ready; i++)
    {
        tokens[i] = (int64_t)events[i].data.u64;
    }
    *count = ready;
    return 0;
}

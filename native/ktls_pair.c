/* SPDX-License-Identifier: MIT */
#include "ktls_pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Loopback connects at once. The limit applies if a firewall drops the packets. */
#define WAIT_MILLISECONDS 1000
#define ACCEPT_ATTEMPTS 8

static socklen_t SetLoopback(int family, struct sockaddr_storage* address)
{
    memset(address, 0, sizeof(*address));
    if (family == AF_INET)
    {
        struct sockaddr_in v4;
        memset(&v4, 0, sizeof(v4));
        v4.sin_family = AF_INET;
        v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        memcpy(address, &v4, sizeof(v4));
        return sizeof(v4);
    }
    struct sockaddr_in6 v6;
    memset(&v6, 0, sizeof(v6));
    v6.sin6_family = AF_INET6;
    v6.sin6_addr.s6_addr[15] = 1;
    memcpy(address, &v6, sizeof(v6));
    return sizeof(v6);
}

int32_t KtlsPair_WaitFor(int descriptor, short events)
{
    struct pollfd wait = {descriptor, events, 0};
    int ready;
    do
    {
        ready = poll(&wait, 1, WAIT_MILLISECONDS);
    } while (ready < 0 && errno == EINTR);
    return ready > 0 ? 0 : ready == 0 ? ETIMEDOUT : errno;
}

static int32_t Connect(int client, const struct sockaddr_storage* address, socklen_t length)
{
    if (connect(client, (const struct sockaddr*)address, length) == 0)
    {
        return 0;
    }
    if (errno != EINPROGRESS && errno != EINTR)
    {
        return errno;
    }
    int32_t error = KtlsPair_WaitFor(client, POLLOUT);
    int pending = 0;
    socklen_t pendingLength = sizeof(pending);
    if (error == 0 && getsockopt(client, SOL_SOCKET, SO_ERROR, &pending, &pendingLength) != 0)
    {
        error = errno;
    }
    return error != 0 ? error : pending;
}

/* Accepts only the connection from client, because any local process can connect to the listener. */
static int32_t Accept(int listener, int client, int* server)
{
    struct sockaddr_storage own;
    socklen_t ownLength = sizeof(own);
    memset(&own, 0, sizeof(own));
    if (getsockname(client, (struct sockaddr*)&own, &ownLength) != 0)
    {
        return errno;
    }
    for (int attempt = 0; attempt < ACCEPT_ATTEMPTS; attempt++)
    {
        int32_t error = KtlsPair_WaitFor(listener, POLLIN);
        if (error != 0)
        {
            return error;
        }
        struct sockaddr_storage peer;
        socklen_t peerLength = sizeof(peer);
        memset(&peer, 0, sizeof(peer));
        int accepted = accept4(listener, (struct sockaddr*)&peer, &peerLength, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted < 0)
        {
            if (errno == EINTR || errno == EAGAIN || errno == ECONNABORTED)
            {
                continue;
            }
            return errno;
        }
        if (peerLength == ownLength && memcmp(&own, &peer, ownLength) == 0)
        {
            *server = accepted;
            return 0;
        }
        (void)close(accepted);
    }
    return ECONNREFUSED;
}

static int32_t OpenFamily(int family, KtlsPair* pair)
{
    struct sockaddr_storage address;
    socklen_t length = SetLoopback(family, &address);
    int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0)
    {
        return errno;
    }
    int32_t error = 0;
    if (bind(listener, (const struct sockaddr*)&address, length) != 0 || listen(listener, ACCEPT_ATTEMPTS) != 0 ||
        getsockname(listener, (struct sockaddr*)&address, &length) != 0)
    {
        error = errno;
    }
    if (error == 0)
    {
        pair->client = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        error = pair->client >= 0 ? Connect(pair->client, &address, length) : errno;
    }
    if (error == 0)
    {
        error = Accept(listener, pair->client, &pair->server);
    }
    (void)close(listener);
    if (error != 0)
    {
        KtlsPair_Close(pair);
    }
    return error;
}

int32_t KtlsPair_Open(KtlsPair* pair)
{
    pair->client = -1;
    pair->server = -1;
    int32_t error = OpenFamily(AF_INET, pair);
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL ? OpenFamily(AF_INET6, pair) : error;
}

static void Reset(int* descriptor)
{
    if (*descriptor >= 0)
    {
        struct linger now = {1, 0};
        (void)setsockopt(*descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        (void)close(*descriptor);
        *descriptor = -1;
    }
}

void KtlsPair_Close(KtlsPair* pair)
{
    Reset(&pair->client);
    Reset(&pair->server);
}

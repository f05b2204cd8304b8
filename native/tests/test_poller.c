/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An epoll descriptor is itself readable when it has something to report. */
static bool HasReport(int32_t poller)
{
    struct pollfd wait = {poller, POLLIN, 0};
    return poll(&wait, 1, 50) == 1;
}

static int64_t FillSocket(int socket)
{
    static const uint8_t s_noise[65536];
    int64_t total = 0;
    for (ssize_t sent; (sent = send(socket, s_noise, sizeof(s_noise), MSG_DONTWAIT)) > 0;)
    {
        total += sent;
    }
    return total;
}

static void DrainSocket(int socket, int64_t total)
{
    uint8_t drain[65536];
    while (total > 0)
    {
        Fixture_Wait(socket, POLLIN);
        total -= recv(socket, drain, sizeof(drain), 0);
    }
}

static void CheckReport(int32_t poller, int64_t token)
{
    int64_t tokens[4] = {0};
    int32_t count = 0;
    CHECK_EQ(KtlsNative_PollerWait(poller, tokens, 4, &count), 0);
    CHECK_EQ(count, 1);
    CHECK_EQ(tokens[0], token);
}

static void Arguments(void)
{
    KtlsPair pair;
    int64_t tokens[1];
    int32_t poller = -1;
    int32_t watch = 0;
    int32_t count = 1;
    CHECK_EQ(KtlsNative_PollerCreate(NULL), EINVAL);
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, 1, NULL), EINVAL);
    CHECK_EQ(KtlsNative_PollerArm(poller, -1, KTLS_WAIT_WRITABLE, 1, &watch), EBADF);
    CHECK_EQ(watch, -1);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, 2, 1, &watch), EINVAL);
    CHECK_EQ(KtlsNative_PollerArm(-1, pair.client, KTLS_WAIT_WRITABLE, 1, &watch), EBADF);
    CHECK_EQ(KtlsNative_PollerArm(pair.server, pair.client, KTLS_WAIT_WRITABLE, 1, &watch), EINVAL);
    CHECK_EQ(watch, -1);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, -1), EBADF);
    /* Not a watch: refused, and left open. */
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), ENOENT);
    CHECK_EQ(KtlsNative_PollerWatchPeer(poller, -1, 1), EBADF);
    CHECK_EQ(KtlsNative_PollerWatchPeer(-1, pair.client, 1), EBADF);
    CHECK_EQ(KtlsNative_PollerWait(poller, NULL, 1, &count), EINVAL);
    CHECK_EQ(count, 0);
    CHECK_EQ(KtlsNative_PollerWait(poller, tokens, 0, &count), EINVAL);
    CHECK_EQ(KtlsNative_PollerWait(poller, tokens, 257, &count), EINVAL);
    CHECK_EQ(KtlsNative_PollerWait(poller, tokens, 1, NULL), EINVAL);
    CHECK_EQ(KtlsNative_PollerWait(-1, tokens, 1, &count), EBADF);
    CHECK(send(pair.client, "x", 1, 0) == 1);
    KtlsNative_PollerClose(poller);
    KtlsNative_PollerClose(-1);
    KtlsPair_Close(&pair);
}

static void Reports_once_after_the_drain(void)
{
    KtlsPair pair;
    int32_t poller;
    int32_t watch;
    const int64_t token = -0x123456789ABCDEF;
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    Fixture_ShrinkBuffers(&pair);
    int64_t total = FillSocket(pair.client);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, token, &watch), 0);
    CHECK(!HasReport(poller));
    DrainSocket(pair.server, total);
    CheckReport(poller, token);
    CHECK(!HasReport(poller));
    CHECK_EQ(KtlsNative_PollerDisarm(poller, watch), 0);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, watch), EBADF);
    KtlsNative_PollerClose(poller);
    KtlsPair_Close(&pair);
}

static void Reports_as_many_bytes_as_are_asked_for(void)
{
    enum
    {
        WANTED = 3
    };
    const int wanted = WANTED;
    KtlsPair pair;
    int32_t poller;
    int32_t watch;
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    CHECK_EQ(setsockopt(pair.client, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted)), 0);
    CHECK_EQ(send(pair.server, "ab", WANTED - 1, 0), WANTED - 1);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_READABLE, 5, &watch), 0);
    CHECK(!HasReport(poller));
    CHECK_EQ(send(pair.server, "c", 1, 0), 1);
    CheckReport(poller, 5);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, watch), 0);

    /* The peer's end is reported, however little came before it. */
    char taken;
    CHECK_EQ(recv(pair.client, &taken, 1, 0), 1);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_READABLE, 6, &watch), 0);
    CHECK(!HasReport(poller));
    CHECK_EQ(shutdown(pair.server, SHUT_WR), 0);
    CheckReport(poller, 6);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, watch), 0);
    KtlsNative_PollerClose(poller);
    KtlsPair_Close(&pair);
}

static void Disarmed_reports_nothing(void)
{
    KtlsPair pair;
    int32_t poller;
    int32_t watch;
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    Fixture_ShrinkBuffers(&pair);
    int64_t total = FillSocket(pair.client);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, 1, &watch), 0);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, watch), 0);
    DrainSocket(pair.server, total);
    CHECK(!HasReport(poller));
    KtlsNative_PollerClose(poller);
    KtlsPair_Close(&pair);
}

static void A_socket_closed_underneath(void)
{
    KtlsPair pair;
    int32_t poller;
    int32_t watch;
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    Fixture_ShrinkBuffers(&pair);
    (void)FillSocket(pair.client);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, 9, &watch), 0);
    (void)close(pair.client);
    pair.client = -1;
    CHECK(!HasReport(poller));
    KtlsPair_Close(&pair); /* the peer resets the connection that the duplicate keeps */
    CheckReport(poller, 9);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, watch), 0);
    KtlsNative_PollerClose(poller);
}

static void The_peer_s_end_is_reported_once(void)
{
    static const struct linger s_reset = {1, 0};
    for (int kind = 0; kind < 3; kind++)
    {
        KtlsPair pair;
        int32_t poller;
        CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
        CHECK_EQ(KtlsPair_Open(&pair), 0);
        CHECK_EQ(KtlsNative_PollerWatchPeer(poller, pair.client, 5 + kind), 0);
        CHECK_EQ(KtlsNative_PollerWatchPeer(poller, pair.client, 1), EEXIST);
        CHECK(send(pair.server, "x", 1, 0) == 1);
        CHECK(send(pair.client, "x", 1, 0) == 1);
        CHECK(!HasReport(poller));
        if (kind == 0)
        {
            CHECK_EQ(shutdown(pair.server, SHUT_WR), 0);
        }
        else
        {
            if (kind == 2)
            {
                CHECK_EQ(setsockopt(pair.server, SOL_SOCKET, SO_LINGER, &s_reset, sizeof(s_reset)), 0);
            }
            (void)close(pair.server);
            pair.server = -1;
        }
        CheckReport(poller, 5 + kind);
        CHECK(!HasReport(poller));
        KtlsNative_PollerClose(poller);
        KtlsPair_Close(&pair);
    }
}

static void A_closed_socket_is_not_watched(void)
{
    KtlsPair pair;
    int32_t poller;
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    CHECK_EQ(KtlsNative_PollerWatchPeer(poller, pair.client, 1), 0);
    (void)close(pair.client);
    pair.client = -1;
    KtlsPair_Close(&pair);
    CHECK(!HasReport(poller));
    KtlsNative_PollerClose(poller);
}

static void Many_waits_on_one_socket_and_many_sockets(void)
{
    enum
    {
        COUNT = 300
    };
    KtlsPair pair;
    int32_t poller;
    int32_t watches[COUNT];
    bool seen[COUNT] = {false};
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    for (int i = 0; i < COUNT; i++)
    {
        int32_t socket = i % 2 == 0 ? pair.client : pair.server;
        CHECK_EQ(KtlsNative_PollerArm(poller, socket, KTLS_WAIT_WRITABLE, i, &watches[i]), 0);
    }
    for (int reported = 0; reported < COUNT;)
    {
        int64_t tokens[256];
        int32_t count;
        CHECK_EQ(KtlsNative_PollerWait(poller, tokens, 256, &count), 0);
        for (int i = 0; i < count; i++)
        {
            CHECK(tokens[i] >= 0 && tokens[i] < COUNT && !seen[tokens[i]]);
            seen[tokens[i]] = true;
        }
        reported += count;
    }
    CHECK(!HasReport(poller));
    for (int i = 0; i < COUNT; i++)
    {
        CHECK_EQ(KtlsNative_PollerDisarm(poller, watches[i]), 0);
    }
    KtlsNative_PollerClose(poller);
    KtlsPair_Close(&pair);
}

static void* WaitOnThread(void* poller)
{
    CheckReport(*(int32_t*)poller, 77);
    return NULL;
}

static void Arm_wakes_a_waiting_thread(void)
{
    KtlsPair pair;
    pthread_t thread;
    int32_t poller;
    int32_t watch;
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    CHECK_EQ(pthread_create(&thread, NULL, WaitOnThread, &poller), 0);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, 77, &watch), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, watch), 0);
    KtlsNative_PollerClose(poller);
    KtlsPair_Close(&pair);
}

const Test g_pollerTests[] = {
    {"poller: arguments", Arguments, false},
    {"poller: reports once, after the drain", Reports_once_after_the_drain, false},
    {"poller: reports as many bytes as are asked for", Reports_as_many_bytes_as_are_asked_for, false},
    {"poller: disarmed, it reports nothing", Disarmed_reports_nothing, false},
    {"poller: a socket closed underneath", A_socket_closed_underneath, false},
    {"poller: the peer's end is reported once", The_peer_s_end_is_reported_once, false},
    {"poller: a closed socket is not watched", A_closed_socket_is_not_watched, false},
    {"poller: many waits", Many_waits_on_one_socket_and_many_sockets, false},
    {"poller: arming wakes a waiting thread", Arm_wakes_a_waiting_thread, false},
    {NULL, NULL, false}};

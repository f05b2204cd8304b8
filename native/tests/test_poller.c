/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void OpenPoller(int32_t* poller, KtlsPair* pair)
{
    CHECK_EQ(KtlsNative_PollerCreate(poller), 0);
    CHECK_EQ(KtlsPair_Open(pair), 0);
}

static void ClosePoller(int32_t poller, KtlsPair* pair)
{
    (void)close(poller);
    KtlsPair_Close(pair);
}

/* An epoll descriptor is readable when it has an event. */
static bool HasReport(int32_t poller)
{
    struct pollfd wait = {poller, POLLIN, 0};
    return poll(&wait, 1, 50) == 1;
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
    int32_t count = 1;
    CHECK_EQ(KtlsNative_PollerCreate(NULL), EINVAL);
    OpenPoller(&poller, &pair);
    CHECK_EQ(KtlsNative_PollerArm(poller, -1, KTLS_WAIT_WRITABLE, 1), EBADF);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, 0, 1), EINVAL);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, 4, 1), EINVAL);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, -1), EINVAL);
    CHECK_EQ(KtlsNative_PollerArm(-1, pair.client, KTLS_WAIT_WRITABLE, 1), EBADF);
    CHECK_EQ(KtlsNative_PollerArm(pair.server, pair.client, KTLS_WAIT_WRITABLE, 1), EINVAL);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, -1), EBADF);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), ENOENT); /* not armed */
    CHECK_EQ(KtlsNative_PollerWatchPeer(poller, -1, 1), EBADF);
    CHECK_EQ(KtlsNative_PollerWatchPeer(poller, pair.client, -1), EINVAL);
    CHECK_EQ(KtlsNative_PollerWatchPeer(-1, pair.client, 1), EBADF);
    CHECK_EQ(KtlsNative_PollerWait(poller, NULL, 1, &count), EINVAL);
    CHECK_EQ(count, 0);
    CHECK_EQ(KtlsNative_PollerWait(poller, tokens, 0, &count), EINVAL);
    CHECK_EQ(KtlsNative_PollerWait(poller, tokens, 257, &count), EINVAL);
    CHECK_EQ(KtlsNative_PollerWait(poller, tokens, 1, NULL), EINVAL);
    CHECK_EQ(KtlsNative_PollerWait(-1, tokens, 1, &count), EBADF);
    CHECK(send(pair.client, "x", 1, 0) == 1);
    ClosePoller(poller, &pair);
}

static void Reports_once_after_the_drain(void)
{
    KtlsPair pair;
    int32_t poller;
    const int64_t token = INT64_MAX;
    OpenPoller(&poller, &pair);
    Fixture_ShrinkBuffers(&pair);
    size_t total = Fixture_Fill(pair.client);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, token), 0);
    CHECK(!HasReport(poller));
    Fixture_Drain(pair.server, total);
    CheckReport(poller, token);
    CHECK(!HasReport(poller));
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), 0);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), ENOENT);
    ClosePoller(poller, &pair);
}

static void Reports_SO_RCVLOWAT_bytes(void)
{
    enum
    {
        WANTED = 3
    };
    const int wanted = WANTED;
    KtlsPair pair;
    int32_t poller;
    OpenPoller(&poller, &pair);
    CHECK_EQ(setsockopt(pair.client, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted)), 0);
    CHECK_EQ(send(pair.server, "ab", WANTED - 1, 0), WANTED - 1);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_READABLE, 5), 0);
    CHECK(!HasReport(poller));
    CHECK_EQ(send(pair.server, "c", 1, 0), 1);
    CheckReport(poller, 5);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), 0);

    /* The peer's FIN is reported even if fewer bytes arrived before it. */
    char taken;
    CHECK_EQ(recv(pair.client, &taken, 1, 0), 1);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_READABLE, 6), 0);
    CHECK(!HasReport(poller));
    CHECK_EQ(shutdown(pair.server, SHUT_WR), 0);
    CheckReport(poller, 6);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), 0);
    ClosePoller(poller, &pair);
}

static void Disarmed_reports_nothing(void)
{
    KtlsPair pair;
    int32_t poller;
    OpenPoller(&poller, &pair);
    Fixture_ShrinkBuffers(&pair);
    size_t total = Fixture_Fill(pair.client);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, 1), 0);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), 0);
    Fixture_Drain(pair.server, total);
    CHECK(!HasReport(poller));
    ClosePoller(poller, &pair);
}

/* A socket that reuses the descriptor of a closed socket is not reported, and can be armed. */
static void A_socket_closed_underneath(void)
{
    KtlsPair pair;
    KtlsPair next;
    int32_t poller;
    OpenPoller(&poller, &pair);
    Fixture_ShrinkBuffers(&pair);
    (void)Fixture_Fill(pair.client);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, 9), 0);
    int closed = pair.client;
    (void)close(pair.client);
    pair.client = -1;
    KtlsPair_Close(&pair);
    CHECK_EQ(KtlsPair_Open(&next), 0);
    CHECK(next.client == closed || next.server == closed);
    CHECK(!HasReport(poller));
    CHECK_EQ(KtlsNative_PollerArm(poller, closed, KTLS_WAIT_WRITABLE, 10), 0);
    CheckReport(poller, 10);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, closed), 0);
    (void)close(poller);
    KtlsPair_Close(&next);
}

static void Arming_again_replaces_the_events(void)
{
    KtlsPair pair;
    int32_t poller;
    OpenPoller(&poller, &pair);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_READABLE, 1), 0);
    CHECK(!HasReport(poller));
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE | KTLS_WAIT_READABLE, 2), 0);
    CheckReport(poller, 2);
    CHECK(!HasReport(poller));

    /* After its report a socket can be armed again without disarming. */
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_READABLE, 3), 0);
    CHECK(!HasReport(poller));
    CHECK(send(pair.server, "x", 1, 0) == 1);
    CheckReport(poller, 3);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), 0);
    ClosePoller(poller, &pair);
}

/* shutdown(2) ends a wait, so that a caller can close the socket afterwards. */
static void Shutdown_ends_a_wait(void)
{
    KtlsPair pair;
    int32_t poller;
    OpenPoller(&poller, &pair);
    Fixture_ShrinkBuffers(&pair);
    (void)Fixture_Fill(pair.client);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, 11), 0);
    CHECK(!HasReport(poller));
    CHECK_EQ(shutdown(pair.client, SHUT_RDWR), 0);
    CheckReport(poller, 11);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), 0);
    ClosePoller(poller, &pair);
}

static void The_peer_s_end_is_reported_once(void)
{
    static const struct linger s_reset = {1, 0};
    for (int kind = 0; kind < 3; kind++)
    {
        KtlsPair pair;
        int32_t poller;
        OpenPoller(&poller, &pair);
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
        ClosePoller(poller, &pair);
    }
}

/* An error of the socket is not the peer's end: the kernel reports a record that it refuses in this way. Here the error
 * queue has the timestamp of a sent byte. */
static void An_error_does_not_end_the_watch(void)
{
    const int timestamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    KtlsPair pair;
    int32_t poller;
    OpenPoller(&poller, &pair);
    CHECK_EQ(setsockopt(pair.client, SOL_SOCKET, SO_TIMESTAMPING, &timestamps, sizeof(timestamps)), 0);
    CHECK_EQ(KtlsNative_PollerWatchPeer(poller, pair.client, 7), 0);
    CHECK(send(pair.client, "x", 1, 0) == 1);
    struct pollfd failed = {pair.client, 0, 0};
    Fixture_WaitAt(__FILE__, __LINE__, "an error of pair.client", &failed, 1);
    CHECK_EQ(failed.revents, POLLERR);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.server, KTLS_WAIT_WRITABLE, 8), 0);
    CheckReport(poller, 8);
    CHECK(!HasReport(poller));

    CHECK_EQ(shutdown(pair.server, SHUT_WR), 0);
    CheckReport(poller, 7);
    CHECK(!HasReport(poller));
    ClosePoller(poller, &pair);
}

static void A_closed_socket_is_not_watched(void)
{
    KtlsPair pair;
    int32_t poller;
    OpenPoller(&poller, &pair);
    CHECK_EQ(KtlsNative_PollerWatchPeer(poller, pair.client, 1), 0);
    (void)close(pair.client);
    pair.client = -1;
    KtlsPair_Close(&pair);
    CHECK(!HasReport(poller));
    (void)close(poller);
}

static void Many_sockets(void)
{
    enum
    {
        COUNT = 300
    };
    KtlsPair pairs[COUNT / 2];
    int32_t poller;
    bool seen[COUNT] = {false};
    int before = Fixture_CountDescriptors();
    CHECK_EQ(KtlsNative_PollerCreate(&poller), 0);
    for (int i = 0; i < COUNT / 2; i++)
    {
        CHECK_EQ(KtlsPair_Open(&pairs[i]), 0);
        CHECK_EQ(KtlsNative_PollerArm(poller, pairs[i].client, KTLS_WAIT_WRITABLE, 2 * i), 0);
        CHECK_EQ(KtlsNative_PollerArm(poller, pairs[i].server, KTLS_WAIT_WRITABLE, 2 * i + 1), 0);
    }
    CHECK_EQ(Fixture_CountDescriptors(), before + 1 + COUNT);
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
    for (int i = 0; i < COUNT / 2; i++)
    {
        CHECK_EQ(KtlsNative_PollerDisarm(poller, pairs[i].client), 0);
        KtlsPair_Close(&pairs[i]);
    }
    (void)close(poller);
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
    OpenPoller(&poller, &pair);
    CHECK_EQ(pthread_create(&thread, NULL, WaitOnThread, &poller), 0);
    CHECK_EQ(KtlsNative_PollerArm(poller, pair.client, KTLS_WAIT_WRITABLE, 77), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(KtlsNative_PollerDisarm(poller, pair.client), 0);
    ClosePoller(poller, &pair);
}

const Test g_pollerTests[] = {
    {"poller: arguments", .run = Arguments},
    {"poller: reports once, after the drain", .run = Reports_once_after_the_drain},
    {"poller: reports SO_RCVLOWAT bytes", .run = Reports_SO_RCVLOWAT_bytes},
    {"poller: disarmed, it reports nothing", .run = Disarmed_reports_nothing},
    {"poller: a socket closed underneath", .run = A_socket_closed_underneath},
    {"poller: the peer's end is reported once", .run = The_peer_s_end_is_reported_once},
    {"poller: an error does not end the watch", .run = An_error_does_not_end_the_watch},
    {"poller: a closed socket is not watched", .run = A_closed_socket_is_not_watched},
    {"poller: arming again replaces the events", .run = Arming_again_replaces_the_events},
    {"poller: shutdown ends a wait", .run = Shutdown_ends_a_wait},
    {"poller: many sockets", .run = Many_sockets},
    {"poller: arming wakes a waiting thread", .run = Arm_wakes_a_waiting_thread},
    {.name = NULL}};

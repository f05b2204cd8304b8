/* SPDX-License-Identifier: MIT
 *
 * A connection moves to another descriptor before its first one is closed. What arrives after the end is discarded.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Moves the client to another descriptor and closes the first. */
static void Move(Link* link)
{
    int32_t duplicate = -1;
    CHECK_EQ(KtlsNative_SocketDuplicate(link->pair.client, &duplicate), 0);
    CHECK(duplicate != link->pair.client);
    CHECK_EQ(fcntl(duplicate, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(KtlsNative_ConnectionMove(link->client, link->pair.client, duplicate), 0);
    CHECK_EQ(KtlsNative_ConnectionMove(link->client, link->pair.client, duplicate), EBADF);
    CHECK_EQ(close(link->pair.client), 0);
    link->pair.client = duplicate;
}

static void UseAfterMove(int32_t version, int32_t flags)
{
    uint8_t buffer[16];
    KtlsResult result;
    Link link = Link_Establish(version, flags);
    Move(&link);
    Link_TransferBothWays(&link, 50000);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    Link_ReadOne(link.server, link.pair.server, buffer, sizeof(buffer), &result);
    CHECK_EQ(result.status, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Free(&link);
}

static void Connection_moves(int32_t flags)
{
    UseAfterMove(TLS1_2_VERSION, flags);
    UseAfterMove(TLS1_3_VERSION, flags);
}

static void Discard_plain(void)
{
    static uint8_t s_bytes[100000];
    int64_t discarded = -1;
    KtlsPair pair;
    Fixture_OpenPair(&pair);
    CHECK_EQ(KtlsNative_SocketDiscard(pair.server, 1000, &discarded), EAGAIN);
    CHECK_EQ(discarded, 0);

    CHECK_EQ(send(pair.client, s_bytes, 1000, 0), 1000);
    Fixture_Wait(pair.server, POLLIN);
    CHECK_EQ(KtlsNative_SocketDiscard(pair.server, 100000, &discarded), EAGAIN);
    CHECK_EQ(discarded, 1000);

    CHECK_EQ(send(pair.client, s_bytes, 1000, 0), 1000);
    Fixture_Wait(pair.server, POLLIN);
    CHECK_EQ(KtlsNative_SocketDiscard(pair.server, 1, &discarded), EFBIG);
    CHECK(discarded >= 1);

    CHECK_EQ(shutdown(pair.client, SHUT_WR), 0);
    Fixture_Wait(pair.server, POLLRDHUP);
    CHECK_EQ(KtlsNative_SocketDiscard(pair.server, 100000, &discarded), 0);
    KtlsPair_Close(&pair);
}

/* The kernel's receive fails at a record that is not data. Discarding does not. TLS 1.2, because OpenSSL 3.0 offloads
 * only the sending of TLS 1.3. */
static void Discard_records_kernel(void)
{
    int64_t discarded = -1;
    KtlsResult result;
    Link link = Link_Establish(TLS1_2_VERSION, KTLS_FLAG_ENABLE_KTLS);
    Link_TransferBothWays(&link, 1000);
    CHECK_EQ(Link_SendPart(link.client, link.pair.client, (const uint8_t*)"data", 4), 4);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(shutdown(link.pair.client, SHUT_WR), 0);
    Fixture_Wait(link.pair.server, POLLRDHUP);
    CHECK_EQ(KtlsNative_SocketDiscard(link.pair.server, 100000, &discarded), 0);
    CHECK_EQ(discarded, 4 + 2);
    Link_Free(&link);
}

static void Peek_leaves_the_bytes(void)
{
    uint8_t buffer[8];
    int32_t received = -1;
    KtlsPair pair;
    Fixture_OpenPair(&pair);
    CHECK_EQ(KtlsNative_SocketPeek(pair.server, buffer, sizeof(buffer), &received), EAGAIN);
    CHECK_EQ(received, 0);
    CHECK_EQ(send(pair.client, "12345", 5, 0), 5);
    Fixture_Wait(pair.server, POLLIN);
    for (int i = 0; i < 2; i++)
    {
        CHECK_EQ(KtlsNative_SocketPeek(pair.server, buffer, sizeof(buffer), &received), 0);
        CHECK_EQ(received, 5);
        CHECK(memcmp(buffer, "12345", 5) == 0);
    }
    KtlsPair_Close(&pair);
}

static void Arguments(void)
{
    uint8_t byte;
    int32_t count = -1;
    int64_t discarded = -1;
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    int socket = link.pair.client;
    CHECK_EQ(KtlsNative_SocketPeek(socket, NULL, 1, &count), EINVAL);
    CHECK_EQ(KtlsNative_SocketPeek(socket, &byte, 0, &count), EINVAL);
    CHECK_EQ(KtlsNative_SocketPeek(socket, &byte, 1, NULL), EINVAL);
    CHECK_EQ(KtlsNative_SocketPeek(-1, &byte, 1, &count), EBADF);
    CHECK_EQ(KtlsNative_SocketDiscard(socket, 0, &discarded), EINVAL);
    CHECK_EQ(KtlsNative_SocketDiscard(socket, 1, NULL), EINVAL);
    CHECK_EQ(KtlsNative_SocketDiscard(-1, 1, &discarded), EBADF);
    CHECK_EQ(KtlsNative_SocketDuplicate(socket, NULL), EINVAL);
    CHECK_EQ(KtlsNative_SocketDuplicate(-1, &count), EBADF);
    CHECK_EQ(KtlsNative_ConnectionMove(NULL, socket, socket), EINVAL);
    CHECK_EQ(KtlsNative_ConnectionMove(link.client, -1, socket), EBADF);
    CHECK_EQ(KtlsNative_ConnectionMove(link.client, socket, -1), EINVAL);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
}

const Test g_detachTests[] = {
    {"detach: a connection moves to another descriptor", .runBoth = Connection_moves},
    {"detach: what arrives is discarded", .run = Discard_plain},
    {"detach: records of any type are discarded", .runInKernel = Discard_records_kernel},
    {"detach: a peek leaves the bytes", .run = Peek_leaves_the_bytes},
    {"detach: arguments", .run = Arguments},
    {.name = NULL}};

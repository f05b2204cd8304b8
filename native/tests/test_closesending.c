/* SPDX-License-Identifier: MIT
 *
 * CloseSending: what was sent before it arrives, also where kernel TLS holds records.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
    ROUNDS = 150,
    LEAST_DATA = 20000,
    MOST_DATA = 120000,
    MOST_TAKEN = 20000,
    SEGMENT_SIZE = 4096,
    RECEIVE_SPACE = 8192,
    SEND_SPACE = 4096
};

/* Establishes a link on which an acknowledgement frees little space in the server's send buffer. */
static Link EstablishOnSmallSegments(int32_t version, int32_t flags)
{
    int segment = SEGMENT_SIZE;
    int receive = RECEIVE_SPACE;
    int send = SEND_SPACE;
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr*)&address, sizeof(address)) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr*)&address, &length) == 0);
    CHECK(setsockopt(client, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)) == 0);
    CHECK(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &receive, sizeof(receive)) == 0);
    CHECK(connect(client, (struct sockaddr*)&address, sizeof(address)) == 0);
    int server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    CHECK(fcntl(client, F_SETFL, O_NONBLOCK) == 0);
    CHECK(setsockopt(server, SOL_SOCKET, SO_SNDBUF, &send, sizeof(send)) == 0);
    CHECK(setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);

    KtlsContextOptions clientOptions = Fixture_ClientOptions(version);
    KtlsContextOptions serverOptions = Fixture_ServerOptions(version);
    serverOptions.flags |= flags;
    Link link = Link_Create(&clientOptions, &serverOptions);
    CHECK(dup2(client, link.pair.client) >= 0 && dup2(server, link.pair.server) >= 0);
    CHECK(close(client) == 0 && close(server) == 0 && close(listener) == 0);
    Link_Succeed(&link);
    return link;
}

/* Takes bytes from the client's socket without decrypting them. */
static size_t TakeSome(int socket, size_t most)
{
    static uint8_t s_buffer[MOST_TAKEN];
    ssize_t taken = recv(socket, s_buffer, most, MSG_DONTWAIT);
    CHECK(taken > 0 || errno == EAGAIN);
    return taken > 0 ? (size_t)taken : 0;
}

/* All records arrive that were sent before CloseSending, and then close_notify and the FIN. Kernel TLS holds records in
 * some rounds, in which the client reads slowly. */
static void CloseSending(int32_t version, int32_t flags)
{
    static const uint8_t s_data[16384];
    size_t overhead = version == TLS1_3_VERSION ? 22 : 29; /* of a record with AES-GCM */
    size_t alert = overhead + 2;
    unsigned int seed = 1;
    KtlsResult result;
    for (int round = 0; round < ROUNDS; round++)
    {
        Link link = EstablishOnSmallSegments(version, flags);
        uint8_t byte;
        /* Reads the tickets. */
        CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, &byte, 1, &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);

        size_t rest = LEAST_DATA + (size_t)rand_r(&seed) % (MOST_DATA - LEAST_DATA);
        size_t expected = 0;
        size_t taken = 0;
        while (rest > 0)
        {
            size_t part =
                Link_SendPart(link.server, link.pair.server, s_data, rest < sizeof(s_data) ? rest : sizeof(s_data));
            rest -= part;
            expected += part > 0 ? part + overhead : 0;
            taken += part == 0 ? TakeSome(link.pair.client, 1 + (size_t)rand_r(&seed) % MOST_TAKEN) : 0;
        }

        for (int i = rand_r(&seed) % 3; i > 0; i--)
        {
            taken += TakeSome(link.pair.client, 1 + (size_t)rand_r(&seed) % MOST_TAKEN);
        }

        int64_t acknowledged = 0;
        for (;;)
        {
            CHECK_EQ(KtlsNative_CloseSending(link.server, link.pair.server, &result), 0);
            if (result.status == KTLS_STATUS_OK)
            {
                break;
            }
            CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
            CHECK(result.bytes >= acknowledged);
            acknowledged = result.bytes;
            taken += TakeSome(link.pair.client, 1 + (size_t)rand_r(&seed) % MOST_TAKEN);
        }
        CHECK_EQ(KtlsNative_Write(link.server, link.pair.server, s_data, 1, &result), EPIPE);
        CHECK_EQ(KtlsNative_CloseSending(link.server, link.pair.server, &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_OK);

        static uint8_t s_buffer[MOST_TAKEN];
        for (ssize_t some; (some = recv(link.pair.client, s_buffer, sizeof(s_buffer), 0)) != 0;)
        {
            CHECK(some > 0 || errno == EAGAIN);
            taken += some > 0 ? (size_t)some : 0;
            Fixture_Wait(link.pair.client, POLLIN);
        }
        CHECK(taken > expected);
        CHECK_EQ((taken - expected) % alert, 0);
        Link_Free(&link);
    }
}

/* Kernel TLS accepts close_notify after a reset whose error was read, and TCP never takes it. */
static void CloseSending_after_a_reset(int32_t version, bool unread)
{
    static const uint8_t s_data[16384];
    KtlsResult result;
    Link link = Link_Establish(version, KTLS_FLAG_ENABLE_KTLS);
    CHECK(Link_SendPart(link.server, link.pair.server, s_data, sizeof(s_data)) > 0);
    KtlsPair gone = {link.pair.client, -1};
    link.pair.client = -1;
    KtlsPair_Close(&gone);
    Fixture_Wait(link.pair.server, POLLHUP);
    int error = 0;
    socklen_t length = sizeof(error);
    CHECK(unread || getsockopt(link.pair.server, SOL_SOCKET, SO_ERROR, &error, &length) == 0);
    CHECK(unread || error == ECONNRESET);
    CHECK_EQ(KtlsNative_CloseSending(link.server, link.pair.server, &result), 0);
    CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_SYSCALL);
    Link_Free(&link);
}

static void Close_sending_after_a_reset_kernel(void)
{
    CloseSending_after_a_reset(TLS1_2_VERSION, false);
    CloseSending_after_a_reset(TLS1_3_VERSION, false);
    CloseSending_after_a_reset(TLS1_2_VERSION, true);
    CloseSending_after_a_reset(TLS1_3_VERSION, true);
}

static void Close_sending(int32_t flags)
{
    CloseSending(TLS1_2_VERSION, flags);
    CloseSending(TLS1_3_VERSION, flags);
}

const Test g_closeSendingTests[] = {
    {"close sending: cuts nothing off", .runBoth = Close_sending},
    {"close sending: waits for nothing after a reset, in the kernel",
     .runInKernel = Close_sending_after_a_reset_kernel},
    {.name = NULL}};

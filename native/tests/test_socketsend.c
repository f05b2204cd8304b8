/* SPDX-License-Identifier: MIT
 *
 * SocketSend sends its segments as one byte stream. It and SendFile use few TCP segments, and delay none.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
    RECORD = 16384,
    CAPACITY = 5 * RECORD,
    MAX_SEGMENTS = 64
};

static uint8_t g_sent[CAPACITY];
static uint8_t g_received[CAPACITY];

static void FillPattern(void)
{
    for (size_t i = 0; i < sizeof(g_sent); i++)
    {
        g_sent[i] = Fixture_PatternAt(i);
    }
}

static KtlsPair OpenPair(void)
{
    KtlsPair pair;
    FillPattern();
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    return pair;
}

static struct tcp_info ReadInfo(int socket)
{
    struct tcp_info info;
    socklen_t length = sizeof(info);
    memset(&info, 0, sizeof(info));
    CHECK_EQ(getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    CHECK(length >= offsetof(struct tcp_info, tcpi_data_segs_out) + sizeof(info.tcpi_data_segs_out));
    return info;
}

static void Set(int socket, int level, int option, int value)
{
    CHECK_EQ(setsockopt(socket, level, option, &value, sizeof(value)), 0);
}

/* Receives from plain TCP or from the kernel's TLS. */
static void Receive(int socket, size_t size)
{
    memset(g_received, 0, sizeof(g_received));
    for (size_t received = 0; received < size;)
    {
        int32_t count = 0;
        int32_t error = KtlsNative_SocketReceive(socket, g_received + received, (int32_t)(size - received), &count);
        if (error == EAGAIN)
        {
            Fixture_Wait(socket, POLLIN);
            continue;
        }
        CHECK_EQ(error, 0);
        CHECK(count > 0);
        received += (size_t)count;
    }
    CHECK(memcmp(g_sent, g_received, size) == 0);
}

/* Splits the first bytes into segments of these lengths, sends them with one call, and receives them. */
static void SendCut(const KtlsPair* pair, const int32_t* lengths, int32_t count)
{
    KtlsBlob segments[MAX_SEGMENTS];
    size_t total = 0;
    for (int32_t i = 0; i < count; i++)
    {
        segments[i] = (KtlsBlob){lengths[i] > 0 ? g_sent + total : NULL, lengths[i], 0};
        total += (size_t)lengths[i];
    }
    int64_t sent = -1;
    CHECK_EQ(KtlsNative_SocketSend(pair->client, segments, count, &sent), 0);
    CHECK_EQ(sent, total);
    Receive(pair->server, total);
}

static void SendAllCuts(const KtlsPair* pair)
{
    SendCut(pair, (const int32_t[]){1}, 1);
    SendCut(pair, (const int32_t[]){RECORD}, 1);
    SendCut(pair, (const int32_t[]){RECORD + 1}, 1);
    SendCut(pair, (const int32_t[]){2 * RECORD}, 1);
    SendCut(pair, (const int32_t[]){RECORD, RECORD}, 2);
    SendCut(pair, (const int32_t[]){0, RECORD, 0, RECORD, 0}, 5);
    SendCut(pair, (const int32_t[]){200, 4 * RECORD}, 2);
    SendCut(pair, (const int32_t[]){RECORD - 1, 1, 1, RECORD - 1, 7}, 5);
    SendCut(pair, (const int32_t[]){1, 2 * RECORD, 1, RECORD, RECORD / 2}, 5);
    int32_t many[MAX_SEGMENTS];
    for (int32_t i = 0; i < MAX_SEGMENTS; i++)
    {
        many[i] = 1000 + i;
    }
    SendCut(pair, many, MAX_SEGMENTS);
}

/* Returns the newest version that the kernel encrypts and decrypts: TLS 1.3 since OpenSSL 3.2. */
static int NewestVersion(void)
{
    return OpenSSL_version_num() >= 0x30200000L ? TLS1_3_VERSION : TLS1_2_VERSION;
}

static void Segments_are_one_stream(void)
{
    KtlsPair pair = OpenPair();
    SendAllCuts(&pair);
    KtlsPair_Close(&pair);
}

static void Segments_are_one_stream_kernel(void)
{
    Link link = Link_Establish(NewestVersion(), KTLS_FLAG_ENABLE_KTLS);
    FillPattern();
    /* Reads the tickets first, because they are not data. */
    uint8_t nothing[1];
    KtlsResult result;
    Link_TransferBothWays(&link, 100);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, nothing, 1, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    SendAllCuts(&link.pair);
    Link_Free(&link);
}

/* On loopback a segment holds 64 KiB, and TCP sends at half the peer's window, here 32 KiB. This takes three segments.
 * With one segment per record it would take five. */
static void Records_share_segments(void)
{
    const size_t size = 4 * RECORD + 1;
    FillPattern();
    Link link = Link_Establish(NewestVersion(), KTLS_FLAG_ENABLE_KTLS);
    Link_TransferBothWays(&link, 100);
    KtlsBlob segment = {g_sent, (int32_t)size, 0};
    int64_t sent = -1;
    uint32_t before = ReadInfo(link.pair.server).tcpi_data_segs_out;
    CHECK_EQ(KtlsNative_SocketSend(link.pair.server, &segment, 1, &sent), 0);
    CHECK_EQ(sent, size);
    uint32_t segments = ReadInfo(link.pair.server).tcpi_data_segs_out - before;
    Test_Note("%u segments", segments);
    CHECK(segments <= 3);
    Receive(link.pair.client, size);
    Link_Free(&link);
}

/* Returns a connection whose server has a send buffer of this size and delays no segment. */
static Link EstablishWithBuffer(int size)
{
    Link link = Link_Establish(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS);
    Link_TransferBothWays(&link, 100);
    Set(link.pair.server, SOL_SOCKET, SO_SNDBUF, size);
    Set(link.pair.server, IPPROTO_TCP, TCP_NODELAY, 1);
    return link;
}

/* With any size of the send buffer, TCP must have sent all accepted data when the call returns, because no data may
 * follow. A record starts a new segment if the last one has its maximum number of pages, and the buffer may become full
 * at that point. */
static void Sent_data_is_not_delayed(void)
{
    FillPattern();
    int partial = 0;
    for (int size = 2304; size < 2 * RECORD; size += 1021)
    {
        Link link = EstablishWithBuffer(size);
        KtlsBlob segment = {g_sent, CAPACITY, 0};
        int64_t sent = 0;
        CHECK_EQ(KtlsNative_SocketSend(link.pair.server, &segment, 1, &sent), 0);
        CHECK(sent > 0);
        partial += sent < CAPACITY;
        CHECK_EQ(ReadInfo(link.pair.server).tcpi_notsent_bytes, 0);
        Link_Free(&link);
    }
    CHECK(partial > 0);
}

static int ReadCork(int socket)
{
    int corked = -1;
    socklen_t length = sizeof(corked);
    CHECK_EQ(getsockopt(socket, IPPROTO_TCP, TCP_CORK, &corked, &length), 0);
    return corked;
}

/* The same as Records_share_segments for a file. TCP_CORK is afterwards as the caller has set it. */
static void Records_of_a_file_share_segments(void)
{
    const int32_t size = 4 * RECORD;
    FillPattern();
    int file = Fixture_OpenFile(CAPACITY);
    for (int corked = 0; corked <= 1; corked++)
    {
        Link link = Link_Establish(NewestVersion(), KTLS_FLAG_ENABLE_KTLS);
        Link_TransferBothWays(&link, 100);
        Set(link.pair.server, IPPROTO_TCP, TCP_CORK, corked);
        KtlsResult result;
        uint32_t before = ReadInfo(link.pair.server).tcpi_data_segs_out;
        CHECK_EQ(KtlsNative_SendFile(link.server, link.pair.server, file, 0, size, 1, &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        CHECK_EQ(result.bytes, size);
        uint32_t segments = ReadInfo(link.pair.server).tcpi_data_segs_out - before;
        Test_Note("%u segments", segments);
        CHECK(segments <= 3);
        CHECK_EQ(ReadCork(link.pair.server), corked);
        Set(link.pair.server, IPPROTO_TCP, TCP_CORK, 0);
        Receive(link.pair.client, (size_t)size);
        Link_Free(&link);
    }
    (void)close(file);
}

/* The same as Sent_data_is_not_delayed for a file. More than 64 KiB are several pieces for sendfile, which delays all
 * but the last. */
static void Sent_file_is_not_delayed(void)
{
    const int32_t size = 4 * RECORD;
    int file = Fixture_OpenFile(CAPACITY);
    int partial = 0;
    for (int buffer = 2304; buffer < 8 * RECORD; buffer += 4093)
    {
        Link link = EstablishWithBuffer(buffer);
        KtlsResult result;
        CHECK_EQ(KtlsNative_SendFile(link.server, link.pair.server, file, 0, size, 1, &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        partial += result.bytes < size;
        CHECK_EQ(ReadInfo(link.pair.server).tcpi_notsent_bytes, 0);
        CHECK_EQ(ReadCork(link.pair.server), 0);
        Link_Free(&link);
    }
    CHECK(partial > 0);
    (void)close(file);
}

/* OpenSSL writes a record at a time. The last one of a write may be a few bytes long, as with an HTTP/2 frame of 16 KiB
 * and its header. */
static void Records_share_segments_openssl(void)
{
    const int32_t size = RECORD + 9;
    FillPattern();
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    Link_TransferBothWays(&link, 100);
    KtlsResult result;
    uint32_t before = ReadInfo(link.pair.server).tcpi_data_segs_out;
    for (int32_t sent = 0; sent < size; sent += (int32_t)result.bytes)
    {
        CHECK_EQ(KtlsNative_Write(link.server, link.pair.server, g_sent + sent, size - sent, &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        CHECK_EQ(result.bytes, sent == 0 ? RECORD : 9);
    }
    CHECK_EQ(KtlsNative_Flush(link.server, link.pair.server, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(ReadInfo(link.pair.server).tcpi_data_segs_out - before, 1);
    Link_Free(&link);
}

const Test g_socketSendTests[] = {
    {"socket send: segments are one stream", .run = Segments_are_one_stream},
    {"socket send: segments are one stream, kernel", .runInKernel = Segments_are_one_stream_kernel},
    {"socket send: records share segments", .runInKernel = Records_share_segments},
    {"socket send: sent data is not delayed", .runInKernel = Sent_data_is_not_delayed},
    {"socket send: records of a file share segments", .runInKernel = Records_of_a_file_share_segments},
    {"socket send: a sent file is not delayed", .runInKernel = Sent_file_is_not_delayed},
    {"socket send: records of OpenSSL share segments", .run = Records_share_segments_openssl},
    {.name = NULL}};

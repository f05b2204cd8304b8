/* SPDX-License-Identifier: MIT
 *
 * Data transfer by OpenSSL and by the kernel.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum
{
    MEBIBYTE = 1 << 20,
    RECORD = 16384
};

static void Transfer(int32_t version, int32_t flags)
{
    Link link = Link_Establish(version, flags);
    Link_TransferBothWays(&link, MEBIBYTE);
    Link_Free(&link);
}

static void Transfer_tls12(int32_t flags)
{
    Transfer(TLS1_2_VERSION, flags);
}

static void Transfer_tls13(int32_t flags)
{
    Transfer(TLS1_3_VERSION, flags);
}

/* Sends size bytes without reading them. */
static void Send(KtlsConnection* from, int socket, size_t size)
{
    uint8_t* data = malloc(size);
    CHECK(data != NULL);
    for (size_t i = 0; i < size; i++)
    {
        data[i] = Fixture_PatternAt(i);
    }
    for (size_t sent = 0; sent < size;)
    {
        size_t taken = Link_SendPart(from, socket, data + sent, size - sent);
        CHECK(taken > 0);
        sent += taken;
    }
    free(data);
}

/* Reads the bytes of Send with a fixed capacity, and checks the result of each call. */
static void ReadAll(KtlsConnection* to, int socket, int32_t capacity, size_t size, bool kernel)
{
    uint8_t buffer[RECORD];
    KtlsResult result;
    for (size_t received = 0; received < size; received += (size_t)result.bytes)
    {
        Link_ReadOne(to, socket, buffer, 0, &result);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        CHECK_EQ(result.bytes, 0);
        CHECK_EQ(result.pending, 1);
        Link_ReadOne(to, socket, buffer, capacity, &result);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        CHECK(result.bytes > 0 && result.bytes <= capacity);
        for (int64_t i = 0; i < result.bytes; i++)
        {
            CHECK_EQ(buffer[i], Fixture_PatternAt(received + (size_t)i));
        }
        size_t end = received + (size_t)result.bytes;
        CHECK(end <= size);
        /* The kernel may return the data of several records. */
        if (!kernel)
        {
            CHECK_EQ(result.pending, end != size);
        }
    }
    CHECK_EQ(result.pending, 0);
    CHECK_EQ(KtlsNative_Read(to, socket, buffer, 1, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    CHECK_EQ(result.pending, 0);
    CHECK_EQ(KtlsNative_Read(to, socket, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
}

static void Capacities(int32_t flags)
{
    static const int32_t s_capacities[] = {1, 100, RECORD - 1, RECORD};
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        Link link = Link_Establish(version, flags);
        for (size_t i = 0; i < sizeof(s_capacities) / sizeof(s_capacities[0]); i++)
        {
            size_t size = s_capacities[i] == 1 ? 300 : 3 * RECORD + 17;
            Send(link.server, link.pair.server, size);
            ReadAll(link.client, link.pair.client, s_capacities[i], size, flags != 0);
        }
        Link_Free(&link);
    }
}

/* Writes until the socket is full. Returns the number of bytes written. */
static size_t Fill(KtlsConnection* from, int socket, const uint8_t* data, size_t size)
{
    size_t sent = 0;
    size_t taken;
    do
    {
        taken = Link_SendPart(from, socket, data + sent, size - sent);
        sent += taken;
    } while (taken > 0 && sent < size);
    CHECK(sent < size);
    return sent;
}

static void Want_write_and_a_moved_buffer(void)
{
    enum
    {
        SIZE = 64 * 1024
    };
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    Fixture_ShrinkBuffers(&link.pair);
    uint8_t* data = malloc(SIZE);
    CHECK(data != NULL);
    for (size_t i = 0; i < SIZE; i++)
    {
        data[i] = Fixture_PatternAt(i);
    }
    size_t sent = Fill(link.client, link.pair.client, data, SIZE);
    CHECK(ERR_peek_error() == 0);

    size_t received = 0;
    while (received < SIZE)
    {
        /* Continues from another address, after the old block is freed. */
        uint8_t* moved = malloc(SIZE);
        CHECK(moved != NULL);
        memcpy(moved, data, SIZE);
        memset(data, 0xEE, SIZE);
        free(data);
        data = moved;
        size_t taken = Link_SendPart(link.client, link.pair.client, data + sent, SIZE - sent);
        sent += taken;

        uint8_t buffer[RECORD];
        KtlsResult result;
        CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, buffer, sizeof(buffer), &result), 0);
        CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
        for (int64_t i = 0; i < result.bytes; i++)
        {
            CHECK_EQ(buffer[i], Fixture_PatternAt(received + (size_t)i));
        }
        received += (size_t)result.bytes;
        if (taken == 0 && result.bytes == 0)
        {
            /* All data in flight may have arrived. Then the rest of a record waits for send buffer space. */
            struct pollfd waits[2] = {{link.pair.server, POLLIN, 0}, {link.pair.client, POLLOUT, 0}};
            Fixture_WaitForEither(waits);
        }
    }
    free(data);
    Link_Free(&link);
}

static void Write_is_rejected_if_the_kernel_encrypts(void)
{
    uint8_t byte = 1;
    KtlsResult result;
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        Link link = Link_Establish(version, KTLS_FLAG_ENABLE_KTLS);
        CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, &byte, 1, &result), EPERM);
        CHECK_EQ(KtlsNative_Write(link.server, link.pair.server, &byte, 1, &result), EPERM);
        Link_Free(&link);
    }
}

/* Sends a record that the kernel's parser rejects. The kernel reports the error once, to the receive of the caller. */
static void SendBadRecord(int32_t version, const uint8_t header[5], int32_t error, int32_t reported, int32_t alert)
{
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    client.flags |= KTLS_FLAG_ENABLE_KTLS;
    Link link = Link_Create(&client, &server);
    Link_Complete(&link);
    uint8_t record[32] = {0};
    uint8_t buffer[64];
    int32_t received = 0;
    KtlsResult result;
    /* Reads the tickets first. */
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, buffer, sizeof(buffer), &result), 0);
    memcpy(record, header, 5);
    CHECK_EQ(send(link.pair.server, record, sizeof(record), 0), (ssize_t)sizeof(record));
    Fixture_Wait(link.pair.client, POLLERR);
    CHECK_EQ(KtlsNative_SocketReceive(link.pair.client, buffer, sizeof(buffer), &received), error);
    CHECK_EQ(KtlsNative_SocketReceive(link.pair.client, buffer, sizeof(buffer), &received), EAGAIN);

    CHECK_EQ(KtlsNative_ReceiveFailed(link.client, link.pair.client, reported), 0);
    /* What a read on another thread receives after a send that took the error from the socket. */
    CHECK_EQ(KtlsNative_ReceiveFailed(link.client, link.pair.client, EIO), 0);
    for (int i = 0; i < 2; i++)
    {
        CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, buffer, sizeof(buffer), &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK(result.openSslError != 0);
    }
    Link_ReadOne(link.server, link.pair.server, buffer, sizeof(buffer), &result);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(result.reason, SSL_AD_REASON_OFFSET + alert);
    Link_Free(&link);
}

static void A_bad_record_is_answered_by_its_alert(void)
{
    static const uint8_t s_short[] = {23, 3, 3, 0, 1};
    static const uint8_t s_long[] = {23, 3, 3, 0xFF, 0xFF};
    static const uint8_t s_version[] = {23, 3, 1, 0, 27};
    int32_t last = g_fixture.library.openSslVersion >= 0x30200000 ? TLS1_3_VERSION : TLS1_2_VERSION;
    for (int32_t version = TLS1_2_VERSION; version <= last; version++)
    {
        SendBadRecord(version, s_short, EBADMSG, EBADMSG, SSL_AD_BAD_RECORD_MAC);
        SendBadRecord(version, s_short, EBADMSG, EIO, SSL_AD_BAD_RECORD_MAC);
        SendBadRecord(version, s_long, EMSGSIZE, EMSGSIZE, SSL_AD_RECORD_OVERFLOW);
        SendBadRecord(version, s_version, EINVAL, EINVAL, SSL_AD_PROTOCOL_VERSION);
    }
}

/* OpenSSL reads a record that the kernel's parser rejects, and the peer has sent nothing after it. That is not the end
 * of a stream that was cut off. */
static void A_bad_record_before_the_end_is_answered_by_its_alert(void)
{
    static const uint8_t s_long[32] = {23, 3, 3, 0xFF, 0xFF};
    int32_t last = g_fixture.library.openSslVersion >= 0x30200000 ? TLS1_3_VERSION : TLS1_2_VERSION;
    for (int32_t version = TLS1_2_VERSION; version <= last; version++)
    {
        KtlsContextOptions client = Fixture_ClientOptions(version);
        KtlsContextOptions server = Fixture_ServerOptions(version);
        client.flags |= KTLS_FLAG_ENABLE_KTLS;
        Link link = Link_Create(&client, &server);
        Link_Complete(&link);
        uint8_t buffer[64];
        KtlsResult result;
        /* Reads the tickets first. */
        CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, buffer, sizeof(buffer), &result), 0);
        CHECK_EQ(send(link.pair.server, s_long, sizeof(s_long), 0), (ssize_t)sizeof(s_long));
        CHECK_EQ(shutdown(link.pair.server, SHUT_WR), 0);
        Fixture_Wait(link.pair.client, POLLRDHUP);

        CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, buffer, sizeof(buffer), &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        Link_ReadOne(link.server, link.pair.server, buffer, sizeof(buffer), &result);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, SSL_AD_REASON_OFFSET + SSL_AD_RECORD_OVERFLOW);
        Link_Free(&link);
    }
}

/* No kernel supports a CBC cipher. A kernel without the module supports none at all. */
static void Kernel_tls_is_unavailable(void)
{
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_2_VERSION);
    KtlsContextOptions server = Fixture_ServerOptions(TLS1_2_VERSION);
    client.flags |= KTLS_FLAG_ENABLE_KTLS;
    server.flags |= KTLS_FLAG_ENABLE_KTLS;
    client.cipherList = g_fixture.probe.ulpErrno == 0 ? "ECDHE-ECDSA-AES128-SHA256" : "ECDHE-ECDSA-AES128-GCM-SHA256";
    Link link = Link_Create(&client, &server);
    Link_Run(&link);
    CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.client, &info), 0);
    CHECK_EQ(info.ktlsSend | info.ktlsReceive, 0);
    KtlsSocketInfo kernel;
    CHECK_EQ(KtlsNative_GetSocketInfo(link.pair.client, &kernel), 0);
    CHECK_EQ(kernel.sendConf | kernel.receiveConf, KTLS_CONF_NONE);
    Link_TransferBothWays(&link, MEBIBYTE);
    Link_Free(&link);
}

const Test g_ioTests[] = {
    {"io: 1 MiB both ways, TLS 1.2", .runBoth = Transfer_tls12},
    {"io: 1 MiB both ways, TLS 1.3", .runBoth = Transfer_tls13},
    {"io: read capacities and pending", .runBoth = Capacities},
    {"io: a full socket and a moved buffer", .run = Want_write_and_a_moved_buffer},
    {"io: Write is rejected if the kernel encrypts", .runInKernel = Write_is_rejected_if_the_kernel_encrypts},
    {"io: a bad record is answered by its alert", .runInKernel = A_bad_record_is_answered_by_its_alert},
    {"io: a bad record before the end is answered by its alert",
     .runInKernel = A_bad_record_before_the_end_is_answered_by_its_alert},
    {"io: kernel TLS is unavailable", .run = Kernel_tls_is_unavailable},
    {.name = NULL}};

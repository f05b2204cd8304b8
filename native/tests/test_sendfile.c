/* SPDX-License-Identifier: MIT
 *
 * Sending files with sendfile(2) if the kernel encrypts.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
    FILE_SIZE = 300 * 1000
};

static void SendStep(const Link* link, int file, int64_t offset, int32_t count, KtlsResult* result)
{
    CHECK_EQ(KtlsNative_SendFile(link->client, link->pair.client, file, offset, count, 1, result), 0);
}

static void ReceivePattern(const Link* link, size_t position, size_t size)
{
    uint8_t buffer[20000];
    KtlsResult result;
    for (size_t received = 0; received < size; received += (size_t)result.bytes)
    {
        size_t left = size - received;
        int32_t capacity = (int32_t)(left < sizeof(buffer) ? left : sizeof(buffer));
        Link_ReadOne(link->server, link->pair.server, buffer, capacity, &result);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        for (int64_t i = 0; i < result.bytes; i++)
        {
            CHECK_EQ(buffer[i], Fixture_PatternAt(position + received + (size_t)i));
        }
    }
}

static void Arguments(void)
{
    KtlsResult result;
    uint64_t zeroes[64] = {0};
    int file = Fixture_OpenFile(FILE_SIZE);
    Link link = Link_CreateDefault(0);
    KtlsConnection* good = link.client;
    int socket = link.pair.client;
    CHECK_EQ(KtlsNative_SendFile(good, socket, file, 0, 1, 1, &result), ENOTCONN);
    Link_Run(&link);
    CHECK_EQ(KtlsNative_SendFile(NULL, socket, file, 0, 1, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_SendFile((KtlsConnection*)zeroes, socket, file, 0, 1, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_SendFile(good, socket, file, 0, 1, 1, NULL), EINVAL);
    CHECK_EQ(KtlsNative_SendFile(good, link.pair.server, file, 0, 1, 1, &result), EBADF);
    CHECK_EQ(KtlsNative_SendFile(good, socket, file, -1, 1, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_SendFile(good, socket, file, INT64_MAX, 1, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_SendFile(good, socket, file, 0, 0, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_SendFile(good, socket, file, 0, -1, 1, &result), EINVAL);
    (void)close(file);
    Link_Free(&link);
}

/* No plaintext may be sent if OpenSSL encrypts. */
static void Rejected_if_openssl_encrypts(void)
{
    KtlsResult result;
    int file = Fixture_OpenFile(FILE_SIZE);
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    CHECK_EQ(KtlsNative_SendFile(link.client, link.pair.client, file, 0, 1000, 1, &result), EPERM);
    Link_TransferBothWays(&link, 1000);
    (void)close(file);
    Link_Free(&link);
}

static void Sections_arrive(void)
{
    static const struct
    {
        int64_t offset;
        int32_t count;
    } s_sections[] = {{0, 1}, {1, 16383}, {4095, 16384}, {4097, 16385}, {0, FILE_SIZE}, {FILE_SIZE - 1, 1}};
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        int file = Fixture_OpenFile(FILE_SIZE);
        Link link = Link_Establish(version, KTLS_FLAG_ENABLE_KTLS);
        for (size_t i = 0; i < sizeof(s_sections) / sizeof(s_sections[0]); i++)
        {
            KtlsResult result;
            int64_t sent = 0;
            while (sent < s_sections[i].count)
            {
                SendStep(&link, file, s_sections[i].offset + sent, s_sections[i].count - (int32_t)sent, &result);
                CHECK_EQ(result.status, KTLS_STATUS_OK);
                CHECK(result.bytes > 0);
                ReceivePattern(&link, (size_t)(s_sections[i].offset + sent), (size_t)result.bytes);
                sent += result.bytes;
            }
            CHECK_EQ(sent, s_sections[i].count);
        }
        CHECK_EQ(lseek(file, 0, SEEK_CUR), FILE_SIZE);
        Link_TransferBothWays(&link, 1000);
        (void)close(file);
        Link_Free(&link);
    }
}

static void Unsupported_files(void)
{
    KtlsResult result;
    int ends[2];
    int file = Fixture_OpenFile(FILE_SIZE);
    Link link = Link_Establish(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS);
    SendStep(&link, file, FILE_SIZE, 100, &result);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(result.bytes, 0);
    SendStep(&link, -1, 0, 100, &result);
    CHECK_EQ(result.status, KTLS_STATUS_SYSCALL);
    CHECK_EQ(result.sysErrno, EBADF);
    CHECK(pipe(ends) == 0);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    SendStep(&link, ends[0], 0, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_SYSCALL);
    CHECK_EQ(result.sysErrno, ESPIPE);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(file);
    /* Nothing was sent. */
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
}

static void Full_socket(void)
{
    /* About forty times the size of the buffers. */
    const int64_t section = 80 * 1000;
    KtlsResult result;
    int file = Fixture_OpenFile(FILE_SIZE);
    Link link = Link_Establish(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS);
    Fixture_ShrinkBuffers(&link.pair);
    int64_t sent = 0;
    int waits = 0;
    int64_t received = 0;
    while (sent < section)
    {
        SendStep(&link, file, sent, (int32_t)(section - sent), &result);
        if (result.status == KTLS_STATUS_WANT_WRITE)
        {
            CHECK_EQ(result.bytes, 0);
            CHECK_EQ(result.sysErrno, 0);
            waits++;
            if (received < sent)
            {
                ReceivePattern(&link, (size_t)received, (size_t)(sent - received));
                received = sent;
            }
            Fixture_Wait(link.pair.client, POLLOUT);
            continue;
        }
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        CHECK(result.bytes > 0);
        sent += result.bytes;
    }
    CHECK(waits > 0);
    ReceivePattern(&link, (size_t)received, (size_t)(sent - received));
    Link_TransferBothWays(&link, 1000);
    (void)close(file);
    Link_Free(&link);
}

/* After close_notify and after a reset the call fails without a signal. */
static void Closed(void)
{
    KtlsResult result;
    int file = Fixture_OpenFile(FILE_SIZE);
    Link link = Link_Establish(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS);
    CHECK_EQ(KtlsNative_Shutdown(link.server, link.pair.server, &result), 0);
    CHECK_EQ(KtlsNative_SendFile(link.server, link.pair.server, file, 0, 1000, 1, &result), EPIPE);

    const struct linger reset = {1, 0};
    CHECK(setsockopt(link.pair.server, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);
    (void)close(link.pair.server);
    do
    {
        SendStep(&link, file, 0, 1000, &result);
    } while (result.status == KTLS_STATUS_OK);
    CHECK_EQ(result.status, KTLS_STATUS_SYSCALL);
    CHECK(result.sysErrno == ECONNRESET || result.sysErrno == EPIPE);
    SendStep(&link, file, 0, 1000, &result);
    /* The TLS layer repeats the error of a reset. Plain TCP reports it once. */
    CHECK_EQ(result.status, KTLS_STATUS_SYSCALL);
    CHECK(result.sysErrno == ECONNRESET || result.sysErrno == EPIPE);

    (void)close(file);
    link.pair.server = open("/dev/null", O_RDONLY | O_CLOEXEC);
    Link_Free(&link);
}

const Test g_sendFileTests[] = {
    {"sendfile: arguments", .run = Arguments},
    {"sendfile: rejected if OpenSSL encrypts", .run = Rejected_if_openssl_encrypts},
    {"sendfile: sections arrive", .runInKernel = Sections_arrive},
    {"sendfile: unsupported files", .runInKernel = Unsupported_files},
    {"sendfile: full socket", .runInKernel = Full_socket},
    {"sendfile: closed", .runInKernel = Closed},
    {.name = NULL}};

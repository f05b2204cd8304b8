/* SPDX-License-Identifier: MIT
 *
 * The end of a connection: close_notify, truncation, reset.
 */
#include "fixture.h"
#include "ktls_socket.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static void CheckRead(KtlsConnection* connection, int socket, int32_t status)
{
    uint8_t buffer[16];
    KtlsResult result;
    Link_ReadOne(connection, socket, buffer, sizeof(buffer), &result);
    CHECK_EQ(result.status, status);
    CHECK_EQ(result.bytes, 0);
}

/* Each end closes its sending direction. The other direction still works. */
static void Close(int32_t version, int32_t flags)
{
    uint8_t byte = 1;
    KtlsResult result;
    Link link = Link_Establish(version, flags);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, &byte, 1, &result), EPIPE);
    CHECK_EQ(KtlsNative_KeyUpdate(link.client, link.pair.client, 0, &result), EPIPE);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_CLOSE_NOTIFY);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Transfer(link.server, link.pair.server, link.client, link.pair.client, 50000);
    CHECK_EQ(KtlsNative_Shutdown(link.server, link.pair.server, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CheckRead(link.client, link.pair.client, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Free(&link);
}

static void Close_notify(int32_t flags)
{
    Close(TLS1_2_VERSION, flags);
    Close(TLS1_3_VERSION, flags);
}

/* Sends a record through the kernel that OpenSSL would not send. */
static void SendRecord(int socket, uint8_t type, const uint8_t* bytes, size_t length)
{
    CHECK_EQ(KtlsSocket_SendRecord(socket, type, bytes, length, 0), 0);
}

/* Closes as JSSE does (RFC 8446, 6.1). OpenSSL processes the close_notify without reporting it. */
static void Close_notify_behind_user_canceled_kernel(void)
{
    static const uint8_t s_userCanceled[] = {SSL3_AL_WARNING, SSL_AD_USER_CANCELLED};
    KtlsResult result;
    Link link = Link_Establish(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS);
    SendRecord(link.pair.client, SSL3_RT_ALERT, s_userCanceled, sizeof(s_userCanceled));
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_CLOSE_NOTIFY);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Transfer(link.server, link.pair.server, link.client, link.pair.client, 50000);
    Link_Free(&link);
}

/* user_canceled alone does not end the stream: data after it may be missing. */
static void Truncation_behind_user_canceled_kernel(void)
{
    static const uint8_t s_userCanceled[] = {SSL3_AL_WARNING, SSL_AD_USER_CANCELLED};
    Link link = Link_Establish(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS);
    SendRecord(link.pair.client, SSL3_RT_ALERT, s_userCanceled, sizeof(s_userCanceled));
    CHECK(shutdown(link.pair.client, SHUT_WR) == 0);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_EOF);
    Link_Free(&link);
}

static void Data_before_close_notify_comes_first(void)
{
    uint8_t buffer[64];
    KtlsResult result;
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    CHECK_EQ(Link_SendPart(link.client, link.pair.client, (const uint8_t*)"the last words", 14), 14);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    Link_ReadOne(link.server, link.pair.server, buffer, sizeof(buffer), &result);
    CHECK_EQ(result.bytes, 14);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Free(&link);
}

/* The end is no error, and the other direction stays open. */
static void Truncate(int32_t version, int32_t flags)
{
    KtlsResult result;
    Link link = Link_Establish(version, flags);
    Link_TransferBothWays(&link, 1000);
    CHECK(shutdown(link.pair.client, SHUT_WR) == 0);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_EOF);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_EOF);
    CHECK_EQ(KtlsNative_Shutdown(link.server, link.pair.server, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CheckRead(link.client, link.pair.client, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Free(&link);
}

static void Truncation(int32_t flags)
{
    Truncate(TLS1_2_VERSION, flags);
    Truncate(TLS1_3_VERSION, flags);
}

static void Reset_by_peer(void)
{
    uint8_t byte = 1;
    KtlsResult result;
    Link link = Link_Establish(TLS1_2_VERSION, 0);
    KtlsPair gone = {-1, link.pair.server};
    link.pair.server = -1;
    KtlsPair_Close(&gone);
    CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, &byte, 1, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(KtlsNative_Flush(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_SYSCALL);
    CHECK_EQ(result.sysErrno, ECONNRESET);
    /* Sending has ended. TCP reports the cause once. */
    CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, &byte, 1, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
    CHECK_EQ(KtlsNative_Flush(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_SYSCALL);
    CHECK_EQ(result.sysErrno, EPIPE);
    Link_Free(&link);
}

/* A server rejects an upload: its response is readable after the write has failed. */
static void Data_is_readable_after_a_failed_write(void)
{
    uint8_t buffer[64] = {0};
    KtlsResult result;
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    CHECK_EQ(Link_SendPart(link.server, link.pair.server, (const uint8_t*)"too large", 9), 9);
    CHECK(shutdown(link.pair.client, SHUT_WR) == 0); /* makes the next write fail with EPIPE */
    CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, buffer, sizeof(buffer), &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(KtlsNative_Flush(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_SYSCALL);
    CHECK_EQ(result.sysErrno, EPIPE);
    Link_ReadOne(link.client, link.pair.client, buffer, sizeof(buffer), &result);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK(memcmp(buffer, "too large", 9) == 0);
    Link_Free(&link);
}

static void Shutdown_on_a_full_socket(void)
{
    KtlsResult result;
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    uint8_t byte;
    /* Reads the tickets, so that only the noise fills the buffer. */
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, &byte, 1, &result), 0);
    Fixture_ShrinkBuffers(&link.pair);
    size_t noise = Fixture_Fill(link.pair.client);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
    Fixture_Drain(link.pair.server, noise);
    Fixture_Wait(link.pair.client, POLLOUT);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CheckRead(link.server, link.pair.server, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Free(&link);
}

/* As many records as Write takes are held, while the socket has no room. close_notify and the FIN come after them. */
static void Held_records_come_before_close_notify(void)
{
    static uint8_t s_data[16384];
    uint8_t buffer[65536];
    KtlsResult result;
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, buffer, 1, &result), 0);
    Fixture_ShrinkBuffers(&link.pair);
    size_t noise = Fixture_Fill(link.pair.client);
    size_t written = 0;
    for (;;)
    {
        CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, s_data, sizeof(s_data), &result), 0);
        if (result.status == KTLS_STATUS_WANT_WRITE)
        {
            break;
        }
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        written += (size_t)result.bytes;
    }
    CHECK_EQ(written, 4 * sizeof(s_data));
    CHECK_EQ(KtlsNative_Flush(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
    CHECK_EQ(KtlsNative_CloseSending(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
    Fixture_Drain(link.pair.server, noise);
    bool closed = false;
    size_t read = 0;
    do
    {
        if (!closed)
        {
            CHECK_EQ(KtlsNative_CloseSending(link.client, link.pair.client, &result), 0);
            closed = result.status == KTLS_STATUS_OK;
        }
        CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, buffer, sizeof(buffer), &result), 0);
        read += (size_t)result.bytes;
        if (result.status == KTLS_STATUS_WANT_READ)
        {
            struct pollfd waits[2] = {{link.pair.server, POLLIN, 0}, {closed ? -1 : link.pair.client, POLLOUT, 0}};
            Fixture_WaitForEither(waits);
        }
    } while (result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
    CHECK_EQ(result.status, KTLS_STATUS_CLOSE_NOTIFY);
    CHECK_EQ(read, written);
    Link_Free(&link);
}

const Test g_closeTests[] = {
    {"close: close_notify, each direction", .runBoth = Close_notify},
    {"close: close_notify behind user_canceled, in the kernel",
     .runInKernel = Close_notify_behind_user_canceled_kernel},
    {"close: truncation behind user_canceled, in the kernel", .runInKernel = Truncation_behind_user_canceled_kernel},
    {"close: data before close_notify comes first", .run = Data_before_close_notify_comes_first},
    {"close: truncation is an end of its own kind", .runBoth = Truncation},
    {"close: reset by the peer", .run = Reset_by_peer},
    {"close: data is readable after a failed write", .run = Data_is_readable_after_a_failed_write},
    {"close: Shutdown on a full socket", .run = Shutdown_on_a_full_socket},
    {"close: held records come before close_notify", .run = Held_records_come_before_close_notify},
    {.name = NULL}};

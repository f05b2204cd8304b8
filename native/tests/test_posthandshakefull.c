/* SPDX-License-Identifier: MIT
 *
 * Post-handshake authentication with a full socket at the request or at the response.
 */
#include "request.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Reads the available bytes. records: they are data of the connection, otherwise noise. */
static size_t Drain(KtlsConnection* connection, int socket, bool records, size_t most)
{
    uint8_t drain[65536];
    size_t wanted = most < sizeof(drain) ? most : sizeof(drain);
    if (!records)
    {
        ssize_t drained = recv(socket, drain, wanted, 0);
        CHECK(drained > 0 || errno == EAGAIN);
        return drained > 0 ? (size_t)drained : 0;
    }
    KtlsResult result;
    CHECK_EQ(KtlsNative_Read(connection, socket, drain, (int32_t)wanted, &result), 0);
    CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
    return (size_t)result.bytes;
}

static void DrainAll(KtlsConnection* connection, int socket, bool records, size_t filled)
{
    while (filled > 0)
    {
        size_t drained = Drain(connection, socket, records, filled);
        filled -= drained;
        if (drained == 0)
        {
            Fixture_Wait(socket, POLLIN);
        }
    }
}

/* Returns whether the request had to wait: the socket may have room again. */
static bool Full_at_the_request_once(int32_t flags)
{
    bool records = (flags & KTLS_FLAG_ENABLE_KTLS) != 0;
    Link link = Request_Establish(flags, 0, 0, true);
    Fixture_ShrinkBuffers(&link.pair);
    /* Data if the kernel encrypts, otherwise noise, because a partly sent record of OpenSSL would block the request. */
    size_t filled = Fixture_Fill(link.pair.server);
    bool waited = Request_Step(&link) == KTLS_STATUS_WANT_WRITE;
    for (int i = 0; i < 3; i++)
    {
        Request_CheckReadIsBusy(&link);
        CHECK(Request_Step(&link) <= KTLS_STATUS_WANT_WRITE);
    }
    DrainAll(link.client, link.pair.client, records, filled);
    Fixture_Wait(link.pair.server, POLLOUT);
    Request_StartAndReadToPause(&link);
    Request_Respond(&link, -1);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
    return waited;
}

static void Full_at_the_request(int32_t flags)
{
    int attempts = 1;
    while (!Full_at_the_request_once(flags))
    {
        CHECK(++attempts <= 20);
    }
}

/* Selects the leaf and copies of the intermediate. With many copies the response exceeds a record. */
static void UseLongChain(Link* link, int32_t count)
{
    KtlsResult result;
    KtlsBlob chain[100];
    CHECK(count <= 100);
    for (int32_t i = 0; i < count; i++)
    {
        chain[i] = g_fixture.chain[i > 0];
    }
    CHECK_EQ(KtlsNative_UseCertificate(link->client, chain, count, (intptr_t)g_fixture.key, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
}

static void CheckServerChainLength(Link* link, int32_t count)
{
    intptr_t certificate;
    CHECK_EQ(KtlsNative_GetPeerCertificate(link->server, count - 1, &certificate), 0);
    CHECK(Fixture_IsInChain(certificate, count > 1));
    CHECK_EQ(KtlsNative_GetPeerCertificate(link->server, count, &certificate), ENODATA);
}

static bool Full_at_the_response_once(int32_t flags, int32_t count)
{
    bool records = (flags & KTLS_FLAG_ENABLE_KTLS) != 0;
    Link link = Request_Establish(flags, 0, 0, false);
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_WANT_READ);
    Fixture_ShrinkBuffers(&link.pair);
    Request_ReadToPause(&link);
    UseLongChain(&link, count);
    size_t filled = Fixture_Fill(link.pair.client);
    bool waited = Request_ReadNothing(&link) == KTLS_STATUS_WANT_WRITE;
    for (int i = 0; i < 3; i++)
    {
        CHECK(Request_ReadNothing(&link) <= KTLS_STATUS_WANT_WRITE);
    }
    if (!records)
    {
        DrainAll(link.server, link.pair.server, false, filled);
        filled = 0;
    }
    /* The server reads the data that precedes the response. */
    int32_t status;
    while ((status = Request_Step(&link)) != KTLS_STATUS_OK)
    {
        CHECK(status == KTLS_STATUS_WANT_READ || status == KTLS_STATUS_DATA_WAITING);
        if (status == KTLS_STATUS_DATA_WAITING)
        {
            filled -= Drain(link.server, link.pair.server, true, filled);
        }
        else
        {
            CHECK(Request_ReadNothing(&link) <= KTLS_STATUS_WANT_WRITE);
            struct pollfd wait = {link.pair.server, POLLIN, 0};
            (void)poll(&wait, 1, 10);
        }
    }
    CHECK_EQ(filled, 0);
    CheckServerChainLength(&link, count);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
    return waited;
}

/* With one record per message, and with several records for a message. */
static void Full_at_the_response(int32_t flags)
{
    static const int32_t s_counts[] = {2, 60};
    for (size_t i = 0; i < 2; i++)
    {
        int attempts = 1;
        while (!Full_at_the_response_once(flags, s_counts[i]))
        {
            CHECK(++attempts <= 20);
        }
    }
}

/* Writes until the socket is full. Returns the number of bytes written. The shim holds the last ones. */
static size_t WriteUntilFull(KtlsConnection* connection, int socket, const uint8_t* data, size_t length)
{
    size_t written = 0;
    for (size_t taken; (taken = Link_SendPart(connection, socket, data + written, length - written)) > 0;)
    {
        written += taken;
    }
    CHECK(written < length);
    return written;
}

/* Reads the available bytes and compares them with the pattern. */
static size_t ReadPattern(KtlsConnection* connection, int socket, const uint8_t* data, size_t from)
{
    KtlsResult result;
    uint8_t buffer[20000];
    CHECK_EQ(KtlsNative_Read(connection, socket, buffer, sizeof(buffer), &result), 0);
    CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
    CHECK(memcmp(buffer, data + from, (size_t)result.bytes) == 0);
    return from + (size_t)result.bytes;
}

/* The request arrives while a Write of the client waits for send buffer space, as in an upload. */
static void A_write_of_the_client_is_pending(void)
{
    enum
    {
        SIZE = 4000000
    };
    KtlsResult result;
    uint8_t* data = malloc(SIZE);
    CHECK(data != NULL);
    for (size_t i = 0; i < SIZE; i++)
    {
        data[i] = Fixture_PatternAt(i);
    }
    Link link = Request_Establish(0, 0, 0, true);
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_WANT_READ);
    Fixture_ShrinkBuffers(&link.pair);
    size_t written = WriteUntilFull(link.client, link.pair.client, data, SIZE);
    size_t received = 0;
    Request_ReadToPause(&link);
    CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, data, 1, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_CERTIFICATE);
    /* The response follows the data that is held. */
    int32_t status;
    while ((status = Request_Step(&link)) != KTLS_STATUS_OK)
    {
        CHECK(Request_ReadNothing(&link) <= KTLS_STATUS_WANT_WRITE);
        if (status == KTLS_STATUS_DATA_WAITING)
        {
            received = ReadPattern(link.server, link.pair.server, data, received);
        }
    }
    CHECK_EQ(received, written);
    Fixture_CheckPeerChain(link.server, 2);
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
    free(data);
}

/* The request follows the data that is held. */
static void A_write_of_the_server_is_pending(void)
{
    enum
    {
        SIZE = 4000000
    };
    uint8_t* data = calloc(1, SIZE);
    CHECK(data != NULL);
    Link link = Request_Establish(0, 0, 0, true);
    Fixture_ShrinkBuffers(&link.pair);
    size_t written = WriteUntilFull(link.server, link.pair.server, data, SIZE);
    size_t received = 0;
    int32_t status = Request_Step(&link);
    CHECK_EQ(status, KTLS_STATUS_WANT_WRITE);
    while (received < written)
    {
        received = ReadPattern(link.client, link.pair.client, data, received);
        status = status == KTLS_STATUS_WANT_WRITE ? Request_Step(&link) : status;
    }
    while (status == KTLS_STATUS_WANT_WRITE)
    {
        Fixture_Wait(link.pair.server, POLLOUT);
        status = Request_Step(&link);
    }
    Request_StartAndReadToPause(&link);
    Request_Respond(&link, -1);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
    free(data);
}

const Test g_postHandshakeFullTests[] = {
    {"post-handshake: a full socket at the request", .runBoth = Full_at_the_request},
    {"post-handshake: a full socket at the response", .runBoth = Full_at_the_response},
    {"post-handshake: a write of the client is pending", .run = A_write_of_the_client_is_pending},
    {"post-handshake: a write of the server is pending", .run = A_write_of_the_server_is_pending},
    {.name = NULL}};

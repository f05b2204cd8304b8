/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

Link Link_CreateWith(KtlsContext* client, KtlsContext* server, const char* serverName)
{
    Link link = {.verify = Fixture_Accept};
    Fixture_OpenPair(&link.pair);
    link.client = Fixture_CreateConnection(client, link.pair.client, serverName);
    link.server = Fixture_CreateConnection(server, link.pair.server, NULL);
    return link;
}

Link Link_Create(const KtlsContextOptions* client, const KtlsContextOptions* server)
{
    Fixture_Initialize();
    KtlsContext* clientContext = Fixture_CreateContext(client);
    KtlsContext* serverContext = Fixture_CreateContext(server);
    Link link = Link_CreateWith(clientContext, serverContext, "localhost");
    KtlsNative_ContextFree(clientContext);
    KtlsNative_ContextFree(serverContext);
    return link;
}

Link Link_CreateDefault(int32_t version)
{
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    return Link_Create(&client, &server);
}

static bool Step(KtlsConnection* connection, int socket, const Link* link, KtlsResult* result)
{
    CHECK_EQ(KtlsNative_Handshake(connection, socket, link->verify, link->verifyState, result), 0);
    return result->status != KTLS_STATUS_WANT_READ && result->status != KTLS_STATUS_WANT_WRITE;
}

static short WantedEvents(const KtlsResult* result)
{
    return result->status == KTLS_STATUS_WANT_WRITE ? POLLOUT : POLLIN;
}

void Link_Run(Link* link)
{
    bool clientDone = false;
    bool serverDone = false;
    for (;;)
    {
        clientDone = clientDone || Step(link->client, link->pair.client, link, &link->clientResult);
        serverDone = serverDone || Step(link->server, link->pair.server, link, &link->serverResult);
        if (clientDone && serverDone)
        {
            return;
        }
        struct pollfd waits[2] = {
            {clientDone ? -1 : link->pair.client, WantedEvents(&link->clientResult), 0},
            {serverDone ? -1 : link->pair.server, WantedEvents(&link->serverResult), 0}};
        Fixture_WaitForEither(waits);
    }
}

void Link_Succeed(Link* link)
{
    Link_Run(link);
    CHECK_EQ(link->clientResult.status, KTLS_STATUS_OK);
    CHECK_EQ(link->serverResult.status, KTLS_STATUS_OK);
}

void Link_RunToPause(Link* link, int32_t status)
{
    for (;;)
    {
        (void)Step(link->client, link->pair.client, link, &link->clientResult);
        if (link->clientResult.status == status)
        {
            return;
        }
        (void)Step(link->server, link->pair.server, link, &link->serverResult);
        if (link->serverResult.status == status)
        {
            return;
        }
        CHECK(link->clientResult.status <= KTLS_STATUS_WANT_WRITE);
        CHECK(link->serverResult.status <= KTLS_STATUS_WANT_WRITE);
    }
}

Link Link_Establish(int32_t version, int32_t flags)
{
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    client.flags |= flags;
    server.flags |= flags;
    Link link = Link_Create(&client, &server);
    Link_Succeed(&link);
    return link;
}

void Link_Free(Link* link)
{
    KtlsNative_ConnectionFree(link->client);
    KtlsNative_ConnectionFree(link->server);
    KtlsPair_Close(&link->pair);
}

size_t Link_SendPart(KtlsConnection* from, int socket, const uint8_t* data, size_t length)
{
    KtlsResult result;
    CHECK_EQ(KtlsNative_Flush(from, socket, &result), 0);
    CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_WRITE);
    if (result.status == KTLS_STATUS_WANT_WRITE || length == 0)
    {
        return 0;
    }
    int32_t error = KtlsNative_Write(from, socket, data, (int32_t)length, &result);
    if (error == EPERM)
    {
        ssize_t sent = send(socket, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        CHECK(sent > 0 || errno == EAGAIN);
        return sent > 0 ? (size_t)sent : 0;
    }
    CHECK_EQ(error, 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK(result.bytes > 0);
    size_t taken = (size_t)result.bytes;
    CHECK_EQ(KtlsNative_Flush(from, socket, &result), 0);
    CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_WRITE);
    return taken;
}

void Link_Transfer(KtlsConnection* from, int fromSocket, KtlsConnection* to, int toSocket, size_t size)
{
    uint8_t* data = malloc(size);
    uint8_t buffer[20000];
    CHECK(data != NULL);
    for (size_t i = 0; i < size; i++)
    {
        data[i] = Fixture_PatternAt(i);
    }

    size_t sent = 0;
    size_t received = 0;
    while (received < size)
    {
        size_t taken = Link_SendPart(from, fromSocket, data + sent, size - sent);
        sent += taken;
        KtlsResult result;
        CHECK_EQ(KtlsNative_Read(to, toSocket, buffer, sizeof(buffer), &result), 0);
        CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
        for (int64_t i = 0; i < result.bytes; i++)
        {
            CHECK_EQ(buffer[i], data[received + (size_t)i]);
        }
        received += (size_t)result.bytes;
        if (taken == 0 && result.bytes == 0 && result.messages == 0)
        {
            struct pollfd waits[2] = {{toSocket, POLLIN, 0}, {fromSocket, POLLOUT, 0}};
            Fixture_WaitForEither(waits);
        }
    }
    free(data);
}

void Link_TransferBothWays(Link* link, size_t size)
{
    Link_Transfer(link->client, link->pair.client, link->server, link->pair.server, size);
    Link_Transfer(link->server, link->pair.server, link->client, link->pair.client, size);
}

void Link_ReadNext(KtlsConnection* connection, int socket, uint8_t* buffer, int32_t capacity, KtlsResult* result)
{
    for (;;)
    {
        CHECK_EQ(KtlsNative_Read(connection, socket, buffer, capacity, result), 0);
        if (result->status != KTLS_STATUS_WANT_READ || result->messages > 0)
        {
            return;
        }
        Fixture_Wait(socket, POLLIN);
    }
}

void Link_ReadOne(KtlsConnection* connection, int socket, uint8_t* buffer, int32_t capacity, KtlsResult* result)
{
    do
    {
        Link_ReadNext(connection, socket, buffer, capacity, result);
    } while (result->status == KTLS_STATUS_WANT_READ);
}

Link Link_CreatePaused(const KtlsContextOptions* client, const KtlsContextOptions* server)
{
    Link link = Link_Create(client, server);
    Link_RunToPause(&link, KTLS_STATUS_WANT_CLIENT_HELLO);
    return link;
}

void Link_Switch(Link* link, const KtlsContextOptions* options)
{
    KtlsResult result;
    KtlsContext* context = Fixture_CreateContext(options);
    CHECK_EQ(KtlsNative_SwitchContext(link->server, context, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    KtlsNative_ContextFree(context);
}

void Link_Complete(Link* link)
{
    Link_Succeed(link);
    CHECK(ERR_peek_error() == 0);
    Link_TransferBothWays(link, 50000);
}

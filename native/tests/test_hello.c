/* SPDX-License-Identifier: MIT
 *
 * A server that pauses at the ClientHello: the data it reads, and its abort.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static void Contents_of_the_hello(void)
{
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_PausingOptions();
    KtlsClientHello hello;
    client.minVersion = TLS1_2_VERSION;
    Link link = Link_CreatePaused(&client, &server);
    CHECK_EQ(KtlsNative_GetClientHello(link.server, &hello), 0);
    CHECK_EQ(hello.serverNameLength, 5 + 9);
    CHECK(memcmp(hello.serverName + 5, "localhost", 9) == 0);
    CHECK_EQ(hello.legacyVersion, TLS1_2_VERSION);
    CHECK_EQ(hello.versionsLength, 5);
    CHECK(memcmp(hello.versions, "\4\3\4\3\3", 5) == 0);

    /* The pause lasts until a decision is made. */
    KtlsResult again;
    CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &again), 0);
    CHECK_EQ(again.status, KTLS_STATUS_WANT_CLIENT_HELLO);
    CHECK_EQ(KtlsNative_GetClientHello(link.server, &hello), 0);
    Link_Free(&link);

    client = Fixture_ClientOptions(TLS1_2_VERSION);
    link = Link_CreatePaused(&client, &server);
    CHECK_EQ(KtlsNative_GetClientHello(link.server, &hello), 0);
    CHECK_EQ(hello.legacyVersion, TLS1_2_VERSION);
    CHECK_EQ(hello.versionsLength, -1);
    Link_Free(&link);
}

/* A ClientHello that the test builds. */
typedef struct RawHello
{
    uint8_t bytes[4096];
    size_t length;
} RawHello;

static void PutNumber(RawHello* hello, size_t width, size_t number)
{
    for (size_t i = width; i-- > 0;)
    {
        hello->bytes[hello->length++] = (uint8_t)(number >> (8 * i));
    }
}

static RawHello CreateRaw(size_t legacyVersion, size_t type, const uint8_t* body, size_t length)
{
    RawHello hello;
    memset(&hello, 0, sizeof(hello));
    size_t extensions = type <= 0xFFFF ? 4 + length : 0;
    size_t message = 2 + 32 + 1 + 6 + 2 + 2 + extensions;
    PutNumber(&hello, 1, SSL3_RT_HANDSHAKE);
    PutNumber(&hello, 2, TLS1_VERSION);
    PutNumber(&hello, 2, 4 + message);
    PutNumber(&hello, 1, SSL3_MT_CLIENT_HELLO);
    PutNumber(&hello, 3, message);
    PutNumber(&hello, 2, legacyVersion);
    hello.length += 32 + 1; /* random, no session */
    PutNumber(&hello, 2, 4);
    PutNumber(&hello, 4, 0xC02B1301); /* ciphers */
    PutNumber(&hello, 2, 0x0100);     /* compression: none */
    PutNumber(&hello, 2, extensions);
    if (extensions > 0)
    {
        PutNumber(&hello, 2, type);
        PutNumber(&hello, 2, length);
        for (size_t i = 0; i < length; i++)
        {
            PutNumber(&hello, 1, body[i]);
        }
    }
    return hello;
}

/* Returns what the shim reads from a ClientHello with this extension only. */
static KtlsClientHello ReadHello(size_t legacyVersion, size_t type, const uint8_t* body, size_t length)
{
    KtlsResult result;
    KtlsClientHello hello;
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_PausingOptions();
    RawHello raw = CreateRaw(legacyVersion, type, body, length);
    Link link = Link_Create(&client, &server);
    CHECK(send(link.pair.client, raw.bytes, raw.length, MSG_NOSIGNAL) == (ssize_t)raw.length);
    Fixture_Wait(link.pair.server, POLLIN);
    CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_CLIENT_HELLO);
    CHECK_EQ(KtlsNative_GetClientHello(link.server, &hello), 0);
    Link_Free(&link);
    return hello;
}

static void Versions_of_the_hello(void)
{
    static const size_t s_noExtension = 0x10000;
    uint8_t content[257] = {254, 3, 4};
    CHECK_EQ(ReadHello(TLS1_VERSION, s_noExtension, NULL, 0).legacyVersion, TLS1_VERSION);
    CHECK_EQ(ReadHello(0x0305, s_noExtension, NULL, 0).legacyVersion, 0x0305);
    CHECK_EQ(ReadHello(0x0303, s_noExtension, NULL, 0).versionsLength, -1);
    CHECK_EQ(ReadHello(0x0303, 43, NULL, 0).versionsLength, 0);
    for (size_t length = 1; length <= 257; length += 64)
    {
        KtlsClientHello hello = ReadHello(0x0303, 43, content, length);
        CHECK_EQ(hello.versionsLength, length <= sizeof(hello.versions) ? length : 0);
        CHECK(hello.versionsLength == 0 || memcmp(hello.versions, content, length) == 0);
    }
}

static void Server_names_of_the_hello(void)
{
    uint8_t content[KTLS_SERVER_NAME_MAX + 1] = {1, 2, 0, 0, 255};
    memset(content + 5, 'x', sizeof(content) - 5);
    CHECK_EQ(ReadHello(0x0303, 0, NULL, 0).serverNameLength, 0);
    CHECK_EQ(ReadHello(0x0303, 43, content, 1).serverNameLength, 0);
    CHECK_EQ(ReadHello(0x0303, 0, content, sizeof(content)).serverNameLength, 0);
    for (size_t length = 1; length <= KTLS_SERVER_NAME_MAX; length += 37)
    {
        KtlsClientHello hello = ReadHello(0x0303, 0, content, length);
        CHECK_EQ(hello.serverNameLength, length);
        CHECK(memcmp(hello.serverName, content, length) == 0);
        CHECK_EQ(hello.versionsLength, -1);
    }
}

static void The_peer_gets_the_alert_of_the_abort(void)
{
    static const uint8_t s_alerts[] = {10, 20, 22, 40, 42, 43, 44,  45,  46,  47,  48, 49,
                                       50, 51, 70, 71, 80, 86, 110, 112, 113, 115, 120};
    KtlsContextOptions server = Fixture_PausingOptions();
    for (size_t i = 0; i < sizeof(s_alerts); i++)
    {
        KtlsResult result;
        KtlsResult again;
        KtlsContextOptions client = Fixture_ClientOptions(i % 2 == 0 ? TLS1_2_VERSION : 0);
        Link link = Link_CreatePaused(&client, &server);
        CHECK_EQ(KtlsNative_AbortHandshake(link.server, link.pair.server, s_alerts[i], &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, SSL_R_CALLBACK_FAILED);
        CHECK_EQ(KtlsNative_AbortHandshake(link.server, link.pair.server, 40, &again), EBUSY);
        Link_Run(&link);
        CHECK(memcmp(&link.serverResult, &result, sizeof(result)) == 0);
        CHECK_EQ(link.clientResult.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(link.clientResult.reason, 1000 + s_alerts[i]);
        Link_Free(&link);
    }
}

static void CheckBusy(KtlsConnection* connection, int socket, KtlsContext* context)
{
    KtlsClientHello hello;
    KtlsResult result;
    CHECK_EQ(KtlsNative_GetClientHello(connection, &hello), EBUSY);
    CHECK_EQ(hello.legacyVersion, 0);
    CHECK_EQ(KtlsNative_SwitchContext(connection, context, &result), EBUSY);
    CHECK_EQ(KtlsNative_AbortHandshake(connection, socket, 40, &result), EBUSY);
}

static void Only_while_paused(void)
{
    static const int32_t s_noAlerts[] = {-1, 0, 1, 21, 41, 90, 100, 109, 111, 116, 256};
    KtlsClientHello hello;
    KtlsResult result;
    uint64_t zeroes[64] = {0};
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_PausingOptions();
    KtlsContextOptions second = Fixture_ServerOptions(0);
    Link link = Link_Create(&client, &server);
    KtlsContext* context = Fixture_CreateContext(&second);
    KtlsContext* clientContext = Fixture_CreateContext(&client);
    CheckBusy(link.server, link.pair.server, context);
    CheckBusy(link.client, link.pair.client, context);
    Link_RunToPause(&link, KTLS_STATUS_WANT_CLIENT_HELLO);
    CHECK_EQ(KtlsNative_GetClientHello(link.server, NULL), EINVAL);
    CHECK_EQ(KtlsNative_GetClientHello(NULL, &hello), EINVAL);
    CHECK_EQ(KtlsNative_SwitchContext(NULL, context, &result), EINVAL);
    CHECK_EQ(KtlsNative_SwitchContext(link.server, NULL, &result), EINVAL);
    CHECK_EQ(KtlsNative_SwitchContext(link.server, (KtlsContext*)zeroes, &result), EINVAL);
    CHECK_EQ(KtlsNative_SwitchContext(link.server, clientContext, &result), EINVAL);
    CHECK_EQ(KtlsNative_SwitchContext(link.server, context, NULL), EINVAL);
    CHECK_EQ(KtlsNative_AbortHandshake(link.server, link.pair.client, 40, &result), EBADF);
    CHECK_EQ(KtlsNative_AbortHandshake(link.server, link.pair.server, 40, NULL), EINVAL);
    for (size_t i = 0; i < sizeof(s_noAlerts) / sizeof(s_noAlerts[0]); i++)
    {
        CHECK_EQ(KtlsNative_AbortHandshake(link.server, link.pair.server, s_noAlerts[i], &result), EINVAL);
    }
    CHECK_EQ(KtlsNative_SwitchContext(link.server, context, &result), 0);
    CheckBusy(link.server, link.pair.server, context);
    Link_Complete(&link);
    CheckBusy(link.server, link.pair.server, context);
    KtlsNative_ContextFree(context);
    KtlsNative_ContextFree(clientContext);
    Link_Free(&link);
}

/* Frees a connection during its pause. */
static void A_paused_connection_is_freed(void)
{
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_PausingOptions();
    for (int switched = 0; switched < 2; switched++)
    {
        Link link = Link_CreatePaused(&client, &server);
        if (switched != 0)
        {
            KtlsContextOptions second = Fixture_ServerOptions(0);
            Link_Switch(&link, &second);
        }
        Link_Free(&link);
    }
}

const Test g_helloTests[] = {
    {"hello: its contents", .run = Contents_of_the_hello},
    {"hello: its versions", .run = Versions_of_the_hello},
    {"hello: its server name", .run = Server_names_of_the_hello},
    {"hello: the peer gets the alert of the abort", .run = The_peer_gets_the_alert_of_the_abort},
    {"hello: decisions only while paused", .run = Only_while_paused},
    {"hello: a paused connection is freed", .run = A_paused_connection_is_freed},
    {.name = NULL}};

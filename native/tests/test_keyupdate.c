/* SPDX-License-Identifier: MIT
 *
 * TLS 1.3 key updates of both ends.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Returns whether the kernel accepts new keys. */
static bool CanRekey(void)
{
    return g_fixture.probe.rekeySendErrno == 0 && g_fixture.probe.rekeyReceiveErrno == 0;
}

static void Update(KtlsConnection* connection, int socket, int32_t requestPeer)
{
    KtlsResult result;
    CHECK_EQ(KtlsNative_KeyUpdate(connection, socket, requestPeer, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(result.keyUpdate, 0);
}

/* Processes the available control records. Returns whether the reader owes a KeyUpdate. */
static int32_t ReadControl(KtlsConnection* connection, int socket)
{
    KtlsResult result;
    uint8_t byte;
    Link_ReadNext(connection, socket, &byte, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    return result.keyUpdate;
}

static void UpdateBothKinds(Link* link)
{
    /* Reads the tickets first. */
    Link_TransferBothWays(link, 5000);
    Update(link->client, link->pair.client, 0);
    CHECK_EQ(ReadControl(link->server, link->pair.server), 0);
    Link_TransferBothWays(link, 100000);

    Update(link->server, link->pair.server, 1);
    CHECK_EQ(ReadControl(link->client, link->pair.client), 1);
    /* Sends the response. OpenSSL writes nothing else. */
    Update(link->client, link->pair.client, 0);
    CHECK_EQ(ReadControl(link->server, link->pair.server), 0);
    Link_TransferBothWays(link, 100000);

    for (int i = 0; i < 50; i++)
    {
        Update(link->client, link->pair.client, i % 2);
        (void)ReadControl(link->server, link->pair.server);
        Link_Transfer(link->client, link->pair.client, link->server, link->pair.server, 100);
    }
    Update(link->server, link->pair.server, 0);
    CHECK_EQ(ReadControl(link->client, link->pair.client), 0);
    Link_TransferBothWays(link, 100000);
}

static void Both_kinds(void)
{
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    UpdateBothKinds(&link);
    Link_Free(&link);
}

/* Each read processes one message and counts it, so that the caller can limit them. */
static void Each_is_counted(int32_t flags)
{
    if (flags != 0 && !CanRekey())
    {
        Test_Note("key updates are not supported here");
        return;
    }
    Link link = Link_Establish(TLS1_3_VERSION, flags);
    Link_TransferBothWays(&link, 1000);
    for (int i = 0; i < 3; i++)
    {
        Update(link.client, link.pair.client, 0);
    }
    uint8_t byte = 7;
    CHECK_EQ(Link_SendPart(link.client, link.pair.client, &byte, 1), 1);
    KtlsResult result;
    for (int i = 0; i < 3; i++)
    {
        Link_ReadNext(link.server, link.pair.server, &byte, 1, &result);
        CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
        CHECK_EQ(result.messages, 1);
    }
    Link_ReadOne(link.server, link.pair.server, &byte, 1, &result);
    CHECK_EQ(result.bytes, 1);
    CHECK_EQ(result.messages, 0);
    Link_Free(&link);
}

/* OpenSSL itself would respond to the first request while it reads the second message, or in the next write, while the
 * kernel sends data under the old key. */
static void Responds_only_on_request(int32_t flags)
{
    if (flags != 0 && !CanRekey())
    {
        Test_Note("key updates are not supported here");
        return;
    }
    Link link = Link_Establish(TLS1_3_VERSION, flags);
    KtlsResult result;
    uint8_t byte = 7;
    Link_TransferBothWays(&link, 1000);
    for (int i = 0; i < 3; i++)
    {
        Update(link.client, link.pair.client, i < 2);
    }
    for (int i = 0; i < 3; i++)
    {
        CHECK_EQ(ReadControl(link.server, link.pair.server), 1);
    }
    int32_t waiting = -1;
    CHECK_EQ(ioctl(link.pair.client, FIONREAD, &waiting), 0);
    CHECK_EQ(waiting, 0);
    CHECK_EQ(Link_SendPart(link.server, link.pair.server, &byte, 1), 1);
    Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
    CHECK_EQ(result.bytes, 1);
    CHECK_EQ(result.messages, 0);

    /* One response answers all requests (RFC 8446, 4.6.3). */
    Update(link.server, link.pair.server, 0);
    CHECK_EQ(ReadControl(link.client, link.pair.client), 0);
    Link_TransferBothWays(&link, 100000);
    Link_Free(&link);
}

static void Not_on_tls12(void)
{
    Link link = Link_Establish(TLS1_2_VERSION, 0);
    KtlsResult result;
    CHECK_EQ(KtlsNative_KeyUpdate(link.client, link.pair.client, 0, &result), ENOTSUP);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
}

/* Returns whether the socket stayed full. */
static bool Is_sent_once_if_the_socket_is_full(void)
{
    KtlsResult result;
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    Link_TransferBothWays(&link, 1000);
    Fixture_ShrinkBuffers(&link.pair);
    size_t noise = Fixture_Fill(link.pair.client);
    for (int i = 0; i < 3; i++)
    {
        CHECK_EQ(KtlsNative_KeyUpdate(link.client, link.pair.client, 0, &result), 0);
        if (result.status == KTLS_STATUS_OK)
        {
            Link_Free(&link);
            return false;
        }
        CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
        CHECK_EQ(result.keyUpdate, 1);
    }
    Fixture_Drain(link.pair.server, noise);
    Fixture_Wait(link.pair.client, POLLOUT);
    Update(link.client, link.pair.client, 0);
    /* One record, not four: header, content, type and tag. */
    Fixture_Wait(link.pair.server, POLLIN);
    int arrived = 0;
    CHECK_EQ(ioctl(link.pair.server, FIONREAD, &arrived), 0);
    CHECK_EQ(arrived, 5 + 5 + 1 + 16);
    CHECK_EQ(ReadControl(link.server, link.pair.server), 0);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
    return true;
}

static void Is_sent_once_on_a_full_socket(void)
{
    int attempts = 1;
    while (!Is_sent_once_if_the_socket_is_full())
    {
        CHECK(++attempts <= 20);
    }
}

/* The data is intact and the keys are updated, or the connection fails with a defined error. */
static void Own_update_in_the_kernel(void)
{
    Link link = Link_Establish(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS);
    Link_TransferBothWays(&link, 1000);
    KtlsResult result;
    int32_t error = KtlsNative_KeyUpdate(link.client, link.pair.client, 0, &result);
    bool newKeys = g_fixture.library.openSslVersion >= 0x30200000;
    if (!newKeys)
    {
        CHECK_EQ(error, ENOTSUP);
        Test_Note("rejected: this OpenSSL cannot give the kernel a new key");
        Link_TransferBothWays(&link, 100000);
    }
    else if (CanRekey())
    {
        CHECK_EQ(error, 0);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        CHECK_EQ(ReadControl(link.server, link.pair.server), 0);
        UpdateBothKinds(&link);
        Test_Note("re-keyed");
    }
    else
    {
        CHECK_EQ(error, 0);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        uint8_t text[256];
        CHECK_EQ(KtlsNative_ErrorText(result.openSslError, text, sizeof(text)), 0);
        Test_Note("own update ends the connection: %s", (const char*)text);
        uint8_t buffer[64];
        Link_ReadOne(link.server, link.pair.server, buffer, sizeof(buffer), &result);
        CHECK(result.status != KTLS_STATUS_OK);
        CHECK_EQ(result.bytes, 0);
        Test_Note("the peer: status %d, reason %d", result.status, result.reason);
    }
    Link_Free(&link);
}

/* A peer with user-space TLS updates its sending key, and the kernel decrypts at this end. */
static void The_peers_update_in_the_kernel(void)
{
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_3_VERSION);
    KtlsContextOptions server = Fixture_ServerOptions(TLS1_3_VERSION);
    server.flags |= KTLS_FLAG_ENABLE_KTLS;
    Link link = Link_Create(&client, &server);
    Link_Run(&link);
    Link_TransferBothWays(&link, 1000);
    Update(link.client, link.pair.client, 1);
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.server, &info), 0);
    if (info.ktlsReceive == 1 && g_fixture.probe.rekeyReceiveErrno != 0)
    {
        uint8_t byte;
        KtlsResult result;
        Link_ReadOne(link.server, link.pair.server, &byte, 1, &result);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
        CHECK(result.status != KTLS_STATUS_OK);
        Test_Note("ends the connection; the peer: status %d, reason %d", result.status, result.reason);
    }
    else
    {
        CHECK_EQ(ReadControl(link.server, link.pair.server), 1);
        Link_Transfer(link.client, link.pair.client, link.server, link.pair.server, 100000);
        Test_Note("receiving continues under the new key");
    }
    Link_Free(&link);
}

const Test g_keyUpdateTests[] = {
    {"key update: both kinds", .run = Both_kinds},
    {"key update: each is counted", .runBoth = Each_is_counted},
    {"key update: responds only on request", .runBoth = Responds_only_on_request},
    {"key update: not on TLS 1.2", .run = Not_on_tls12},
    {"key update: is sent once on a full socket", .run = Is_sent_once_on_a_full_socket},
    {"key update: own, in the kernel", .runInKernel = Own_update_in_the_kernel},
    {"key update: the peer's, in the kernel", .runInKernel = The_peers_update_in_the_kernel},
    {.name = NULL}};

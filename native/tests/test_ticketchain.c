/* SPDX-License-Identifier: MIT
 *
 * Servers that request certificates: a resumed session has the client's whole chain.
 */
#include "fixture.h"
#include "test.h"

#include <string.h>

enum
{
    MOST_CERTIFICATES = 64
};

typedef struct Ends
{
    KtlsContext* client;
    KtlsContext* server;
    KtlsContextOptions chosen; /* by a server that pauses at the ClientHello */
    int32_t count;             /* of the client's certificates */
    int32_t kernel;            /* KTLS_FLAG_ENABLE_KTLS or 0 */
} Ends;

static Ends CreateEnds(int32_t version, int32_t flags, int32_t count, bool pauses)
{
    static KtlsBlob s_chain[MOST_CERTIFICATES];
    Fixture_Initialize();
    CHECK(count <= MOST_CERTIFICATES);
    for (int32_t i = 0; i < count; i++)
    {
        s_chain[i] = g_fixture.chain[i == 0 ? 0 : 1];
    }
    Ends ends = {.count = count, .kernel = flags};
    KtlsContextOptions client = Fixture_ClientOptions(version);
    ends.chosen = Fixture_ServerOptions(version);
    ends.chosen.flags |= KTLS_FLAG_VERIFY_PEER | flags;
    client.flags |= KTLS_FLAG_CLIENT_SESSIONS | flags;
    client.certificates = count > 0 ? s_chain : NULL;
    client.certificateCount = count;
    client.privateKey = count > 0 ? ends.chosen.privateKey : 0;
    KtlsContextOptions pausing = Fixture_PausingOptions();
    ends.client = Fixture_CreateContext(&client);
    ends.server = Fixture_CreateContext(pauses ? &pausing : &ends.chosen);
    return ends;
}

/* Makes a connection with *session unless it is NULL, replaces *session if the server sent a ticket, and checks the
 * chain that the server has. Returns whether the session was resumed. */
static bool Connect(const Ends* ends, bool pauses, KtlsSession** session)
{
    Link link = Link_CreateWith(ends->client, ends->server, "localhost");
    if (*session != NULL)
    {
        CHECK_EQ(KtlsNative_UseSession(link.client, *session), 0);
    }
    if (pauses)
    {
        Link_RunToPause(&link, KTLS_STATUS_WANT_CLIENT_HELLO);
        Link_Switch(&link, &ends->chosen);
    }
    Link_Complete(&link);
    Fixture_CheckPeerChain(link.server, ends->count);
    Fixture_CheckPeerChain(link.server, ends->count);

    KtlsConnectionInfo info;
    KtlsSession* next = NULL;
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.server, &info), 0);
    CHECK_EQ(KtlsNative_TakeSession(link.client, &next), 0);
    if (next != NULL)
    {
        KtlsNative_SessionFree(*session);
        *session = next;
    }
    Link_Free(&link);
    return info.resumed != 0;
}

/* Connects four times. Then the keys have changed, and the server renews the ticket of a resumed session in TLS 1.2,
 * too. */
static void Run(int32_t version, int32_t flags, int32_t count, bool pauses, bool resumes)
{
    Ends ends = CreateEnds(version, flags, count, pauses);
    KtlsSession* session = NULL;
    CHECK(!Connect(&ends, pauses, &session));
    CHECK_EQ(Connect(&ends, pauses, &session), resumes);
    CHECK_EQ(Connect(&ends, pauses, &session), resumes);
    CHECK_EQ(KtlsNative_RotateTicketKeys(ends.server), 0);
    CHECK_EQ(Connect(&ends, pauses, &session), resumes);
    KtlsNative_SessionFree(session);
    KtlsNative_ContextFree(ends.client);
    KtlsNative_ContextFree(ends.server);
}

static void RunBoth(int32_t flags, int32_t count, bool pauses, bool resumes)
{
    Run(TLS1_2_VERSION, flags, count, pauses, resumes);
    Run(TLS1_3_VERSION, flags, count, pauses, resumes);
}

static void A_chain_is_resumed(int32_t flags)
{
    RunBoth(flags, 2, false, true);
}

static void A_chain_is_resumed_after_a_pause(void)
{
    RunBoth(0, 2, true, true);
}

static void A_leaf_or_nothing_is_resumed(void)
{
    RunBoth(0, 1, false, true);
    RunBoth(0, 0, false, true);
}

/* An issuer of the fixture takes some 400 bytes of 8 KiB. */
static void A_chain_without_room_is_not_resumed(void)
{
    RunBoth(0, 12, false, true);
    RunBoth(0, MOST_CERTIFICATES, false, false);
}

const Test g_ticketChainTests[] = {
    {"ticket chain: leaf and issuer", .runBoth = A_chain_is_resumed},
    {"ticket chain: a pause at the ClientHello", .run = A_chain_is_resumed_after_a_pause},
    {"ticket chain: a leaf, or no certificate", .run = A_leaf_or_nothing_is_resumed},
    {"ticket chain: no room", .run = A_chain_without_room_is_not_resumed},
    {.name = NULL}};

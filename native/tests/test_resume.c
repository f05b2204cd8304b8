/* SPDX-License-Identifier: MIT
 *
 * Client sessions that are taken from one connection and used on others.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Both contexts live until the end of a test, because the server context has the ticket keys. */
typedef struct Ends
{
    KtlsContext* client;
    KtlsContext* server;
} Ends;

static Ends CreateEnds(int32_t version, int32_t flags, int32_t serverFlags)
{
    Fixture_Initialize();
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    client.flags |= KTLS_FLAG_CLIENT_SESSIONS | flags;
    server.flags |= (flags & KTLS_FLAG_ENABLE_KTLS) | serverFlags;
    Ends ends = {Fixture_CreateContext(&client), Fixture_CreateContext(&server)};
    return ends;
}

static void FreeEnds(Ends* ends)
{
    KtlsNative_ContextFree(ends->client);
    KtlsNative_ContextFree(ends->server);
}

/* Makes a connection, with the session unless it is NULL. Returns whether it was resumed. */
static bool Connect(const Ends* ends, KtlsSession* session, KtlsSession** next)
{
    KtlsConnectionInfo info;
    int verified = 0;
    Link link = Link_CreateWith(ends->client, ends->server, "localhost");
    link.verifyState = (intptr_t)&verified;
    if (session != NULL)
    {
        CHECK_EQ(KtlsNative_UseSession(link.client, session), 0);
    }
    Link_Complete(&link); /* also reads the tickets */
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.client, &info), 0);
    CHECK_EQ(verified, info.resumed == 0);
    CHECK_EQ(KtlsNative_TakeSession(link.client, next), 0);
    KtlsSession* none = (KtlsSession*)&link;
    CHECK_EQ(KtlsNative_TakeSession(link.client, &none), 0);
    CHECK(none == NULL);
    Link_Free(&link); /* without close_notify, which keeps the session resumable */
    return info.resumed != 0;
}

static void CheckInfo(KtlsSession* session, int32_t version)
{
    KtlsSessionInfo info;
    CHECK(session != NULL);
    CHECK_EQ(KtlsNative_SessionInfo(session, &info), 0);
    CHECK_EQ(info.protocolVersion, version);
    CHECK_EQ(info.resumable, 1);
    /* time(2) is not used: its seconds may start a tick later than those of the clock that OpenSSL reads. */
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    CHECK(info.createdSeconds >= now.tv_sec - 100 && info.createdSeconds <= now.tv_sec);
    CHECK(info.timeoutSeconds > 0);
    CHECK(info.ticketLifetimeSeconds > 0);
    Test_Note(
        "TLS %s: timeout %lld s, ticket %lld s", version == TLS1_2_VERSION ? "1.2" : "1.3",
        (long long)info.timeoutSeconds, (long long)info.ticketLifetimeSeconds);
}

/* Each TLS 1.3 connection provides the ticket for the next one. */
static void Resume_tls13(int32_t flags)
{
    Ends ends = CreateEnds(TLS1_3_VERSION, flags, 0);
    KtlsSession* session = NULL;
    CHECK(!Connect(&ends, NULL, &session));
    CheckInfo(session, TLS1_3_VERSION);
    for (int i = 0; i < 3; i++)
    {
        KtlsSession* next = NULL;
        KtlsSessionInfo used;
        CHECK(Connect(&ends, session, &next));
        CHECK_EQ(KtlsNative_SessionInfo(session, &used), 0);
        CHECK_EQ(used.resumable, 0);
        KtlsNative_SessionFree(session);
        session = next;
        CheckInfo(session, TLS1_3_VERSION);
    }
    KtlsNative_SessionFree(session);
    FreeEnds(&ends);
}

/* A TLS 1.2 session is used repeatedly. */
static void Resume_tls12(int32_t flags)
{
    Ends ends = CreateEnds(TLS1_2_VERSION, flags, 0);
    KtlsSession* session = NULL;
    CHECK(!Connect(&ends, NULL, &session));
    CheckInfo(session, TLS1_2_VERSION);
    for (int i = 0; i < 3; i++)
    {
        KtlsSession* next = NULL;
        CHECK(Connect(&ends, session, &next));
        CHECK(next == NULL);
        CheckInfo(session, TLS1_2_VERSION);
    }
    KtlsNative_SessionFree(session);
    FreeEnds(&ends);
}

static void Resume(int32_t flags)
{
    Resume_tls12(flags);
    Resume_tls13(flags);
}

/* Tickets arrive, without data, at a client whose kernel decrypts. */
static void Tickets_under_a_kernel_receive_path(void)
{
    Ends ends = CreateEnds(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS, 0);
    Link link = Link_CreateWith(ends.client, ends.server, "localhost");
    KtlsSession* session = NULL;
    KtlsResult result;
    uint8_t byte;
    Link_Run(&link);
    while (session == NULL)
    {
        Link_ReadNext(link.client, link.pair.client, &byte, 1, &result);
        CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
        CHECK_EQ(KtlsNative_TakeSession(link.client, &session), 0);
    }
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
    KtlsSession* next = NULL;
    CHECK(Connect(&ends, session, &next));
    KtlsNative_SessionFree(session);
    KtlsNative_SessionFree(next);
    FreeEnds(&ends);
}

static void A_server_without_tickets(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        Ends ends = CreateEnds(version, 0, KTLS_FLAG_NO_TICKETS);
        KtlsSession* session = NULL;
        KtlsSessionInfo info;
        CHECK(!Connect(&ends, NULL, &session));
        if (session != NULL)
        {
            CHECK_EQ(KtlsNative_SessionInfo(session, &info), 0);
            CHECK_EQ(info.resumable, 0);
        }
        KtlsNative_SessionFree(session);
        FreeEnds(&ends);
    }
}

/* Offers a session to another server, which performs a full handshake. */
static void A_session_of_another_server(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        Ends ends = CreateEnds(version, 0, 0);
        Ends others = CreateEnds(version, 0, 0);
        KtlsSession* session = NULL;
        KtlsSession* next = NULL;
        CHECK(!Connect(&ends, NULL, &session));
        CHECK(!Connect(&others, session, &next));
        CHECK(next != NULL);
        KtlsNative_SessionFree(session);
        KtlsNative_SessionFree(next);
        FreeEnds(&ends);
        FreeEnds(&others);
    }
}

/* A fatal alert makes the session not resumable (RFC 5246, 7.2.2). */
static void A_fatal_alert_invalidates_the_session(void)
{
    Ends ends = CreateEnds(TLS1_2_VERSION, 0, 0);
    Link link = Link_CreateWith(ends.client, ends.server, "localhost");
    KtlsSession* session = NULL;
    KtlsSessionInfo info;
    KtlsResult result;
    uint8_t byte = 0;
    Link_Complete(&link);
    CHECK_EQ(KtlsNative_TakeSession(link.client, &session), 0);
    CHECK_EQ(KtlsNative_SessionInfo(session, &info), 0);
    CHECK_EQ(info.resumable, 1);
    /* A record that the peer's key did not encrypt. */
    static const uint8_t s_forged[] = {23, 3,  3,  0,  32, 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                       15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
    CHECK(send(link.pair.server, s_forged, sizeof(s_forged), MSG_NOSIGNAL) == sizeof(s_forged));
    Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(KtlsNative_SessionInfo(session, &info), 0);
    CHECK_EQ(info.resumable, 0);
    KtlsNative_SessionFree(session);
    Link_Free(&link);
    FreeEnds(&ends);
}

/* A client reads a FIN without close_notify, before or after it has sent its own close_notify. Data may be missing, but
 * the session stays resumable (RFC 5246, 7.2.1). The same applies if the kernel decrypts and OpenSSL does not see the
 * FIN. */
static void Truncate(int32_t version, int32_t flags, bool closed)
{
    Ends ends = CreateEnds(version, flags, 0);
    Link link = Link_CreateWith(ends.client, ends.server, "localhost");
    KtlsSession* session = NULL;
    KtlsSession* next = NULL;
    KtlsResult result;
    uint8_t byte = 0;
    Link_Complete(&link);
    CHECK_EQ(KtlsNative_TakeSession(link.client, &session), 0);
    if (closed)
    {
        CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
    }
    CHECK(shutdown(link.pair.server, SHUT_WR) == 0);
    Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_EOF);
    Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_EOF);
    Link_Free(&link);
    CheckInfo(session, version);
    CHECK(Connect(&ends, session, &next));
    KtlsNative_SessionFree(session);
    KtlsNative_SessionFree(next);
    FreeEnds(&ends);
}

static void TruncateAll(int32_t flags)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        for (int closed = 0; closed <= 1; closed++)
        {
            Truncate(version, flags, closed != 0);
            Truncate(version, flags | KTLS_FLAG_POST_HANDSHAKE_AUTH, closed != 0);
        }
    }
}

static void Arguments(void)
{
    uint64_t zeroes[8] = {0};
    KtlsSession* bad = (KtlsSession*)zeroes;
    KtlsSession* session = bad;
    KtlsSessionInfo info;
    Ends ends = CreateEnds(TLS1_2_VERSION, 0, 0);
    CHECK(!Connect(&ends, NULL, &session));
    Link link = Link_CreateWith(ends.client, ends.server, "localhost");
    CHECK_EQ(KtlsNative_UseSession(link.client, NULL), EINVAL);
    CHECK_EQ(KtlsNative_UseSession(link.client, bad), EINVAL);
    CHECK_EQ(KtlsNative_UseSession(NULL, session), EINVAL);
    CHECK_EQ(KtlsNative_UseSession(link.server, session), EINVAL);
    CHECK_EQ(KtlsNative_UseSession(link.client, session), 0);
    CHECK_EQ(KtlsNative_UseSession(link.client, session), 0);
    CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Fixture_Accept, 0, &link.clientResult), 0);
    CHECK_EQ(KtlsNative_UseSession(link.client, session), EBUSY);
    KtlsSession* none = bad;
    CHECK_EQ(KtlsNative_TakeSession(NULL, &none), EINVAL);
    CHECK(none == NULL);
    CHECK_EQ(KtlsNative_TakeSession(link.client, NULL), EINVAL);
    CHECK_EQ(KtlsNative_TakeSession(link.server, &none), 0);
    CHECK(none == NULL);
    CHECK_EQ(KtlsNative_SessionInfo(bad, &info), EINVAL);
    CHECK_EQ(KtlsNative_SessionInfo(NULL, &info), EINVAL);
    CHECK_EQ(KtlsNative_SessionInfo(session, NULL), EINVAL);
    KtlsNative_SessionFree(NULL);
    KtlsNative_SessionFree(bad);
    /* The connection holds its own reference. */
    KtlsNative_SessionFree(session);
    Link_Complete(&link);
    Link_Free(&link);
    FreeEnds(&ends);
}

/* A ticket stays valid after one rotation of the keys, but not after two. (With TLS 1.2, an OpenSSL client does not
 * report the ticket that replaces it.) */
static void RotateKeys(int32_t version)
{
    Ends ends = CreateEnds(version, 0, 0);
    KtlsSession* sessions[4] = {NULL, NULL, NULL, NULL};
    CHECK(!Connect(&ends, NULL, &sessions[0]));
    CHECK_EQ(KtlsNative_RotateTicketKeys(ends.server), 0);
    CHECK(Connect(&ends, sessions[0], &sessions[1]));
    KtlsSession* latest = sessions[1] != NULL ? sessions[1] : sessions[0];
    CHECK_EQ(sessions[1] != NULL, version == TLS1_3_VERSION);
    CHECK_EQ(KtlsNative_RotateTicketKeys(ends.server), 0);
    CHECK_EQ(Connect(&ends, latest, &sessions[2]), version == TLS1_3_VERSION);
    CHECK(sessions[2] != NULL);
    CHECK_EQ(KtlsNative_RotateTicketKeys(ends.server), 0);
    CHECK_EQ(KtlsNative_RotateTicketKeys(ends.server), 0);
    CHECK(!Connect(&ends, sessions[2], &sessions[3]));
    for (int i = 0; i < 4; i++)
    {
        KtlsNative_SessionFree(sessions[i]);
    }
    CHECK_EQ(KtlsNative_RotateTicketKeys(ends.client), EINVAL);
    CHECK_EQ(KtlsNative_RotateTicketKeys(NULL), EINVAL);
    FreeEnds(&ends);
}

static void Ticket_keys_rotate(void)
{
    RotateKeys(TLS1_2_VERSION);
    RotateKeys(TLS1_3_VERSION);
}

const Test g_resumeTests[] = {
    {"resume: ticket keys rotate", .run = Ticket_keys_rotate},
    {"resume: shim clients", .runBoth = Resume},
    {"resume: tickets under a kernel receive path", .runInKernel = Tickets_under_a_kernel_receive_path},
    {"resume: a server without tickets", .run = A_server_without_tickets},
    {"resume: a session of another server", .run = A_session_of_another_server},
    {"resume: a fatal alert invalidates the session", .run = A_fatal_alert_invalidates_the_session},
    {"resume: truncation keeps the session", .runBoth = TruncateAll},
    {"resume: arguments", .run = Arguments},
    {.name = NULL}};

/* SPDX-License-Identifier: MIT
 *
 * Tickets, resumption and renegotiation with a plain OpenSSL peer, which supports more than the shim.
 */
#include "fixture.h"
#include "test.h"

#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static SSL_SESSION* s_session;

static int KeepSession(SSL* ssl, SSL_SESSION* session)
{
    (void)ssl;
    SSL_SESSION_free(s_session);
    s_session = session;
    return 1;
}

/* Connects a plain client to a shim server. Returns whether it resumed s_session. */
static bool Connect(KtlsContext* server, SSL_CTX* client)
{
    KtlsPair pair;
    Fixture_OpenPair(&pair);
    KtlsConnection* shim = Fixture_CreateConnection(server, pair.server, NULL);
    SSL* plain = SSL_new(client);
    CHECK(plain != NULL && SSL_set_fd(plain, pair.client) == 1);
    SSL_set_connect_state(plain);
    if (s_session != NULL)
    {
        CHECK(SSL_set_session(plain, s_session) == 1);
    }
    Fixture_ShakeHands(shim, pair.server, plain);

    /* Transfers a byte each way, so that the tickets are read. */
    uint8_t byte = 5;
    KtlsResult result;
    CHECK(SSL_write(plain, &byte, 1) == 1);
    Link_ReadOne(shim, pair.server, &byte, 1, &result);
    CHECK_EQ(Link_SendPart(shim, pair.server, &byte, 1), 1);
    Fixture_Wait(pair.client, POLLIN);
    while (SSL_read(plain, &byte, 1) != 1)
    {
        Fixture_Wait(pair.client, POLLIN);
    }
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(shim, &info), 0);
    CHECK_EQ(info.resumed, SSL_session_reused(plain));
    (void)SSL_shutdown(plain); /* otherwise the session is not resumable */
    SSL_free(plain);
    KtlsNative_ConnectionFree(shim);
    KtlsPair_Close(&pair);
    return info.resumed != 0;
}

static bool ResumesWith(uint64_t clientOptions, int32_t version, int32_t flags)
{
    Fixture_Initialize();
    KtlsContextOptions options = Fixture_ServerOptions(version);
    options.flags |= flags;
    KtlsContext* server = Fixture_CreateContext(&options);
    SSL_CTX* client = SSL_CTX_new(TLS_client_method());
    CHECK(client != NULL);
    (void)SSL_CTX_set_options(client, clientOptions);
    (void)SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(client, KeepSession);
    CHECK(!Connect(server, client));
    bool resumed = Connect(server, client);
    SSL_SESSION_free(s_session);
    s_session = NULL;
    SSL_CTX_free(client);
    KtlsNative_ContextFree(server);
    return resumed;
}

static bool Resumes(int32_t version, int32_t flags)
{
    return ResumesWith(0, version, flags);
}

static void Resumption(void)
{
    CHECK(Resumes(TLS1_2_VERSION, 0));
    CHECK(Resumes(TLS1_3_VERSION, 0));
    CHECK(Resumes(TLS1_2_VERSION, KTLS_FLAG_VERIFY_PEER));
    CHECK(Resumes(TLS1_3_VERSION, KTLS_FLAG_VERIFY_PEER));
}

/* The server keeps such a session, and has not sent close_notify on its connection. */
static void Resumption_without_tickets(void)
{
    CHECK(ResumesWith(SSL_OP_NO_TICKET, TLS1_2_VERSION, 0));
    CHECK(ResumesWith(SSL_OP_NO_TICKET, TLS1_3_VERSION, 0));
}

static void No_tickets(void)
{
    CHECK(!Resumes(TLS1_2_VERSION, KTLS_FLAG_NO_TICKETS));
    CHECK(!Resumes(TLS1_3_VERSION, KTLS_FLAG_NO_TICKETS));
}

static void Tickets_do_not_disturb_the_data(void)
{
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    KtlsResult result;
    uint8_t buffer[64];
    CHECK_EQ(Link_SendPart(link.server, link.pair.server, (const uint8_t*)"at once", 7), 7);
    Link_ReadOne(link.client, link.pair.client, buffer, sizeof(buffer), &result);
    CHECK_EQ(result.bytes, 7);
    CHECK(memcmp(buffer, "at once", 7) == 0);
    Link_Free(&link);
}

static void A_connection_outlives_its_context(void)
{
    /* Link_Create releases the contexts. The ALPN list must still be valid during the selection. */
    static const uint8_t s_alpn[] = {2, 'h', '2'};
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_ServerOptions(0);
    client.alpn = server.alpn = s_alpn;
    client.alpnLength = server.alpnLength = sizeof(s_alpn);
    Link link = Link_Create(&client, &server);
    Link_Run(&link);
    CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
    Link_TransferBothWays(&link, 10000);
    Link_Free(&link);
}

/* A TLS 1.2 server requests a renegotiation from a shim client. Returns the result of the client's Read. */
static KtlsResult Renegotiate(int32_t flags)
{
    KtlsPair pair;
    KtlsResult result;
    Fixture_Initialize();
    Fixture_OpenPair(&pair);
    KtlsContextOptions options = Fixture_ClientOptions(TLS1_2_VERSION);
    options.flags |= flags;
    KtlsContext* context = Fixture_CreateContext(&options);
    KtlsConnection* shim = Fixture_CreateConnection(context, pair.client, "localhost");
    SSL_CTX* server = SSL_CTX_new(TLS_server_method());
    CHECK(server != NULL && SSL_CTX_use_certificate(server, g_fixture.leaf) == 1);
    CHECK(SSL_CTX_use_PrivateKey(server, g_fixture.key) == 1);
    /* Otherwise the renegotiation resumes the session and sends no certificate. */
    (void)SSL_CTX_set_options(server, SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION);
    SSL* plain = SSL_new(server);
    CHECK(plain != NULL && SSL_set_fd(plain, pair.server) == 1);
    SSL_set_accept_state(plain);
    Fixture_ShakeHands(shim, pair.client, plain);

    CHECK(SSL_renegotiate(plain) == 1);
    uint8_t byte;
    do
    {
        (void)SSL_do_handshake(plain);
        (void)SSL_read(plain, &byte, 1);
        ERR_clear_error();
        CHECK_EQ(KtlsNative_Read(shim, pair.client, &byte, 1, &result), 0);
    } while (result.status == KTLS_STATUS_WANT_READ);
    SSL_free(plain);
    SSL_CTX_free(server);
    KtlsNative_ConnectionFree(shim);
    KtlsNative_ContextFree(context);
    KtlsPair_Close(&pair);
    return result;
}

static void Renegotiation_is_rejected(void)
{
    /* The client sends a warning alert, which ends the connection for this server. The request does not break the
     * client. */
    KtlsResult result = Renegotiate(0);
    CHECK(result.reason != SSL_R_CERTIFICATE_VERIFY_FAILED);
    CHECK(result.status != KTLS_STATUS_OK);
}

static void A_certificate_under_read_is_rejected(void)
{
    KtlsResult result = Renegotiate(KTLS_FLAG_ALLOW_RENEGOTIATION);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(result.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
}

const Test g_sessionTests[] = {
    {"session: a client resumes", .run = Resumption},
    {"session: a client without tickets resumes", .run = Resumption_without_tickets},
    {"session: NO_TICKETS means none", .run = No_tickets},
    {"session: tickets do not disturb the data", .run = Tickets_do_not_disturb_the_data},
    {"session: a connection outlives its context", .run = A_connection_outlives_its_context},
    {"session: renegotiation is rejected", .run = Renegotiation_is_rejected},
    {"session: a certificate under Read is rejected", .run = A_certificate_under_read_is_rejected},
    {.name = NULL}};

/* SPDX-License-Identifier: MIT
 *
 * Post-handshake authentication (TLS 1.3): request, response and validation.
 */
#include "request.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <string.h>

static int32_t CheckChain(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl)
{
    CHECK(count >= 1 && count <= 2);
    CHECK_EQ(staple, KTLS_STAPLE_NONE);
    CHECK(ssl != 0);
    for (int i = 0; i < count; i++)
    {
        CHECK(Fixture_IsInChain(chain[i], i));
    }
    ++*(int*)state;
    ERR_raise(ERR_LIB_X509, ERR_R_INTERNAL_ERROR);
    errno = EAGAIN;
    return X509_V_OK;
}

/* Performs several exchanges: with the chain of the context, with selected chains and with none. */
static void Accepted(int32_t flags)
{
    static const int32_t s_answers[] = {-1, 1, 0, 2, -1};
    for (int own = 0; own < 2; own++)
    {
        Link link = Request_Establish(flags, 0, 0, own != 0);
        int32_t shown = own != 0 ? 2 : 0;
        for (size_t i = 0; i < sizeof(s_answers) / sizeof(s_answers[0]); i++)
        {
            int calls = 0;
            shown = s_answers[i] >= 0 ? s_answers[i] : shown;
            Request_StartAndReadToPause(&link);
            Request_Respond(&link, s_answers[i]);
            CHECK_EQ(Request_Finish(&link, CheckChain, (intptr_t)&calls).status, KTLS_STATUS_OK);
            CHECK_EQ(calls, shown > 0);
            Fixture_CheckPeerChain(link.server, shown);
            Link_TransferBothWays(&link, 50000);
            Fixture_CheckPeerChain(link.server, shown);
        }
        Link_Free(&link);
    }
}

/* An empty response replaces the certificate of the handshake. It does not end the connection, even under REQUIRE_PEER.
 */
static void Certificate_is_withdrawn(int32_t flags)
{
    Link link = Request_Establish(flags, 0, KTLS_FLAG_REQUIRE_PEER, true);
    Fixture_CheckPeerChain(link.server, 2);
    for (int32_t count = 0; count < 2; count++)
    {
        Request_StartAndReadToPause(&link);
        Fixture_CheckPeerChain(link.server, count == 0 ? 2 : 0);
        Request_Respond(&link, count);
        CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
        Fixture_CheckPeerChain(link.server, count);
        Link_TransferBothWays(&link, 1000);
    }
    Link_Free(&link);
}

static void SendAll(KtlsConnection* connection, int socket, const char* text)
{
    CHECK_EQ(Link_SendPart(connection, socket, (const uint8_t*)text, strlen(text)), strlen(text));
}

static void ServerReads(Link* link, int32_t capacity, const char* text)
{
    KtlsResult result;
    uint8_t buffer[64];
    CHECK_EQ(KtlsNative_Read(link->server, link->pair.server, buffer, capacity, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(result.bytes, strlen(text));
    CHECK(memcmp(buffer, text, strlen(text)) == 0);
}

/* Data before the request, between request and response, and after the response arrives completely and in order. */
static void Interleaved_data(int32_t flags)
{
    KtlsResult result;
    uint8_t byte;
    Link link = Request_Establish(flags, 0, 0, true);

    /* With decrypted data pending, no request is sent. */
    SendAll(link.client, link.pair.client, "early");
    Fixture_Wait(link.pair.server, POLLIN);
    ServerReads(&link, 2, "ea");
    result = Request_StepWith(&link, Fixture_Accept, 0);
    CHECK_EQ(result.status, KTLS_STATUS_DATA_WAITING);
    CHECK_EQ(result.pending, 1);
    CHECK_EQ(Request_ReadNothing(&link), KTLS_STATUS_WANT_READ);
    ServerReads(&link, 64, "rly");

    /* Data that is still in the socket is found after the request. */
    SendAll(link.client, link.pair.client, "one");
    SendAll(link.client, link.pair.client, "two");
    Fixture_Wait(link.pair.server, POLLIN);
    result = Request_Finish(&link, Fixture_Accept, 0);
    CHECK_EQ(result.status, KTLS_STATUS_DATA_WAITING);
    CHECK_EQ(result.pending, 1);
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_DATA_WAITING);
    CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, &byte, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    ServerReads(&link, 1, "o");
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_DATA_WAITING);
    ServerReads(&link, 2, "ne");
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_DATA_WAITING);
    ServerReads(&link, 2, "tw");
    ServerReads(&link, 1, "o");
    Request_CheckReadIsBusy(&link);
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_WANT_READ);
    Request_CheckReadIsBusy(&link);

    /* Data surrounds the response, and everything has arrived before the server reads. The server may send in between.
     */
    SendAll(link.client, link.pair.client, "before");
    Request_ReadToPause(&link);
    Request_Respond(&link, -1);
    SendAll(link.client, link.pair.client, "after");
    SendAll(link.server, link.pair.server, "meanwhile");
    int calls = 0;
    result = Request_Finish(&link, CheckChain, (intptr_t)&calls);
    CHECK_EQ(result.status, KTLS_STATUS_DATA_WAITING);
    CHECK_EQ(calls, 0);
    ServerReads(&link, 64, "before");
    Request_CheckReadIsBusy(&link);
    result = Request_Finish(&link, CheckChain, (intptr_t)&calls);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(calls, 1);
    Fixture_CheckPeerChain(link.server, 2);
    Fixture_Wait(link.pair.client, POLLIN);
    int32_t bytes;
    CHECK_EQ(Request_ReadSome(link.client, link.pair.client, &bytes), KTLS_STATUS_OK);
    CHECK_EQ(bytes, 9);
    for (;;)
    {
        CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, &byte, 0, &result), 0);
        if (result.status == KTLS_STATUS_OK)
        {
            break;
        }
        CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
        Fixture_Wait(link.pair.server, POLLIN);
    }
    ServerReads(&link, 64, "after");
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
}

/* Repeated calls send one request, and the client pauses once. */
static void Repeated(int32_t flags)
{
    KtlsResult result;
    uint8_t byte = 0;
    int32_t length;
    Link link = Request_Establish(flags, 0, 0, true);
    for (int i = 0; i < 5; i++)
    {
        CHECK_EQ(Request_Step(&link), KTLS_STATUS_WANT_READ);
    }
    Fixture_Wait(link.pair.client, POLLIN);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_CERTIFICATE);
    CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, 0, NULL, 0, &length), ERANGE);
    /* These calls fail during the pause and do not end it. */
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, NULL, 1, &result), EINVAL);
    bool kernel = (flags & KTLS_FLAG_ENABLE_KTLS) != 0;
    CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, &byte, 1, &result), kernel ? EPERM : 0);
    CHECK(kernel || result.status == KTLS_STATUS_WANT_CERTIFICATE);
    CHECK_EQ(KtlsNative_UseCertificate(link.client, g_fixture.chain, 1, (intptr_t)g_fixture.otherKey, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    int32_t update = KtlsNative_KeyUpdate(link.client, link.pair.client, 0, &result);
    CHECK(update == ENOTSUP || (update == 0 && result.status == KTLS_STATUS_WANT_READ));
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.reason, SSL_R_SHUTDOWN_WHILE_IN_INIT);
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_WANT_READ);

    Request_UseCertificates(&link, 0);
    Request_UseCertificates(&link, 1);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    CHECK_EQ(KtlsNative_UseCertificate(link.client, NULL, 0, 0, &result), EBUSY);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 1);
    CHECK_EQ(Request_ReadNothing(&link), KTLS_STATUS_WANT_READ);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
}

/* A selection made in the pause of the handshake stays valid until another one is made. */
static void After_a_pause_in_the_handshake(int32_t flags)
{
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_3_VERSION);
    KtlsContextOptions server = Fixture_ServerOptions(TLS1_3_VERSION);
    client.flags |= KTLS_FLAG_POST_HANDSHAKE_AUTH | KTLS_FLAG_PAUSE_AT_CERTIFICATE | flags;
    server.flags |= KTLS_FLAG_VERIFY_PEER | flags;
    Link link = Link_Create(&client, &server);
    Link_RunToPause(&link, KTLS_STATUS_WANT_CERTIFICATE);
    Request_UseCertificates(&link, 1);
    Link_Complete(&link);
    for (int32_t count = 1; count <= 2; count++)
    {
        Request_StartAndReadToPause(&link);
        Request_Respond(&link, count == 1 ? -1 : count);
        CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
        Fixture_CheckPeerChain(link.server, count);
    }
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);

    /* Without a request in the handshake. */
    link = Request_Establish(flags, KTLS_FLAG_PAUSE_AT_CERTIFICATE, 0, false);
    Request_StartAndReadToPause(&link);
    Request_Respond(&link, 2);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Link_Free(&link);
}

/* A KeyUpdate that is due must be sent first. A KeyUpdate before the response is processed. */
static void Key_updates(int32_t flags)
{
    KtlsResult result;
    Link link = Request_Establish(flags, 0, 0, true);
    bool updates = KtlsNative_KeyUpdate(link.client, link.pair.client, 1, &result) == 0;
    if (!updates || (flags != 0 && (g_fixture.probe.rekeySendErrno != 0 || g_fixture.probe.rekeyReceiveErrno != 0)))
    {
        Link_Free(&link);
        Test_Note("key updates are not supported here");
        return;
    }
    int32_t bytes;
    Fixture_Wait(link.pair.server, POLLIN);
    CHECK_EQ(Request_ReadSome(link.server, link.pair.server, &bytes), KTLS_STATUS_WANT_READ);
    CHECK_EQ(KtlsNative_RequestCertificate(link.server, link.pair.server, Fixture_Accept, 0, &result), EBUSY);
    CHECK_EQ(KtlsNative_KeyUpdate(link.server, link.pair.server, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);

    CHECK_EQ(Request_Step(&link), KTLS_STATUS_WANT_READ);
    CHECK_EQ(KtlsNative_KeyUpdate(link.client, link.pair.client, 1, &result), 0);
    Fixture_Wait(link.pair.server, POLLIN);
    result = Request_StepWith(&link, Fixture_Accept, 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    CHECK_EQ(result.keyUpdate, 1);
    CHECK_EQ(KtlsNative_KeyUpdate(link.server, link.pair.server, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    Request_ReadToPause(&link);
    Request_Respond(&link, -1);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
}

/* No ticket follows the response. Tickets of the handshake resume its authentication only. */
static void No_ticket_follows(int32_t flags)
{
    Fixture_Initialize();
    KtlsContextOptions options = Fixture_ServerOptions(TLS1_3_VERSION);
    options.flags |= flags;
    KtlsContext* server = Fixture_CreateContext(&options);
    options.role = KTLS_ROLE_CLIENT;
    options.flags |= KTLS_FLAG_VERIFY_PEER | KTLS_FLAG_CLIENT_SESSIONS | KTLS_FLAG_POST_HANDSHAKE_AUTH;
    KtlsContext* client = Fixture_CreateContext(&options);
    KtlsSession* session = NULL;
    for (int round = 0; round < 2; round++)
    {
        Link link = Link_CreateWith(client, server, NULL);
        KtlsConnectionInfo info;
        KtlsSession* next = NULL;
        if (session != NULL)
        {
            CHECK_EQ(KtlsNative_UseSession(link.client, session), 0);
        }
        Link_Complete(&link);
        CHECK_EQ(KtlsNative_GetConnectionInfo(link.server, &info), 0);
        CHECK_EQ(info.resumed, round);
        Fixture_CheckPeerChain(link.server, 0);
        KtlsNative_SessionFree(session);
        CHECK_EQ(KtlsNative_TakeSession(link.client, &session), 0);
        CHECK(session != NULL);
        for (int i = 0; i < 2; i++)
        {
            Request_StartAndReadToPause(&link);
            Request_Respond(&link, -1);
            CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
            Fixture_CheckPeerChain(link.server, 2);
            Link_TransferBothWays(&link, 1000);
            CHECK_EQ(KtlsNative_TakeSession(link.client, &next), 0);
            CHECK(next == NULL);
        }
        Link_Free(&link);
    }
    KtlsNative_SessionFree(session);
    KtlsNative_ContextFree(client);
    KtlsNative_ContextFree(server);
}

const Test g_postHandshakeTests[] = {
    {"post-handshake: accepted", .runBoth = Accepted},
    {"post-handshake: the certificate is withdrawn", .runBoth = Certificate_is_withdrawn},
    {"post-handshake: interleaved data", .runBoth = Interleaved_data},
    {"post-handshake: repeated calls", .runBoth = Repeated},
    {"post-handshake: after a pause in the handshake", .runBoth = After_a_pause_in_the_handshake},
    {"post-handshake: key updates", .runBoth = Key_updates},
    {"post-handshake: no ticket follows", .runBoth = No_ticket_follows},
    {.name = NULL}};

/* SPDX-License-Identifier: MIT
 *
 * Post-handshake authentication that is rejected, cannot be requested, or gets no response.
 */
#include "request.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static void Rejected(int32_t flags)
{
    for (size_t i = 0; i < sizeof(g_rejections) / sizeof(g_rejections[0]); i++)
    {
        uint8_t byte;
        KtlsResult result;
        Link link = Request_Establish(flags, 0, 0, true);
        Request_StartAndReadToPause(&link);
        Request_Respond(&link, -1);
        result = Request_Finish(&link, Fixture_Reject, g_rejections[i].code);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        CHECK_EQ(Request_StepWith(&link, Fixture_Accept, 0).reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, &byte, 1, &result), 0);
        CHECK_EQ(result.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, 1000 + g_rejections[i].alert);
        Link_Free(&link);
    }
}

static void Not_offered(int32_t flags)
{
    Link link = Link_Establish(TLS1_3_VERSION, flags);
    Link_TransferBothWays(&link, 1000);
    for (int i = 0; i < 3; i++)
    {
        KtlsResult result = Request_StepWith(&link, Fixture_Accept, 0);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, SSL_R_EXTENSION_NOT_RECEIVED);
        Link_TransferBothWays(&link, 1000);
    }
    Link_Free(&link);
}

static void Arguments(int32_t flags)
{
    KtlsResult result;
    uint64_t zeroes[64] = {0};
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_2_VERSION);
    KtlsContextOptions server = Fixture_ServerOptions(TLS1_2_VERSION);
    client.flags |= KTLS_FLAG_POST_HANDSHAKE_AUTH | flags;
    server.flags |= flags;
    Link link = Link_Create(&client, &server);
    Request_CheckError(link.server, link.pair.server, ENOTCONN);
    Link_Complete(&link);
    Request_CheckError(link.server, link.pair.server, ENOTSUP);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);

    link = Request_Establish(flags, 0, 0, false);
    Request_CheckError(link.client, link.pair.client, EINVAL);
    Request_CheckError(link.server, link.pair.client, EBADF);
    Request_CheckError(NULL, link.pair.server, EINVAL);
    Request_CheckError((KtlsConnection*)zeroes, link.pair.server, EINVAL);
    CHECK_EQ(KtlsNative_RequestCertificate(link.server, link.pair.server, NULL, 0, &result), EINVAL);
    CHECK_EQ(KtlsNative_RequestCertificate(link.server, link.pair.server, Fixture_Accept, 0, NULL), EINVAL);
    CHECK_EQ(KtlsNative_UseCertificate(link.client, NULL, 0, 0, &result), EBUSY);
    Link_TransferBothWays(&link, 1000);
    CHECK_EQ(KtlsNative_Shutdown(link.server, link.pair.server, &result), 0);
    Request_CheckError(link.server, link.pair.server, EPIPE);
    Link_Free(&link);
}

/* The client closes instead of responding. */
static void The_client_closes(int32_t flags)
{
    KtlsResult result;
    uint8_t byte;
    Link link = Request_Establish(flags, 0, 0, true);
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_WANT_READ);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    Fixture_Wait(link.pair.client, POLLIN);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, &byte, 1, &result), 0);
    CHECK_EQ(result.reason, SSL_R_CALLBACK_FAILED);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_CLOSE_NOTIFY);
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_CLOSE_NOTIFY);
    CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, &byte, 1, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_CLOSE_NOTIFY);
    Fixture_CheckPeerChain(link.server, 0);
    Link_Free(&link);

    /* Closes immediately after a response, which is accepted. */
    link = Request_Establish(flags, 0, 0, true);
    Request_StartAndReadToPause(&link);
    Request_Respond(&link, -1);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    Fixture_Wait(link.pair.server, POLLIN);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Link_ReadOne(link.server, link.pair.server, &byte, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Free(&link);

    /* The server closes after its request, and still processes the response. */
    link = Request_Establish(flags, 0, 0, true);
    Request_StartAndReadToPause(&link);
    CHECK_EQ(KtlsNative_Shutdown(link.server, link.pair.server, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(Request_ReadNothing(&link), KTLS_STATUS_CLOSE_NOTIFY);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Request_CheckError(link.server, link.pair.server, EPIPE);
    Link_Free(&link);

    link = Request_Establish(flags, 0, 0, true);
    Request_StartAndReadToPause(&link);
    CHECK(shutdown(link.pair.client, SHUT_WR) == 0);
    CHECK_EQ(Request_Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_EOF);
    CHECK_EQ(Request_Step(&link), KTLS_STATUS_EOF);
    Link_Free(&link);

    link = Request_Establish(flags, 0, 0, true);
    Request_StartAndReadToPause(&link);
    Link_Free(&link);
}

static int FailAtRequest(SSL* ssl, void* argument)
{
    (void)argument;
    return SSL_is_init_finished(ssl) ? 1 : 0;
}

/* A plain client whose certificate callback fails. */
static void The_clients_alert(int32_t flags)
{
    KtlsPair pair;
    KtlsResult result;
    uint8_t byte = 0;
    Fixture_Initialize();
    Fixture_OpenPair(&pair);
    KtlsContextOptions options = Fixture_ServerOptions(TLS1_3_VERSION);
    options.flags |= flags | KTLS_FLAG_NO_TICKETS;
    KtlsContext* context = Fixture_CreateContext(&options);
    KtlsConnection* server = Fixture_CreateConnection(context, pair.server, NULL);
    SSL_CTX* plainContext = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_post_handshake_auth(plainContext, 1);
    SSL_CTX_set_cert_cb(plainContext, FailAtRequest, NULL);
    SSL* plain = SSL_new(plainContext);
    CHECK(plain != NULL && SSL_set_fd(plain, pair.client) == 1);
    SSL_set_connect_state(plain);
    for (bool done = false; !done;)
    {
        bool plainDone = SSL_do_handshake(plain) == 1;
        CHECK_EQ(KtlsNative_Handshake(server, pair.server, NULL, 0, &result), 0);
        done = plainDone && result.status == KTLS_STATUS_OK;
    }
    CHECK_EQ(KtlsNative_RequestCertificate(server, pair.server, Fixture_Accept, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    Fixture_Wait(pair.client, POLLIN);
    CHECK(SSL_read(plain, &byte, 1) <= 0);
    ERR_clear_error();
    Fixture_Wait(pair.server, POLLIN);
    for (int i = 0; i < 2; i++)
    {
        CHECK_EQ(KtlsNative_RequestCertificate(server, pair.server, Fixture_Accept, 0, &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, 1000 + SSL_AD_INTERNAL_ERROR);
    }
    SSL_free(plain);
    SSL_CTX_free(plainContext);
    KtlsNative_ConnectionFree(server);
    KtlsNative_ContextFree(context);
    KtlsPair_Close(&pair);
}

const Test g_postHandshakeFailureTests[] = {
    {"post-handshake: rejected", .runBoth = Rejected},
    {"post-handshake: not offered", .runBoth = Not_offered},
    {"post-handshake: arguments", .runBoth = Arguments},
    {"post-handshake: the client closes", .runBoth = The_client_closes},
    {"post-handshake: the client's alert", .runBoth = The_clients_alert},
    {.name = NULL}};

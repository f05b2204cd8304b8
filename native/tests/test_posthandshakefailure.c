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

static int32_t Reject(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl)
{
    (void)chain;
    (void)count;
    (void)staple;
    (void)ssl;
    return (int32_t)state;
}

static void Rejected(int32_t flags)
{
    static const struct
    {
        int32_t code;
        int32_t alert;
    } s_cases[] = {
        {X509_V_ERR_CERT_HAS_EXPIRED, SSL_AD_CERTIFICATE_EXPIRED},
        {X509_V_ERR_CERT_REVOKED, SSL_AD_CERTIFICATE_REVOKED},
        {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, SSL_AD_UNKNOWN_CA},
        {X509_V_ERR_HOSTNAME_MISMATCH, SSL_AD_BAD_CERTIFICATE},
        {X509_V_ERR_APPLICATION_VERIFICATION, SSL_AD_HANDSHAKE_FAILURE},
        {-5, SSL_AD_HANDSHAKE_FAILURE},
        {999999, SSL_AD_CERTIFICATE_UNKNOWN}};
    for (size_t i = 0; i < sizeof(s_cases) / sizeof(s_cases[0]); i++)
    {
        uint8_t byte;
        KtlsResult result;
        Link link = Request_Establish(flags, 0, 0, true);
        Request_StartAndReadToPause(&link);
        Request_Respond(&link, -1);
        result = Request_Finish(&link, Reject, s_cases[i].code);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        CHECK_EQ(Request_StepWith(&link, Fixture_Accept, 0).reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, &byte, 1, &result), 0);
        CHECK_EQ(result.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, 1000 + s_cases[i].alert);
        Link_Free(&link);
    }
}

static void Rejected_in_user_space(void)
{
    Rejected(0);
}

static void Rejected_in_the_kernel(void)
{
    Rejected(KTLS_FLAG_ENABLE_KTLS);
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

static void Not_offered_in_user_space(void)
{
    Not_offered(0);
}

static void Not_offered_in_the_kernel(void)
{
    Not_offered(KTLS_FLAG_ENABLE_KTLS);
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

static void Arguments_in_user_space(void)
{
    Arguments(0);
}

static void Arguments_in_the_kernel(void)
{
    Arguments(KTLS_FLAG_ENABLE_KTLS);
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

static void The_client_closes_in_user_space(void)
{
    The_client_closes(0);
}

static void The_client_closes_in_the_kernel(void)
{
    The_client_closes(KTLS_FLAG_ENABLE_KTLS);
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

static void The_clients_alert_in_user_space(void)
{
    The_clients_alert(0);
}

static void The_clients_alert_in_the_kernel(void)
{
    The_clients_alert(KTLS_FLAG_ENABLE_KTLS);
}

const Test g_postHandshakeFailureTests[] = {
    {"post-handshake: rejected", Rejected_in_user_space, false},
    {"post-handshake: rejected, in the kernel", Rejected_in_the_kernel, true},
    {"post-handshake: not offered", Not_offered_in_user_space, false},
    {"post-handshake: not offered, in the kernel", Not_offered_in_the_kernel, true},
    {"post-handshake: arguments", Arguments_in_user_space, false},
    {"post-handshake: arguments, in the kernel", Arguments_in_the_kernel, true},
    {"post-handshake: the client closes", The_client_closes_in_user_space, false},
    {"post-handshake: the client closes, in the kernel", The_client_closes_in_the_kernel, true},
    {"post-handshake: the client's alert", The_clients_alert_in_user_space, false},
    {"post-handshake: the client's alert, in the kernel", The_clients_alert_in_the_kernel, true},
    {NULL, NULL, false}};

/* SPDX-License-Identifier: MIT
 *
 * Options of a server: session ID contexts, signature algorithms, OCSP responses; and Finished messages.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const uint8_t s_response[] = {0x30, 0x03, 0x0A, 0x01, 0x06};

/* Offers tickets of one context to a connection that was switched to another one. The ticket keys are the same. */
static bool ResumesAcross(int32_t version, const char* firstName, const char* secondName)
{
    KtlsContextOptions clientOptions = Fixture_ClientOptions(version);
    KtlsContextOptions pausing = Fixture_PausingOptions();
    const char* const names[] = {firstName, secondName};
    KtlsSession* session = NULL;
    KtlsConnectionInfo info;
    Fixture_Initialize();
    clientOptions.flags |= KTLS_FLAG_CLIENT_SESSIONS;
    KtlsContext* client = Fixture_CreateContext(&clientOptions);
    KtlsContext* first = Fixture_CreateContext(&pausing);
    for (int i = 0; i < 2; i++)
    {
        KtlsContextOptions options = Fixture_ServerOptions(version);
        options.sessionIdContext = (const uint8_t*)names[i];
        options.sessionIdContextLength = names[i] != NULL ? (int32_t)strlen(names[i]) : 0;
        Link link = Link_CreateWith(client, first, "localhost");
        CHECK_EQ(session != NULL ? KtlsNative_UseSession(link.client, session) : 0, 0);
        Link_RunToPause(&link, KTLS_STATUS_WANT_CLIENT_HELLO);
        Link_Switch(&link, &options);
        Link_Complete(&link);
        CHECK_EQ(KtlsNative_GetConnectionInfo(link.client, &info), 0);
        KtlsNative_SessionFree(session);
        session = NULL;
        CHECK_EQ(KtlsNative_TakeSession(link.client, &session), 0);
        Link_Free(&link);
    }
    KtlsNative_SessionFree(session);
    KtlsNative_ContextFree(client);
    KtlsNative_ContextFree(first);
    return info.resumed != 0;
}

static void Session_id_contexts(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        CHECK(ResumesAcross(version, NULL, NULL));
        CHECK(ResumesAcross(version, "one", "one"));
        CHECK(!ResumesAcross(version, "one", "two"));
        CHECK(!ResumesAcross(version, NULL, "one"));
        CHECK(!ResumesAcross(version, "0123456789abcdef0123456789abcdef", NULL));
    }
}

static void Signature_algorithms(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        for (int side = 0; side < 2; side++)
        {
            KtlsContextOptions client = Fixture_ClientOptions(version);
            KtlsContextOptions server = Fixture_ServerOptions(version);
            KtlsContextOptions* options = side == 0 ? &client : &server;
            options->signatureAlgorithms = "RSA-PSS+SHA256:ECDSA+SHA256";
            Link link = Link_Create(&client, &server);
            Link_Complete(&link);
            Link_Free(&link);

            /* The server has only an EC key. */
            options->signatureAlgorithms = "RSA-PSS+SHA256";
            link = Link_Create(&client, &server);
            Link_Run(&link);
            CHECK_EQ(link.clientResult.status, KTLS_STATUS_TLS_ERROR);
            CHECK_EQ(link.serverResult.status, KTLS_STATUS_TLS_ERROR);
            Link_Free(&link);
        }
    }
}

static void CheckRejected(KtlsContextOptions options)
{
    KtlsContext* context = NULL;
    KtlsResult result;
    CHECK_EQ(KtlsNative_ContextCreate(&options, &context, &result), 0);
    CHECK(context == NULL);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    Test_Note("error %llx", (unsigned long long)result.openSslError);
    CHECK(ERR_peek_error() == 0);
}

static void Options_that_openssl_rejects(void)
{
    static const uint8_t s_noDer[] = {1, 2, 3};
    const KtlsBlob bad[2] = {g_fixture.chain[0], {s_noDer, sizeof(s_noDer), 0}};
    Fixture_Initialize();
    KtlsContextOptions options = Fixture_ServerOptions(0);
    options.signatureAlgorithms = "no-such-algorithm";
    CheckRejected(options);
    options = Fixture_ServerOptions(0);
    options.clientCas = bad;
    options.clientCaCount = 2;
    CheckRejected(options);
}

/* Builds an OCSPResponse (RFC 6960, 4.2.1) of this length whose basic response contains only zeros. Since 3.6 OpenSSL
 * parses responses before it sends them. */
static void FillResponse(uint8_t* response, int32_t length)
{
    static const uint8_t s_start[] = {0x30, 0x82, 0,    0, 0x0A, 1, 0, 0xA0, 0x82, 0, 0, 0x30, 0x82, 0, 0,
                                      6,    9,    0x2B, 6, 1,    5, 5, 7,    0x30, 1, 1, 4,    0x82, 0, 0};
    static const uint8_t s_lengthsAt[] = {2, 9, 13, 28};
    CHECK(length > 300);
    memcpy(response, s_start, sizeof(s_start));
    for (size_t i = 0; i < sizeof(s_lengthsAt); i++)
    {
        uint8_t* at = response + s_lengthsAt[i];
        int32_t rest = length - s_lengthsAt[i] - 2;
        at[0] = (uint8_t)(rest >> 8);
        at[1] = (uint8_t)rest;
    }
}

/* A plain client that may request a response. Returns the length of the response, or -1. */
static long Staple(int32_t version, bool asks, bool paused, int32_t length)
{
    KtlsPair pair;
    KtlsResult result;
    uint8_t* response = calloc(1, (size_t)length + 1);
    CHECK(response != NULL);
    if (length > 0)
    {
        FillResponse(response, length);
    }
    const unsigned char* got = NULL;
    Fixture_Initialize();
    KtlsContextOptions pausing = Fixture_PausingOptions();
    KtlsContextOptions options = Fixture_ServerOptions(version);
    KtlsContext* context = Fixture_CreateContext(&options);
    KtlsContext* first = Fixture_CreateContext(&pausing);
    Fixture_OpenPair(&pair);
    KtlsConnection* shim = Fixture_CreateConnection(paused ? first : context, pair.server, NULL);
    SSL_CTX* client = SSL_CTX_new(TLS_client_method());
    SSL* plain = SSL_new(client);
    CHECK(plain != NULL && SSL_set_fd(plain, pair.client) == 1);
    SSL_set_connect_state(plain);
    CHECK(!asks || SSL_set_tlsext_status_type(plain, TLSEXT_STATUSTYPE_ocsp) == 1);
    if (!paused && length > 0)
    {
        CHECK_EQ(KtlsNative_SetOcspResponse(shim, s_response, sizeof(s_response)), 0);
        CHECK_EQ(KtlsNative_SetOcspResponse(shim, response, length), 0);
    }
    for (bool plainDone = false, shimDone = false; !plainDone || !shimDone;)
    {
        plainDone = plainDone || SSL_do_handshake(plain) == 1;
        CHECK_EQ(KtlsNative_Handshake(shim, pair.server, NULL, 0, &result), 0);
        CHECK(result.status <= KTLS_STATUS_WANT_WRITE || result.status == KTLS_STATUS_WANT_CLIENT_HELLO);
        shimDone = result.status == KTLS_STATUS_OK;
        if (result.status == KTLS_STATUS_WANT_CLIENT_HELLO)
        {
            CHECK_EQ(KtlsNative_SetOcspResponse(shim, s_response, sizeof(s_response)), 0);
            CHECK_EQ(KtlsNative_SwitchContext(shim, context, &result), 0);
            CHECK_EQ(KtlsNative_SetOcspResponse(shim, response, length), 0);
        }
    }
    CHECK_EQ(KtlsNative_SetOcspResponse(shim, s_response, sizeof(s_response)), EBUSY);
    long size = SSL_get_tlsext_status_ocsp_resp(plain, &got);
    CHECK(size <= 0 || memcmp(got, response, (size_t)size) == 0);
    SSL_free(plain);
    SSL_CTX_free(client);
    KtlsNative_ConnectionFree(shim);
    KtlsNative_ContextFree(context);
    KtlsNative_ContextFree(first);
    KtlsPair_Close(&pair);
    free(response);
    return size > 0 ? size : -1;
}

static void Stapling(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        CHECK_EQ(Staple(version, true, false, 1000), 1000);
        CHECK_EQ(Staple(version, true, true, 1000), 1000);
        CHECK_EQ(Staple(version, true, false, 16000), 16000);
        CHECK_EQ(Staple(version, true, false, 0), -1);
        CHECK_EQ(Staple(version, false, false, 1000), -1);
        CHECK_EQ(Staple(version, false, true, 1000), -1);
    }
}

static void Stapling_arguments(void)
{
    Link link = Link_CreateDefault(0);
    CHECK_EQ(KtlsNative_SetOcspResponse(NULL, s_response, 5), EINVAL);
    CHECK_EQ(KtlsNative_SetOcspResponse(link.client, s_response, 5), EINVAL);
    CHECK_EQ(KtlsNative_SetOcspResponse(link.server, NULL, 5), EINVAL);
    CHECK_EQ(KtlsNative_SetOcspResponse(link.server, s_response, 0), EINVAL);
    CHECK_EQ(KtlsNative_SetOcspResponse(link.server, s_response, -1), EINVAL);
    CHECK_EQ(KtlsNative_SetOcspResponse(link.server, s_response, 16001), EINVAL);
    /* A replaced response is freed. Otherwise this would use 320 MB. */
    uint8_t response[16000] = {0};
    FillResponse(response, sizeof(response));
    for (int i = 0; i < 20000; i++)
    {
        CHECK_EQ(KtlsNative_SetOcspResponse(link.server, response, sizeof(response)), 0);
    }
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    Test_Note("at most %ld MB", usage.ru_maxrss / 1024);
    CHECK(usage.ru_maxrss < 160L * 1024 || getenv("ASAN_OPTIONS") != NULL); /* ASAN delays the reuse of freed memory */
    CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &link.serverResult), 0);
    CHECK_EQ(KtlsNative_SetOcspResponse(link.server, s_response, 5), EBUSY);
    Link_Free(&link);
}

static void Finished_messages(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        uint8_t ours[64];
        uint8_t theirs[64];
        int32_t length;
        Link link = Link_CreateDefault(version);
        CHECK_EQ(KtlsNative_GetFinished(link.client, 0, ours, sizeof(ours), &length), ENODATA);
        Link_Complete(&link);
        for (int32_t peer = 0; peer < 2; peer++)
        {
            CHECK_EQ(KtlsNative_GetFinished(link.client, peer, NULL, 0, &length), ERANGE);
            CHECK(version == TLS1_2_VERSION ? length == 12 : length >= 32);
            CHECK_EQ(KtlsNative_GetFinished(link.client, peer, ours, length - 1, &length), ERANGE);
            CHECK_EQ(KtlsNative_GetFinished(link.client, peer, ours, length, &length), 0);
            CHECK_EQ(KtlsNative_GetFinished(link.server, 1 - peer, theirs, sizeof(theirs), &length), 0);
            CHECK(memcmp(ours, theirs, (size_t)length) == 0);
        }
        CHECK_EQ(KtlsNative_GetFinished(NULL, 0, ours, sizeof(ours), &length), EINVAL);
        CHECK_EQ(KtlsNative_GetFinished(link.client, 2, ours, sizeof(ours), &length), EINVAL);
        CHECK_EQ(KtlsNative_GetFinished(link.client, 0, NULL, 1, &length), EINVAL);
        CHECK_EQ(KtlsNative_GetFinished(link.client, 0, ours, -1, &length), EINVAL);
        CHECK_EQ(KtlsNative_GetFinished(link.client, 0, ours, sizeof(ours), NULL), EINVAL);
        Link_Free(&link);
    }
}

const Test g_serverOptionTests[] = {
    {"server options: session ID contexts", .run = Session_id_contexts},
    {"server options: signature algorithms", .run = Signature_algorithms},
    {"server options: options that OpenSSL rejects", .run = Options_that_openssl_rejects},
    {"server options: stapling", .run = Stapling},
    {"server options: stapling, arguments", .run = Stapling_arguments},
    {"server options: Finished messages", .run = Finished_messages},
    {.name = NULL}};

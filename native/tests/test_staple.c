/* SPDX-License-Identifier: MIT
 *
 * The stapled OCSP response on a client: when the verify callback learns of it, and what its verdicts do.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <string.h>

#define CALLS_MAX 4

/* An OCSPResponse (RFC 6960, 4.2.1) with the status unauthorized and no more. */
static const uint8_t s_response[] = {0x30, 3, 0x0A, 1, 6};

typedef struct Verdicts
{
    int32_t codes[CALLS_MAX];   /* to return, one for each call */
    int32_t staples[CALLS_MAX]; /* passed by each call */
    intptr_t leaf;
    int calls;
} Verdicts;

static int32_t Judge(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl)
{
    Verdicts* verdicts = (Verdicts*)state;
    const unsigned char* response = NULL;
    CHECK(verdicts->calls < CALLS_MAX);
    CHECK_EQ(count, 2);
    CHECK(Fixture_IsInChain(chain[0], 0) && Fixture_IsInChain(chain[1], 1));
    if (verdicts->calls > 0)
    {
        CHECK_EQ(chain[0], verdicts->leaf);
        CHECK_EQ(chain[0], (intptr_t)SSL_get0_peer_certificate((SSL*)ssl));
    }
    long length = SSL_get_tlsext_status_ocsp_resp((SSL*)ssl, &response);
    CHECK_EQ(length > 0, staple == KTLS_STAPLE_RECEIVED);
    CHECK(length <= 0 || (length == sizeof(s_response) && memcmp(response, s_response, sizeof(s_response)) == 0));
    verdicts->leaf = chain[0];
    verdicts->staples[verdicts->calls] = staple;
    /* State that a managed callback may leave on this thread. */
    ERR_raise(ERR_LIB_X509, ERR_R_INTERNAL_ERROR);
    errno = EAGAIN;
    return verdicts->codes[verdicts->calls++];
}

static Link Run(int32_t version, bool stapled, Verdicts* verdicts)
{
    Link link = Link_CreateDefault(version);
    if (stapled)
    {
        CHECK_EQ(KtlsNative_SetOcspResponse(link.server, s_response, sizeof(s_response)), 0);
    }
    link.verify = Judge;
    link.verifyState = (intptr_t)verdicts;
    Link_Run(&link);
    CHECK(ERR_peek_error() == 0);
    return link;
}

static void CheckAccepted(int32_t version, bool stapled, int32_t first, const int32_t* staples, int calls)
{
    Verdicts verdicts = {.codes = {first}};
    Link link = Run(version, stapled, &verdicts);
    CHECK_EQ(link.clientResult.status, KTLS_STATUS_OK);
    CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
    CHECK_EQ(verdicts.calls, calls);
    for (int i = 0; i < calls; i++)
    {
        CHECK_EQ(verdicts.staples[i], staples[i]);
    }
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
}

static void The_callback_learns_where_the_response_is(void)
{
    static const int32_t s_later[] = {KTLS_STAPLE_EXPECTED, KTLS_STAPLE_RECEIVED};
    static const int32_t s_atOnce[] = {KTLS_STAPLE_RECEIVED, KTLS_STAPLE_RECEIVED};
    static const int32_t s_none[] = {KTLS_STAPLE_NONE, KTLS_STAPLE_NONE};
    static const int32_t s_firsts[] = {X509_V_OK, KTLS_VERDICT_LATER};
    for (int i = 0; i < 2; i++)
    {
        CheckAccepted(TLS1_2_VERSION, true, s_firsts[i], s_later, 2);
        CheckAccepted(TLS1_3_VERSION, true, s_firsts[i], s_atOnce, 2);
        CheckAccepted(TLS1_2_VERSION, false, s_firsts[i], s_none, 1 + i);
        CheckAccepted(TLS1_3_VERSION, false, s_firsts[i], s_none, 1 + i);
    }
}

static void CheckRefused(int32_t version, bool stapled, int32_t first, int32_t second, int32_t alert)
{
    Verdicts verdicts = {.codes = {first, second}};
    Link link = Run(version, stapled, &verdicts);
    CHECK_EQ(link.clientResult.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(link.serverResult.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(link.serverResult.reason, 1000 + alert);
    CHECK_EQ(verdicts.calls, first == X509_V_OK || first == KTLS_VERDICT_LATER ? 2 : 1);
    CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Judge, (intptr_t)&verdicts, &link.clientResult), 0);
    CHECK_EQ(link.clientResult.status, KTLS_STATUS_TLS_ERROR);
    Link_Free(&link);
}

static void Both_verdicts_must_accept(void)
{
    const int32_t late = SSL_AD_BAD_CERTIFICATE_STATUS_RESPONSE;
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        CheckRefused(version, true, X509_V_ERR_CERT_REVOKED, X509_V_OK, SSL_AD_CERTIFICATE_REVOKED);
        CheckRefused(version, true, X509_V_OK, X509_V_ERR_CERT_REVOKED, late);
        CheckRefused(version, true, KTLS_VERDICT_LATER, X509_V_ERR_CERT_REVOKED, late);
        CheckRefused(version, false, KTLS_VERDICT_LATER, X509_V_ERR_CERT_REVOKED, late);
        CheckRefused(version, true, KTLS_VERDICT_LATER, KTLS_VERDICT_LATER, late);
        CheckRefused(version, false, KTLS_VERDICT_LATER, KTLS_VERDICT_LATER, late);
    }
}

static void A_socket_that_closes_during_the_second_verdict(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        KtlsResult result;
        Verdicts verdicts = {.codes = {KTLS_VERDICT_LATER, KTLS_VERDICT_SOCKET_CLOSED}};
        Link link = Link_CreateDefault(version);
        while (verdicts.calls < 2)
        {
            CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Judge, (intptr_t)&verdicts, &result), 0);
            CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &link.serverResult), 0);
        }
        CHECK(result.status == KTLS_STATUS_TLS_ERROR || result.status == KTLS_STATUS_SYSCALL);
        CHECK_EQ(link.serverResult.status, KTLS_STATUS_WANT_READ); /* no alert */
        CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Judge, (intptr_t)&verdicts, &result), EBADF);
        Link_Free(&link);
    }
}

static int32_t Postpone(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl)
{
    (void)chain;
    (void)count;
    (void)ssl;
    CHECK_EQ(staple, KTLS_STAPLE_NONE);
    ++*(int*)state;
    return KTLS_VERDICT_LATER;
}

/* A server has no second verdict. Its own response is no response about the client. */
static void A_server_cannot_postpone_its_verdict(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        int calls = 0;
        KtlsContextOptions client = Fixture_ClientOptions(version);
        KtlsContextOptions server = Fixture_ServerOptions(version);
        client.certificateCount = server.certificateCount;
        client.certificates = server.certificates;
        client.privateKey = server.privateKey;
        server.flags |= KTLS_FLAG_VERIFY_PEER | KTLS_FLAG_REQUIRE_PEER;
        Link link = Link_Create(&client, &server);
        CHECK_EQ(KtlsNative_SetOcspResponse(link.server, s_response, sizeof(s_response)), 0);
        KtlsResult* result = &link.serverResult;
        do
        {
            CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Fixture_Accept, 0, &link.clientResult), 0);
            CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, Postpone, (intptr_t)&calls, result), 0);
        } while (result->status == KTLS_STATUS_WANT_READ);
        CHECK_EQ(result->status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result->reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        CHECK_EQ(calls, 1);
        Link_Free(&link);
    }
}

const Test g_stapleTests[] = {
    {"staple: the callback learns where the response is", .run = The_callback_learns_where_the_response_is},
    {"staple: both verdicts must accept", .run = Both_verdicts_must_accept},
    {"staple: a socket that closes during the second verdict", .run = A_socket_that_closes_during_the_second_verdict},
    {"staple: a server cannot postpone its verdict", .run = A_server_cannot_postpone_its_verdict},
    {.name = NULL}};

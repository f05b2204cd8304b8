/* SPDX-License-Identifier: MIT
 *
 * Validation of the peer's certificate during the handshake.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>

static int32_t CheckChain(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl)
{
    CHECK_EQ(count, 2);
    CHECK_EQ(staple, KTLS_STAPLE_NONE);
    CHECK(ssl != 0);
    for (int i = 0; i < 2; i++)
    {
        CHECK(Fixture_IsInChain(chain[i], i));
    }
    ++*(int*)state;
    /* State that a managed callback may leave on this thread. */
    ERR_raise(ERR_LIB_X509, ERR_R_INTERNAL_ERROR);
    errno = EAGAIN;
    return X509_V_OK;
}

static void The_chain_is_leaf_then_intermediates(void)
{
    Link link = Link_CreateDefault(0);
    int calls = 0;
    link.verify = CheckChain;
    link.verifyState = (intptr_t)&calls;
    Link_Run(&link);
    CHECK_EQ(link.clientResult.status, KTLS_STATUS_OK);
    CHECK_EQ(calls, 1);
    CHECK(ERR_peek_error() == 0);
    Link_Free(&link);
}

static void The_peer_gets_the_alert_of_the_result(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        for (size_t i = 0; i < sizeof(g_rejections) / sizeof(g_rejections[0]); i++)
        {
            Link link = Link_CreateDefault(version);
            link.verify = Fixture_Reject;
            link.verifyState = g_rejections[i].code;
            Link_Run(&link);
            CHECK_EQ(link.clientResult.status, KTLS_STATUS_TLS_ERROR);
            CHECK_EQ(link.clientResult.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
            CHECK_EQ(link.serverResult.status, KTLS_STATUS_TLS_ERROR);
            CHECK_EQ(link.serverResult.reason, 1000 + g_rejections[i].alert);
            Link_Free(&link);
        }
    }
}

static Link CreateMutual(int32_t version, int32_t serverFlags, bool withCertificate)
{
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    if (withCertificate)
    {
        client.certificateCount = server.certificateCount;
        client.certificates = server.certificates;
        client.privateKey = server.privateKey;
    }
    server.flags |= serverFlags;
    return Link_Create(&client, &server);
}

static void Both_sides_show_their_certificates(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        Link link = CreateMutual(version, KTLS_FLAG_VERIFY_PEER | KTLS_FLAG_REQUIRE_PEER, true);
        int calls = 0;
        link.verify = CheckChain;
        link.verifyState = (intptr_t)&calls;
        Link_Run(&link);
        CHECK_EQ(link.clientResult.status, KTLS_STATUS_OK);
        CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
        CHECK_EQ(calls, 2);
        Fixture_CheckPeerChain(link.client, 2);
        Fixture_CheckPeerChain(link.server, 2);
        Link_Free(&link);
    }
}

static void A_client_without_certificate(void)
{
    Link link = CreateMutual(0, KTLS_FLAG_VERIFY_PEER, false);
    Link_Run(&link);
    CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 0);
    Link_Free(&link);
}

static void A_client_that_must_have_a_certificate(void)
{
    /* REQUIRE_PEER alone also requests a certificate. OpenSSL ignores it without VERIFY_PEER. */
    Link link = CreateMutual(TLS1_2_VERSION, KTLS_FLAG_REQUIRE_PEER, false);
    Link_Run(&link);
    CHECK_EQ(link.serverResult.reason, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE);
    CHECK_EQ(link.clientResult.reason, 1000 + SSL_AD_HANDSHAKE_FAILURE);
    Link_Free(&link);

    /* The TLS 1.3 client completes before the server validates: its first Read receives the alert. */
    uint8_t byte;
    KtlsResult result;
    link = CreateMutual(TLS1_3_VERSION, KTLS_FLAG_REQUIRE_PEER, false);
    Link_Run(&link);
    CHECK_EQ(link.clientResult.status, KTLS_STATUS_OK);
    CHECK_EQ(link.serverResult.reason, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE);
    Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(result.reason, 1000 + SSL_AD_CERTIFICATE_REQUIRED);
    Link_Free(&link);
}

const Test g_verifyTests[] = {
    {"verify: the chain is the leaf, then intermediates", .run = The_chain_is_leaf_then_intermediates},
    {"verify: the peer gets the alert of the result", .run = The_peer_gets_the_alert_of_the_result},
    {"verify: both sides send their certificates", .run = Both_sides_show_their_certificates},
    {"verify: a client without certificate", .run = A_client_without_certificate},
    {"verify: a client that must have a certificate", .run = A_client_that_must_have_a_certificate},
    {.name = NULL}};

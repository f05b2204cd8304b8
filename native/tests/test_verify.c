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
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_ServerOptions(0);
    Link link = Link_Create(&client, &server);
    int calls = 0;
    link.verify = CheckChain;
    link.verifyState = (intptr_t)&calls;
    Link_Run(&link);
    CHECK_EQ(link.clientResult.status, KTLS_STATUS_OK);
    CHECK_EQ(calls, 1);
    CHECK(ERR_peek_error() == 0);
    Link_Free(&link);
}

static int32_t Reject(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl)
{
    (void)chain;
    (void)count;
    (void)staple;
    (void)ssl;
    return (int32_t)state;
}

static void The_peer_gets_the_alert_of_the_result(void)
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
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        for (size_t i = 0; i < sizeof(s_cases) / sizeof(s_cases[0]); i++)
        {
            KtlsContextOptions client = Fixture_ClientOptions(version);
            KtlsContextOptions server = Fixture_ServerOptions(version);
            Link link = Link_Create(&client, &server);
            link.verify = Reject;
            link.verifyState = s_cases[i].code;
            Link_Run(&link);
            CHECK_EQ(link.clientResult.status, KTLS_STATUS_TLS_ERROR);
            CHECK_EQ(link.clientResult.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
            CHECK_EQ(link.serverResult.status, KTLS_STATUS_TLS_ERROR);
            CHECK_EQ(link.serverResult.reason, 1000 + s_cases[i].alert);
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
    {"verify: the chain is the leaf, then intermediates", The_chain_is_leaf_then_intermediates, false},
    {"verify: the peer gets the alert of the result", The_peer_gets_the_alert_of_the_result, false},
    {"verify: both sides send their certificates", Both_sides_show_their_certificates, false},
    {"verify: a client without certificate", A_client_without_certificate, false},
    {"verify: a client that must have a certificate", A_client_that_must_have_a_certificate, false},
    {NULL, NULL, false}};

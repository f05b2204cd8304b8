/* SPDX-License-Identifier: MIT
 *
 * A client that pauses at a CertificateRequest.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

static Link CreatePaused(int32_t version, int32_t flags, int32_t serverFlags, bool withCertificate)
{
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    client.flags |= KTLS_FLAG_PAUSE_AT_CERTIFICATE | flags;
    server.flags |= serverFlags | flags;
    server.clientCas = g_fixture.chain;
    server.clientCaCount = 2;
    if (withCertificate)
    {
        client.certificateCount = 1;
        client.certificates = &g_fixture.chain[0];
        client.privateKey = server.privateKey;
    }
    Link link = Link_Create(&client, &server);
    Link_RunToPause(&link, KTLS_STATUS_WANT_CERTIFICATE);
    return link;
}

static void Use(Link* link, int32_t count)
{
    KtlsResult result;
    intptr_t key = count > 0 ? (intptr_t)g_fixture.key : 0;
    CHECK_EQ(KtlsNative_UseCertificate(link->client, g_fixture.chain, count, key, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
}

/* Selects a chain, a leaf and no certificate, in a context with a certificate and in one without. */
static void Chosen(int32_t flags)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        for (int32_t count = 0; count <= 2; count++)
        {
            for (int own = 0; own < 2; own++)
            {
                Link link = CreatePaused(version, flags, KTLS_FLAG_VERIFY_PEER, own != 0);
                /* The server's certificate is available during the pause. */
                Fixture_CheckPeerChain(link.client, 2);
                Use(&link, count);
                Link_Complete(&link);
                Fixture_CheckPeerChain(link.server, count);
                Link_Free(&link);
            }
        }
    }
}

static void Acceptable_issuers(void)
{
    X509* const named[] = {g_fixture.leaf, g_fixture.intermediate};
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        uint8_t der[1024];
        int32_t length;
        Link link = CreatePaused(version, 0, KTLS_FLAG_VERIFY_PEER, false);
        for (int32_t i = 0; i < 2; i++)
        {
            unsigned char* expected = NULL;
            int size = i2d_X509_NAME(X509_get_subject_name(named[i]), &expected);
            CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, i, NULL, 0, &length), ERANGE);
            CHECK_EQ(length, size);
            CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, i, der, size - 1, &length), ERANGE);
            CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, i, der, size, &length), 0);
            CHECK(memcmp(der, expected, (size_t)size) == 0);
            OPENSSL_free(expected);
        }
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, 2, der, sizeof(der), &length), ENODATA);
        CHECK_EQ(length, 0);
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.server, 0, der, sizeof(der), &length), ENODATA);
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, -1, der, sizeof(der), &length), EINVAL);
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, 0, der, -1, &length), EINVAL);
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, 0, NULL, 1, &length), EINVAL);
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, 0, der, sizeof(der), NULL), EINVAL);
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(NULL, 0, der, sizeof(der), &length), EINVAL);
        Link_Free(&link);
    }
}

static void The_server_may_require_a_certificate(void)
{
    Link link = CreatePaused(TLS1_2_VERSION, 0, KTLS_FLAG_REQUIRE_PEER, true);
    Use(&link, 0);
    Link_Run(&link);
    CHECK_EQ(link.serverResult.reason, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE);
    Link_Free(&link);

    link = CreatePaused(TLS1_3_VERSION, 0, KTLS_FLAG_REQUIRE_PEER, false);
    Use(&link, 2);
    Link_Complete(&link);
    Link_Free(&link);
}

/* Without a CertificateRequest there is no pause. */
static void No_request_no_pause(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        KtlsResult result;
        KtlsContextOptions client = Fixture_ClientOptions(version);
        KtlsContextOptions server = Fixture_ServerOptions(version);
        client.flags |= KTLS_FLAG_PAUSE_AT_CERTIFICATE;
        Link link = Link_Create(&client, &server);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, NULL, 0, 0, &result), EBUSY);
        Link_Complete(&link);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, NULL, 0, 0, &result), EBUSY);
        Link_Free(&link);
    }
}

static void CheckRefused(Link* link, const KtlsBlob* certificates, int32_t count, EVP_PKEY* key)
{
    KtlsResult result;
    CHECK_EQ(KtlsNative_UseCertificate(link->client, certificates, count, (intptr_t)key, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    CHECK(result.openSslError != 0);
    CHECK(ERR_peek_error() == 0);
    CHECK_EQ(KtlsNative_Handshake(link->client, link->pair.client, Fixture_Accept, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_CERTIFICATE);
}

/* A rejected chain leaves the pause unchanged and is removed. */
static void Rejected_certificates(void)
{
    static const uint8_t s_noDer[] = {1, 2, 3};
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        KtlsResult result;
        KtlsBlob bad[2] = {g_fixture.chain[0], {s_noDer, sizeof(s_noDer), 0}};
        KtlsBlob reserved = g_fixture.chain[0];
        reserved.reserved = 1;
        intptr_t key = (intptr_t)g_fixture.key;
        Link link = CreatePaused(version, 0, KTLS_FLAG_VERIFY_PEER, true);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, g_fixture.chain, 1, 0, &result), EINVAL);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, g_fixture.chain, 0, key, &result), EINVAL);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, g_fixture.chain, -1, key, &result), EINVAL);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, NULL, 1, key, &result), EINVAL);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, &reserved, 1, key, &result), EINVAL);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, g_fixture.chain, 1, key, NULL), EINVAL);
        CHECK_EQ(KtlsNative_UseCertificate(NULL, g_fixture.chain, 1, key, &result), EINVAL);
        CHECK_EQ(KtlsNative_UseCertificate(link.server, NULL, 0, 0, &result), EBUSY);
        CheckRefused(&link, bad, 2, g_fixture.key);
        CheckRefused(&link, bad + 1, 1, g_fixture.key);
        CheckRefused(&link, g_fixture.chain, 2, g_fixture.otherKey);
        Use(&link, 0);
        CHECK_EQ(KtlsNative_UseCertificate(link.client, NULL, 0, 0, &result), EBUSY);
        Link_Complete(&link);
        Fixture_CheckPeerChain(link.server, 0);
        Link_Free(&link);
    }
}

static void A_paused_client_is_freed(void)
{
    Link link = CreatePaused(0, 0, KTLS_FLAG_VERIFY_PEER, false);
    Link_Free(&link);
    link = CreatePaused(0, 0, KTLS_FLAG_VERIFY_PEER, false);
    Use(&link, 2);
    Link_Free(&link);
}

const Test g_clientCertificateTests[] = {
    {"client certificate: selected in the pause", .runBoth = Chosen},
    {"client certificate: acceptable issuers", .run = Acceptable_issuers},
    {"client certificate: the server may require one", .run = The_server_may_require_a_certificate},
    {"client certificate: no request, no pause", .run = No_request_no_pause},
    {"client certificate: rejected ones", .run = Rejected_certificates},
    {"client certificate: a paused client is freed", .run = A_paused_client_is_freed},
    {.name = NULL}};

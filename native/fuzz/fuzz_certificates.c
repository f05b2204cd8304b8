/* SPDX-License-Identifier: MIT
 *
 * Certificates in DER: the local chain, the authorities that a server announces, and their names as read by a client.
 * An input is a list of certificates. Those of the kinds 0 and 1 are modified certificates of the fixture.
 */
#include "fuzz.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

enum
{
    CERTIFICATE_MAX = 3000,
    CERTIFICATES_MAX = 4
};

typedef struct Certificates
{
    KtlsBlob blobs[CERTIFICATES_MAX];
    int32_t count;
    bool decodable;
} Certificates;

static bool IsDecodable(const KtlsBlob* blob)
{
    const unsigned char* at = blob->data;
    X509* certificate = d2i_X509(NULL, &at, blob->length);
    X509_free(certificate);
    ERR_clear_error();
    return certificate != NULL;
}

/* Copies a certificate of the fixture, with a modification at an offset from the input. */
static uint8_t* Mutate(Input* input, int32_t index, size_t* length)
{
    const KtlsBlob* source = &g_fixture.chain[index];
    *length = (size_t)source->length;
    uint8_t* copy = malloc(*length);
    CHECK(copy != NULL);
    memcpy(copy, source->data, *length);
    for (int changes = Input_TakeByte(input) % 4; changes > 0; changes--)
    {
        size_t at = (size_t)Input_TakeByte(input) << 8;
        at |= Input_TakeByte(input);
        copy[at % *length] = Input_TakeByte(input);
    }
    return copy;
}

static Certificates Take(Input* input)
{
    Certificates certificates = {.count = 0, .decodable = true};
    while (input->left > 0 && certificates.count < CERTIFICATES_MAX)
    {
        uint8_t kind = Input_TakeByte(input) % 3;
        size_t length;
        uint8_t* data = kind < 2 ? Mutate(input, kind, &length) : Input_TakeBlock(input, CERTIFICATE_MAX, &length);
        if (length == 0)
        {
            free(data);
            continue;
        }
        KtlsBlob* blob = &certificates.blobs[certificates.count++];
        *blob = (KtlsBlob){data, (int32_t)length, 0};
        certificates.decodable = certificates.decodable && IsDecodable(blob);
    }
    return certificates;
}

static KtlsContext* Create(const KtlsContextOptions* options, bool mayFail)
{
    KtlsContext* context = NULL;
    KtlsResult result;
    CHECK_EQ(KtlsNative_ContextCreate(options, &context, &result), 0);
    CHECK((context != NULL) == (result.status == KTLS_STATUS_OK));
    CHECK(context != NULL || mayFail);
    CHECK(ERR_peek_error() == 0);
    return context;
}

/* Checks that the client reads the names of the certificates that the server announced, in order. */
static void CheckIssuers(KtlsConnection* client, const Certificates* certificates)
{
    for (int32_t i = 0; i <= certificates->count; i++)
    {
        int32_t length;
        int32_t answer = KtlsNative_GetAcceptableIssuer(client, i, NULL, 0, &length);
        if (answer == ENODATA)
        {
            CHECK_EQ(length, 0);
            CHECK(i > 0 || certificates->count == 0);
            return;
        }
        CHECK_EQ(answer, ERANGE);
        uint8_t* name = malloc((size_t)length);
        CHECK(name != NULL);
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(client, i, name, length - 1, &length), ERANGE);
        CHECK_EQ(KtlsNative_GetAcceptableIssuer(client, i, name, length, &length), 0);
        const unsigned char* at = name;
        X509_NAME* decoded = d2i_X509_NAME(NULL, &at, length);
        CHECK(decoded != NULL && at == name + length);
        X509_NAME_free(decoded);
        free(name);
    }
}

static void Announce(const Certificates* certificates, bool shakesHands)
{
    KtlsContextOptions serverOptions = Fixture_ServerOptions(TLS1_3_VERSION);
    serverOptions.flags |= KTLS_FLAG_VERIFY_PEER;
    serverOptions.clientCas = certificates->blobs;
    serverOptions.clientCaCount = certificates->count;
    KtlsContext* server = Create(&serverOptions, true);
    CHECK((server != NULL) == certificates->decodable);
    if (server == NULL || !shakesHands)
    {
        KtlsNative_ContextFree(server);
        return;
    }
    static KtlsContext* s_client;
    if (s_client == NULL)
    {
        KtlsContextOptions clientOptions = Fixture_ClientOptions(TLS1_3_VERSION);
        clientOptions.flags |= KTLS_FLAG_PAUSE_AT_CERTIFICATE;
        s_client = Create(&clientOptions, false);
    }
    Link link = {.pair = Fuzz_Connect(), .verify = Fixture_Accept};
    link.client = Fixture_CreateConnection(s_client, link.pair.client, "localhost");
    link.server = Fixture_CreateConnection(server, link.pair.server, NULL);
    KtlsNative_ContextFree(server);
    KtlsResult result = {0};
    for (int step = 0; step < 4 && result.status <= KTLS_STATUS_WANT_WRITE; step++)
    {
        CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Fixture_Accept, 0, &result), 0);
        CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, Fixture_Accept, 0, &link.serverResult), 0);
    }
    if (result.status == KTLS_STATUS_WANT_CERTIFICATE)
    {
        CheckIssuers(link.client, certificates);
        CHECK_EQ(
            KtlsNative_UseCertificate(
                link.client, certificates->blobs, certificates->count,
                certificates->count > 0 ? (intptr_t)g_fixture.key : 0, &result),
            0);
    }
    KtlsNative_ConnectionFree(link.client);
    KtlsNative_ConnectionFree(link.server);
    Fuzz_Disconnect(&link.pair);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    Input input = {data, size};
    bool shakesHands = Input_TakeByte(&input) % 4 == 0; /* a handshake costs as much as many other inputs */
    Certificates certificates = Take(&input);
    if (certificates.count > 0)
    {
        KtlsContextOptions options = Fixture_ServerOptions(0);
        options.certificates = certificates.blobs;
        options.certificateCount = certificates.count;
        KtlsContext* context = Create(&options, true);
        CHECK(context == NULL || certificates.decodable);
        KtlsNative_ContextFree(context);
    }
    Announce(&certificates, shakesHands);
    ERR_clear_error();
    for (int32_t i = 0; i < certificates.count; i++)
    {
        free((void*)(uintptr_t)certificates.blobs[i].data);
    }
    return 0;
}

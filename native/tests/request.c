/* SPDX-License-Identifier: MIT
 *
 * Post-handshake authentication in tests (TLS 1.3).
 */
#include "request.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>

Link Request_Establish(int32_t flags, int32_t clientFlags, int32_t serverFlags, bool own)
{
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_3_VERSION);
    KtlsContextOptions server = Fixture_ServerOptions(TLS1_3_VERSION);
    client.flags |= KTLS_FLAG_POST_HANDSHAKE_AUTH | flags | clientFlags;
    server.flags |= flags | serverFlags;
    server.clientCas = &g_fixture.chain[1];
    server.clientCaCount = 1;
    if (own)
    {
        client.certificateCount = server.certificateCount;
        client.certificates = server.certificates;
        client.privateKey = server.privateKey;
    }
    Link link = Link_Create(&client, &server);
    Link_Complete(&link);
    return link;
}

KtlsResult Request_StepWith(Link* link, KtlsVerifyCallback verify, intptr_t state)
{
    KtlsResult result;
    CHECK_EQ(KtlsNative_RequestCertificate(link->server, link->pair.server, verify, state, &result), 0);
    CHECK(ERR_peek_error() == 0);
    return result;
}

int32_t Request_Step(Link* link)
{
    return Request_StepWith(link, Fixture_Accept, 0).status;
}

int32_t Request_ReadSome(KtlsConnection* connection, int socket, int32_t* bytes)
{
    KtlsResult result;
    uint8_t buffer[100];
    do
    {
        /* Skips tickets and KeyUpdates. */
        CHECK_EQ(KtlsNative_Read(connection, socket, buffer, sizeof(buffer), &result), 0);
    } while (result.messages > 0 && result.status == KTLS_STATUS_WANT_READ);
    if (result.openSslError != 0)
    {
        uint8_t text[256];
        CHECK_EQ(KtlsNative_ErrorText(result.openSslError, text, sizeof(text)), 0);
        Test_Note("%s", (const char*)text);
    }
    *bytes = (int32_t)result.bytes;
    return result.status;
}

int32_t Request_ReadNothing(Link* link)
{
    int32_t bytes;
    int32_t status = Request_ReadSome(link->client, link->pair.client, &bytes);
    CHECK_EQ(bytes, 0);
    return status;
}

void Request_ReadToPause(Link* link)
{
    int32_t status;
    while ((status = Request_ReadNothing(link)) == KTLS_STATUS_WANT_READ)
    {
        Fixture_Wait(link->pair.client, POLLIN);
    }
    CHECK_EQ(status, KTLS_STATUS_WANT_CERTIFICATE);
}

void Request_StartAndReadToPause(Link* link)
{
    CHECK_EQ(Request_Step(link), KTLS_STATUS_WANT_READ);
    Request_ReadToPause(link);
    CHECK_EQ(Request_Step(link), KTLS_STATUS_WANT_READ);
}

void Request_UseCertificates(Link* link, int32_t count)
{
    KtlsResult result;
    intptr_t key = count > 0 ? (intptr_t)g_fixture.key : 0;
    CHECK_EQ(KtlsNative_UseCertificate(link->client, g_fixture.chain, count, key, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
}

KtlsResult Request_Finish(Link* link, KtlsVerifyCallback verify, intptr_t state)
{
    for (;;)
    {
        KtlsResult result = Request_StepWith(link, verify, state);
        if (result.status != KTLS_STATUS_WANT_READ)
        {
            return result;
        }
        Fixture_Wait(link->pair.server, POLLIN);
    }
}

void Request_Respond(Link* link, int32_t count)
{
    if (count >= 0)
    {
        Request_UseCertificates(link, count);
    }
    CHECK_EQ(Request_ReadNothing(link), KTLS_STATUS_WANT_READ);
}

void Request_CheckError(KtlsConnection* connection, int socket, int32_t expected)
{
    KtlsResult result;
    CHECK_EQ(KtlsNative_RequestCertificate(connection, socket, Fixture_Accept, 0, &result), expected);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
}

void Request_CheckReadIsBusy(Link* link)
{
    KtlsResult result;
    uint8_t byte;
    CHECK_EQ(KtlsNative_Read(link->server, link->pair.server, &byte, 1, &result), EBUSY);
    CHECK_EQ(KtlsNative_Read(link->server, link->pair.server, &byte, 0, &result), EBUSY);
}

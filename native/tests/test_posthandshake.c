/* SPDX-License-Identifier: MIT
 *
 * The client's certificate after the handshake (TLS 1.3), asked for and answered.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Past the handshake and its tickets. own: the client's context has the chain. */
static Link Establish(int32_t flags, int32_t clientFlags, int32_t serverFlags, bool own)
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
    Link_CompleteWell(&link);
    return link;
}

static KtlsResult RequestJudged(Link* link, KtlsVerifyCallback verify, intptr_t state)
{
    KtlsResult result;
    CHECK_EQ(KtlsNative_RequestCertificate(link->server, link->pair.server, verify, state, &result), 0);
    CHECK(ERR_peek_error() == 0);
    return result;
}

static int32_t Request(Link* link)
{
    return RequestJudged(link, Fixture_Accept, 0).status;
}

static int32_t ReadSome(KtlsConnection* connection, int socket, int32_t* bytes)
{
    KtlsResult result;
    uint8_t buffer[100];
    do
    {
        /* A ticket, or a KeyUpdate: what is meant comes behind it. */
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

/* The client's step where no data is to come. */
static int32_t ReadNothing(Link* link)
{
    int32_t bytes;
    int32_t status = ReadSome(link->client, link->pair.client, &bytes);
    CHECK_EQ(bytes, 0);
    return status;
}

/* The client meets the request, and has sent nothing. */
static void Pause(Link* link)
{
    Fixture_Wait(link->pair.client, POLLIN);
    CHECK_EQ(ReadNothing(link), KTLS_STATUS_WANT_CERTIFICATE);
}

static void StartAndPause(Link* link)
{
    CHECK_EQ(Request(link), KTLS_STATUS_WANT_READ);
    Pause(link);
    CHECK_EQ(Request(link), KTLS_STATUS_WANT_READ);
}

static void Use(Link* link, int32_t count)
{
    KtlsResult result;
    intptr_t key = count > 0 ? (intptr_t)g_fixture.key : 0;
    CHECK_EQ(KtlsNative_UseCertificate(link->client, g_fixture.chain, count, key, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
}

/* The answer is on its way: waits for the server's verdict. */
static KtlsResult Finish(Link* link, KtlsVerifyCallback verify, intptr_t state)
{
    for (;;)
    {
        KtlsResult result = RequestJudged(link, verify, state);
        if (result.status != KTLS_STATUS_WANT_READ)
        {
            return result;
        }
        Fixture_Wait(link->pair.server, POLLIN);
    }
}

/* The client answers with this chain, -1: with what it has. */
static void Answer(Link* link, int32_t count)
{
    if (count >= 0)
    {
        Use(link, count);
    }
    CHECK_EQ(ReadNothing(link), KTLS_STATUS_WANT_READ);
}

static int32_t CheckChain(intptr_t state, const intptr_t* chain, int32_t count)
{
    CHECK(count >= 1 && count <= 2);
    for (int i = 0; i < count; i++)
    {
        CHECK(Fixture_IsInChain(chain[i], i));
    }
    ++*(int*)state;
    ERR_raise(ERR_LIB_X509, ERR_R_INTERNAL_ERROR);
    errno = EAGAIN;
    return X509_V_OK;
}

/* One exchange after the other: the context's chain, chosen ones and none. */
static void Accepted(int32_t flags)
{
    static const int32_t s_answers[] = {-1, 1, 0, 2, -1};
    for (int own = 0; own < 2; own++)
    {
        Link link = Establish(flags, 0, 0, own != 0);
        int32_t shown = own != 0 ? 2 : 0;
        for (size_t i = 0; i < sizeof(s_answers) / sizeof(s_answers[0]); i++)
        {
            int calls = 0;
            shown = s_answers[i] >= 0 ? s_answers[i] : shown;
            StartAndPause(&link);
            Answer(&link, s_answers[i]);
            CHECK_EQ(Finish(&link, CheckChain, (intptr_t)&calls).status, KTLS_STATUS_OK);
            CHECK_EQ(calls, shown > 0);
            Fixture_CheckPeerChain(link.server, shown);
            Link_TransferBothWays(&link, 50000);
            Fixture_CheckPeerChain(link.server, shown);
        }
        Link_Free(&link);
    }
}

static void Accepted_in_user_space(void)
{
    Accepted(0);
}

static void Accepted_in_the_kernel(void)
{
    Accepted(KTLS_FLAG_ENABLE_KTLS);
}

static int32_t Reject(intptr_t state, const intptr_t* chain, int32_t count)
{
    (void)chain;
    (void)count;
    return (int32_t)state;
}

static void Refused(int32_t flags)
{
    static const struct
    {
        int32_t verdict;
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
        Link link = Establish(flags, 0, 0, true);
        StartAndPause(&link);
        Answer(&link, -1);
        result = Finish(&link, Reject, s_cases[i].verdict);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        CHECK_EQ(RequestJudged(&link, Fixture_Accept, 0).reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, &byte, 1, &result), 0);
        CHECK_EQ(result.reason, SSL_R_CERTIFICATE_VERIFY_FAILED);
        Link_ReadOne(link.client, link.pair.client, &byte, 1, &result);
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
        CHECK_EQ(result.reason, 1000 + s_cases[i].alert);
        Link_Free(&link);
    }
}

static void Refused_in_user_space(void)
{
    Refused(0);
}

static void Refused_in_the_kernel(void)
{
    Refused(KTLS_FLAG_ENABLE_KTLS);
}

/* The certificate of the handshake is gone then, and a server that insisted on it is told, not ended. */
static void None_in_place_of_one(int32_t flags)
{
    Link link = Establish(flags, 0, KTLS_FLAG_REQUIRE_PEER, true);
    Fixture_CheckPeerChain(link.server, 2);
    for (int32_t count = 0; count < 2; count++)
    {
        StartAndPause(&link);
        Fixture_CheckPeerChain(link.server, count == 0 ? 2 : 0);
        Answer(&link, count);
        CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
        Fixture_CheckPeerChain(link.server, count);
        Link_TransferBothWays(&link, 1000);
    }
    Link_Free(&link);
}

static void None_in_place_of_one_in_user_space(void)
{
    None_in_place_of_one(0);
}

static void None_in_place_of_one_in_the_kernel(void)
{
    None_in_place_of_one(KTLS_FLAG_ENABLE_KTLS);
}

static void Not_offered(int32_t flags)
{
    Link link = Link_Establish(TLS1_3_VERSION, flags);
    Link_TransferBothWays(&link, 1000);
    for (int i = 0; i < 3; i++)
    {
        KtlsResult result = RequestJudged(&link, Fixture_Accept, 0);
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

static void CheckRefusal(KtlsConnection* connection, int socket, int32_t expected)
{
    KtlsResult result;
    CHECK_EQ(KtlsNative_RequestCertificate(connection, socket, Fixture_Accept, 0, &result), expected);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
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
    CheckRefusal(link.server, link.pair.server, ENOTCONN);
    Link_CompleteWell(&link);
    CheckRefusal(link.server, link.pair.server, ENOTSUP);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);

    link = Establish(flags, 0, 0, false);
    CheckRefusal(link.client, link.pair.client, EINVAL);
    CheckRefusal(link.server, link.pair.client, EBADF);
    CheckRefusal(NULL, link.pair.server, EINVAL);
    CheckRefusal((KtlsConnection*)zeroes, link.pair.server, EINVAL);
    CHECK_EQ(KtlsNative_RequestCertificate(link.server, link.pair.server, NULL, 0, &result), EINVAL);
    CHECK_EQ(KtlsNative_RequestCertificate(link.server, link.pair.server, Fixture_Accept, 0, NULL), EINVAL);
    CHECK_EQ(KtlsNative_UseCertificate(link.client, NULL, 0, 0, &result), EBUSY);
    Link_TransferBothWays(&link, 1000);
    CHECK_EQ(KtlsNative_Shutdown(link.server, link.pair.server, &result), 0);
    CheckRefusal(link.server, link.pair.server, EPIPE);
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

static void SendAll(KtlsConnection* connection, int socket, const char* text)
{
    CHECK_EQ(Link_SendSome(connection, socket, (const uint8_t*)text, strlen(text)), strlen(text));
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

static void ServerMayNotRead(Link* link)
{
    KtlsResult result;
    uint8_t byte;
    CHECK_EQ(KtlsNative_Read(link->server, link->pair.server, &byte, 1, &result), EBUSY);
    CHECK_EQ(KtlsNative_Read(link->server, link->pair.server, &byte, 0, &result), EBUSY);
}

/* Data before the request, between it and the answer, and after that: all of it arrives, in its order. */
static void Data_in_the_way(int32_t flags)
{
    KtlsResult result;
    uint8_t byte;
    Link link = Establish(flags, 0, 0, true);

    /* Decrypted and not handed out: nothing is sent. */
    SendAll(link.client, link.pair.client, "early");
    Fixture_Wait(link.pair.server, POLLIN);
    ServerReads(&link, 2, "ea");
    result = RequestJudged(&link, Fixture_Accept, 0);
    CHECK_EQ(result.status, KTLS_STATUS_DATA_WAITING);
    CHECK_EQ(result.pending, 1);
    CHECK_EQ(ReadNothing(&link), KTLS_STATUS_WANT_READ);
    ServerReads(&link, 64, "rly");

    /* Still in the socket: met after the request. */
    SendAll(link.client, link.pair.client, "one");
    SendAll(link.client, link.pair.client, "two");
    Fixture_Wait(link.pair.server, POLLIN);
    result = Finish(&link, Fixture_Accept, 0);
    CHECK_EQ(result.status, KTLS_STATUS_DATA_WAITING);
    CHECK_EQ(result.pending, 1);
    CHECK_EQ(Request(&link), KTLS_STATUS_DATA_WAITING);
    CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, &byte, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    ServerReads(&link, 1, "o");
    CHECK_EQ(Request(&link), KTLS_STATUS_DATA_WAITING);
    ServerReads(&link, 2, "ne");
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_DATA_WAITING);
    ServerReads(&link, 2, "tw");
    ServerReads(&link, 1, "o");
    ServerMayNotRead(&link);
    CHECK_EQ(Request(&link), KTLS_STATUS_WANT_READ);
    ServerMayNotRead(&link);

    /* Around the answer, and all of it there before the server looks. The server may send meanwhile. */
    SendAll(link.client, link.pair.client, "before");
    Pause(&link);
    Answer(&link, -1);
    SendAll(link.client, link.pair.client, "after");
    SendAll(link.server, link.pair.server, "meanwhile");
    int calls = 0;
    result = Finish(&link, CheckChain, (intptr_t)&calls);
    CHECK_EQ(result.status, KTLS_STATUS_DATA_WAITING);
    CHECK_EQ(calls, 0);
    ServerReads(&link, 64, "before");
    ServerMayNotRead(&link);
    result = Finish(&link, CheckChain, (intptr_t)&calls);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(calls, 1);
    Fixture_CheckPeerChain(link.server, 2);
    Fixture_Wait(link.pair.client, POLLIN);
    int32_t bytes;
    CHECK_EQ(ReadSome(link.client, link.pair.client, &bytes), KTLS_STATUS_OK);
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

static void Data_in_the_way_in_user_space(void)
{
    Data_in_the_way(0);
}

static void Data_in_the_way_in_the_kernel(void)
{
    Data_in_the_way(KTLS_FLAG_ENABLE_KTLS);
}

/* Asked often, sent once; and the pause comes once, however it is met. */
static void Repeated(int32_t flags)
{
    KtlsResult result;
    uint8_t byte = 0;
    int32_t length;
    Link link = Establish(flags, 0, 0, true);
    for (int i = 0; i < 5; i++)
    {
        CHECK_EQ(Request(&link), KTLS_STATUS_WANT_READ);
    }
    Fixture_Wait(link.pair.client, POLLIN);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_CERTIFICATE);
    CHECK_EQ(KtlsNative_GetAcceptableIssuer(link.client, 0, NULL, 0, &length), ERANGE);
    /* What is wrong in the pause, and leaves it. */
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, NULL, 1, &result), EINVAL);
    CHECK_EQ(
        KtlsNative_Write(link.client, link.pair.client, &byte, 1, &result),
        (flags & KTLS_FLAG_ENABLE_KTLS) != 0 ? EPERM : EBUSY);
    CHECK_EQ(KtlsNative_UseCertificate(link.client, g_fixture.chain, 1, (intptr_t)g_fixture.otherKey, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    int32_t update = KtlsNative_KeyUpdate(link.client, link.pair.client, 0, &result);
    CHECK(update == ENOTSUP || (update == 0 && result.status == KTLS_STATUS_WANT_READ));
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.reason, SSL_R_SHUTDOWN_WHILE_IN_INIT);
    CHECK_EQ(Request(&link), KTLS_STATUS_WANT_READ);

    Use(&link, 0);
    Use(&link, 1);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    CHECK_EQ(KtlsNative_UseCertificate(link.client, NULL, 0, 0, &result), EBUSY);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 1);
    CHECK_EQ(ReadNothing(&link), KTLS_STATUS_WANT_READ);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
}

static void Repeated_in_user_space(void)
{
    Repeated(0);
}

static void Repeated_in_the_kernel(void)
{
    Repeated(KTLS_FLAG_ENABLE_KTLS);
}

/* A client that also pauses in the handshake: what was chosen there holds, until another choice is made. */
static void After_a_pause_in_the_handshake(int32_t flags)
{
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_3_VERSION);
    KtlsContextOptions server = Fixture_ServerOptions(TLS1_3_VERSION);
    client.flags |= KTLS_FLAG_POST_HANDSHAKE_AUTH | KTLS_FLAG_PAUSE_AT_CERTIFICATE | flags;
    server.flags |= KTLS_FLAG_VERIFY_PEER | flags;
    Link link = Link_Create(&client, &server);
    Link_RunToPause(&link, KTLS_STATUS_WANT_CERTIFICATE);
    Use(&link, 1);
    Link_CompleteWell(&link);
    for (int32_t count = 1; count <= 2; count++)
    {
        StartAndPause(&link);
        Answer(&link, count == 1 ? -1 : count);
        CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
        Fixture_CheckPeerChain(link.server, count);
    }
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);

    /* Not asked in the handshake. */
    link = Establish(flags, KTLS_FLAG_PAUSE_AT_CERTIFICATE, 0, false);
    StartAndPause(&link);
    Answer(&link, 2);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Link_Free(&link);
}

static void After_a_pause_in_user_space(void)
{
    After_a_pause_in_the_handshake(0);
}

static void After_a_pause_in_the_kernel(void)
{
    After_a_pause_in_the_handshake(KTLS_FLAG_ENABLE_KTLS);
}

/* Fills the way to the other end with data that the kernel makes records of, or with noise where OpenSSL does: what it
 * had begun to write would be in its way. Returns the bytes. */
static size_t Fill(int socket)
{
    static const uint8_t s_noise[65536];
    size_t filled = 0;
    for (ssize_t sent; (sent = send(socket, s_noise, sizeof(s_noise), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;)
    {
        filled += (size_t)sent;
    }
    return filled;
}

/* Reads what is there; records: as data of the connection, else as the noise it is. */
static size_t Drain(KtlsConnection* connection, int socket, bool records, size_t most)
{
    uint8_t drain[65536];
    size_t wanted = most < sizeof(drain) ? most : sizeof(drain);
    if (!records)
    {
        ssize_t drained = recv(socket, drain, wanted, 0);
        CHECK(drained > 0 || errno == EAGAIN);
        return drained > 0 ? (size_t)drained : 0;
    }
    KtlsResult result;
    CHECK_EQ(KtlsNative_Read(connection, socket, drain, (int32_t)wanted, &result), 0);
    CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
    return (size_t)result.bytes;
}

static void DrainAll(KtlsConnection* connection, int socket, bool records, size_t filled)
{
    while (filled > 0)
    {
        size_t drained = Drain(connection, socket, records, filled);
        filled -= drained;
        if (drained == 0)
        {
            Fixture_Wait(socket, POLLIN);
        }
    }
}

/* Returns whether the request had to wait: what fills the way may yet find room at the other end. */
static bool Full_at_the_request_once(int32_t flags)
{
    bool records = (flags & KTLS_FLAG_ENABLE_KTLS) != 0;
    Link link = Establish(flags, 0, 0, true);
    Fixture_ShrinkBuffers(&link.pair);
    size_t filled = Fill(link.pair.server);
    bool waited = Request(&link) == KTLS_STATUS_WANT_WRITE;
    for (int i = 0; i < 3; i++)
    {
        ServerMayNotRead(&link);
        CHECK(Request(&link) <= KTLS_STATUS_WANT_WRITE);
    }
    DrainAll(link.client, link.pair.client, records, filled);
    Fixture_Wait(link.pair.server, POLLOUT);
    StartAndPause(&link);
    Answer(&link, -1);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
    return waited;
}

static void Full_at_the_request(int32_t flags)
{
    int attempts = 1;
    while (!Full_at_the_request_once(flags))
    {
        CHECK(++attempts <= 20);
    }
}

static void Full_at_the_request_in_user_space(void)
{
    Full_at_the_request(0);
}

static void Full_at_the_request_in_the_kernel(void)
{
    Full_at_the_request(KTLS_FLAG_ENABLE_KTLS);
}

/* The leaf and copies of the intermediate: with many of them the answer is more than a record can hold. */
static void UseLongChain(Link* link, int32_t count)
{
    KtlsResult result;
    KtlsBlob chain[100];
    CHECK(count <= 100);
    for (int32_t i = 0; i < count; i++)
    {
        chain[i] = g_fixture.chain[i > 0];
    }
    CHECK_EQ(KtlsNative_UseCertificate(link->client, chain, count, (intptr_t)g_fixture.key, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
}

static void CheckServerSeesCount(Link* link, int32_t count)
{
    intptr_t certificate;
    CHECK_EQ(KtlsNative_GetPeerCertificate(link->server, count - 1, &certificate), 0);
    CHECK(Fixture_IsInChain(certificate, count > 1));
    CHECK_EQ(KtlsNative_GetPeerCertificate(link->server, count, &certificate), ENODATA);
}

static bool Full_at_the_answer_once(int32_t flags, int32_t count)
{
    bool records = (flags & KTLS_FLAG_ENABLE_KTLS) != 0;
    Link link = Establish(flags, 0, 0, false);
    CHECK_EQ(Request(&link), KTLS_STATUS_WANT_READ);
    Fixture_ShrinkBuffers(&link.pair);
    Pause(&link);
    UseLongChain(&link, count);
    size_t filled = Fill(link.pair.client);
    bool waited = ReadNothing(&link) == KTLS_STATUS_WANT_WRITE;
    for (int i = 0; i < 3; i++)
    {
        CHECK(ReadNothing(&link) <= KTLS_STATUS_WANT_WRITE);
    }
    if (!records)
    {
        DrainAll(link.server, link.pair.server, false, filled);
        filled = 0;
    }
    /* The server meets the data before the answer, and hands it out. */
    int32_t status;
    while ((status = Request(&link)) != KTLS_STATUS_OK)
    {
        CHECK(status == KTLS_STATUS_WANT_READ || status == KTLS_STATUS_DATA_WAITING);
        if (status == KTLS_STATUS_DATA_WAITING)
        {
            filled -= Drain(link.server, link.pair.server, true, filled);
        }
        else
        {
            CHECK(ReadNothing(&link) <= KTLS_STATUS_WANT_WRITE);
            struct pollfd wait = {link.pair.server, POLLIN, 0};
            (void)poll(&wait, 1, 10);
        }
    }
    CHECK_EQ(filled, 0);
    CheckServerSeesCount(&link, count);
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
    return waited;
}

/* One record for each message, and several for one. */
static void Full_at_the_answer(int32_t flags)
{
    static const int32_t s_counts[] = {2, 60};
    for (size_t i = 0; i < 2; i++)
    {
        int attempts = 1;
        while (!Full_at_the_answer_once(flags, s_counts[i]))
        {
            CHECK(++attempts <= 20);
        }
    }
}

static void Full_at_the_answer_in_user_space(void)
{
    Full_at_the_answer(0);
}

static void Full_at_the_answer_in_the_kernel(void)
{
    Full_at_the_answer(KTLS_FLAG_ENABLE_KTLS);
}

/* Writes until nothing fits. Returns the bytes taken; OpenSSL holds a record of what follows them. */
static size_t WriteUntilFull(KtlsConnection* connection, int socket, const uint8_t* data, size_t length)
{
    size_t written = 0;
    for (size_t taken; (taken = Link_SendSome(connection, socket, data + written, length - written)) > 0;)
    {
        written += taken;
    }
    CHECK(written < length);
    return written;
}

/* Reads all there is now and checks it against the pattern. */
static size_t ReadPattern(KtlsConnection* connection, int socket, const uint8_t* data, size_t from)
{
    KtlsResult result;
    uint8_t buffer[20000];
    CHECK_EQ(KtlsNative_Read(connection, socket, buffer, sizeof(buffer), &result), 0);
    CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
    CHECK(memcmp(buffer, data + from, (size_t)result.bytes) == 0);
    return from + (size_t)result.bytes;
}

/* The request meets a client whose own Write waits for room, as one that uploads does. */
static void A_write_of_the_client_waits(void)
{
    enum
    {
        SIZE = 4000000
    };
    KtlsResult result;
    uint8_t* data = malloc(SIZE);
    CHECK(data != NULL);
    for (size_t i = 0; i < SIZE; i++)
    {
        data[i] = Fixture_PatternAt(i);
    }
    Link link = Establish(0, 0, 0, true);
    CHECK_EQ(Request(&link), KTLS_STATUS_WANT_READ);
    Fixture_ShrinkBuffers(&link.pair);
    size_t written = WriteUntilFull(link.client, link.pair.client, data, SIZE);
    size_t received = 0;
    Pause(&link);
    bool waits = true;
    int32_t status;
    while ((status = Request(&link)) != KTLS_STATUS_OK)
    {
        if (waits)
        {
            CHECK_EQ(ReadNothing(&link), KTLS_STATUS_WANT_CERTIFICATE);
            int32_t length = (int32_t)(SIZE - written);
            CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, data + written, length, &result), 0);
            CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_WRITE);
            written += (size_t)result.bytes;
            waits = result.status != KTLS_STATUS_OK;
            if (!waits)
            {
                CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, data, 1, &result), EBUSY);
            }
        }
        else
        {
            CHECK(ReadNothing(&link) <= KTLS_STATUS_WANT_WRITE);
        }
        if (status == KTLS_STATUS_DATA_WAITING)
        {
            received = ReadPattern(link.server, link.pair.server, data, received);
        }
    }
    CHECK(!waits);
    CHECK_EQ(received, written);
    Fixture_CheckPeerChain(link.server, 2);
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
    free(data);
}

/* OpenSSL would end the connection. */
static void A_write_of_the_server_waits(void)
{
    enum
    {
        SIZE = 4000000
    };
    KtlsResult result;
    uint8_t* data = calloc(1, SIZE);
    CHECK(data != NULL);
    Link link = Establish(0, 0, 0, true);
    Fixture_ShrinkBuffers(&link.pair);
    size_t written = WriteUntilFull(link.server, link.pair.server, data, SIZE);
    size_t received = 0;
    CheckRefusal(link.server, link.pair.server, EBUSY);
    do
    {
        received = ReadPattern(link.client, link.pair.client, data, received);
        CHECK_EQ(
            KtlsNative_Write(link.server, link.pair.server, data + written, (int32_t)(SIZE - written), &result), 0);
        written += (size_t)result.bytes;
    } while (result.status == KTLS_STATUS_WANT_WRITE);
    int32_t status = Request(&link);
    while (received < written)
    {
        received = ReadPattern(link.client, link.pair.client, data, received);
        status = status == KTLS_STATUS_WANT_WRITE ? Request(&link) : status;
    }
    StartAndPause(&link);
    Answer(&link, -1);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
    free(data);
}

/* A key update that is due goes first; one that comes before the answer is taken. */
static void Key_updates(int32_t flags)
{
    KtlsResult result;
    Link link = Establish(flags, 0, 0, true);
    bool updates = KtlsNative_KeyUpdate(link.client, link.pair.client, 1, &result) == 0;
    if (!updates || (flags != 0 && (g_fixture.probe.rekeySendErrno != 0 || g_fixture.probe.rekeyReceiveErrno != 0)))
    {
        Link_Free(&link);
        Test_Note("no key updates here");
        return;
    }
    int32_t bytes;
    Fixture_Wait(link.pair.server, POLLIN);
    CHECK_EQ(ReadSome(link.server, link.pair.server, &bytes), KTLS_STATUS_WANT_READ);
    CHECK_EQ(KtlsNative_RequestCertificate(link.server, link.pair.server, Fixture_Accept, 0, &result), EBUSY);
    CHECK_EQ(KtlsNative_KeyUpdate(link.server, link.pair.server, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);

    CHECK_EQ(Request(&link), KTLS_STATUS_WANT_READ);
    CHECK_EQ(KtlsNative_KeyUpdate(link.client, link.pair.client, 1, &result), 0);
    Fixture_Wait(link.pair.server, POLLIN);
    result = RequestJudged(&link, Fixture_Accept, 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    CHECK_EQ(result.keyUpdate, 1);
    CHECK_EQ(KtlsNative_KeyUpdate(link.server, link.pair.server, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    Pause(&link);
    Answer(&link, -1);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Link_TransferBothWays(&link, 50000);
    Link_Free(&link);
}

static void Key_updates_in_user_space(void)
{
    Key_updates(0);
}

static void Key_updates_in_the_kernel(void)
{
    Key_updates(KTLS_FLAG_ENABLE_KTLS);
}

/* No ticket follows; those of the handshake show what the handshake did. */
static void No_ticket_vouches(int32_t flags)
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
        Link link;
        KtlsConnectionInfo info;
        KtlsSession* next = NULL;
        memset(&link, 0, sizeof(link));
        CHECK_EQ(KtlsPair_Open(&link.pair), 0);
        link.client = Fixture_CreateConnection(client, link.pair.client, NULL);
        link.server = Fixture_CreateConnection(server, link.pair.server, NULL);
        link.verify = Fixture_Accept;
        if (session != NULL)
        {
            CHECK_EQ(KtlsNative_UseSession(link.client, session), 0);
        }
        Link_CompleteWell(&link);
        CHECK_EQ(KtlsNative_GetConnectionInfo(link.server, &info), 0);
        CHECK_EQ(info.resumed, round);
        Fixture_CheckPeerChain(link.server, 0);
        KtlsNative_SessionFree(session);
        CHECK_EQ(KtlsNative_TakeSession(link.client, &session), 0);
        CHECK(session != NULL);
        for (int i = 0; i < 2; i++)
        {
            StartAndPause(&link);
            Answer(&link, -1);
            CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
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

static void No_ticket_vouches_in_user_space(void)
{
    No_ticket_vouches(0);
}

static void No_ticket_vouches_in_the_kernel(void)
{
    No_ticket_vouches(KTLS_FLAG_ENABLE_KTLS);
}

/* The client's end in place of its answer. */
static void The_client_closes(int32_t flags)
{
    KtlsResult result;
    uint8_t byte;
    Link link = Establish(flags, 0, 0, true);
    CHECK_EQ(Request(&link), KTLS_STATUS_WANT_READ);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    Fixture_Wait(link.pair.client, POLLIN);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, &byte, 1, &result), 0);
    CHECK_EQ(result.reason, SSL_R_CALLBACK_FAILED);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_CLOSE_NOTIFY);
    CHECK_EQ(Request(&link), KTLS_STATUS_CLOSE_NOTIFY);
    CHECK_EQ(KtlsNative_Read(link.server, link.pair.server, &byte, 1, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_CLOSE_NOTIFY);
    Fixture_CheckPeerChain(link.server, 0);
    Link_Free(&link);

    /* Right after the answer: that counts. */
    link = Establish(flags, 0, 0, true);
    StartAndPause(&link);
    Answer(&link, -1);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), 0);
    Fixture_Wait(link.pair.server, POLLIN);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    Link_ReadOne(link.server, link.pair.server, &byte, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_CLOSE_NOTIFY);
    Link_Free(&link);

    /* And the server's, once it has asked: it still takes the answer. */
    link = Establish(flags, 0, 0, true);
    StartAndPause(&link);
    CHECK_EQ(KtlsNative_Shutdown(link.server, link.pair.server, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(ReadNothing(&link), KTLS_STATUS_CLOSE_NOTIFY);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_OK);
    Fixture_CheckPeerChain(link.server, 2);
    CheckRefusal(link.server, link.pair.server, EPIPE);
    Link_Free(&link);

    link = Establish(flags, 0, 0, true);
    StartAndPause(&link);
    CHECK(shutdown(link.pair.client, SHUT_WR) == 0);
    CHECK_EQ(Finish(&link, Fixture_Accept, 0).status, KTLS_STATUS_UNEXPECTED_EOF);
    CHECK_EQ(Request(&link), KTLS_STATUS_UNEXPECTED_EOF);
    Link_Free(&link);

    link = Establish(flags, 0, 0, true);
    StartAndPause(&link);
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
    CHECK_EQ(KtlsPair_Open(&pair), 0);
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

const Test g_postHandshakeTests[] = {
    {"post-handshake: accepted", Accepted_in_user_space, false},
    {"post-handshake: accepted, in the kernel", Accepted_in_the_kernel, true},
    {"post-handshake: refused", Refused_in_user_space, false},
    {"post-handshake: refused, in the kernel", Refused_in_the_kernel, true},
    {"post-handshake: none in place of one", None_in_place_of_one_in_user_space, false},
    {"post-handshake: none in place of one, in the kernel", None_in_place_of_one_in_the_kernel, true},
    {"post-handshake: not offered", Not_offered_in_user_space, false},
    {"post-handshake: not offered, in the kernel", Not_offered_in_the_kernel, true},
    {"post-handshake: arguments", Arguments_in_user_space, false},
    {"post-handshake: arguments, in the kernel", Arguments_in_the_kernel, true},
    {"post-handshake: data in the way", Data_in_the_way_in_user_space, false},
    {"post-handshake: data in the way, in the kernel", Data_in_the_way_in_the_kernel, true},
    {"post-handshake: repeated calls", Repeated_in_user_space, false},
    {"post-handshake: repeated calls, in the kernel", Repeated_in_the_kernel, true},
    {"post-handshake: after a pause in the handshake", After_a_pause_in_user_space, false},
    {"post-handshake: after a pause in the handshake, in the kernel", After_a_pause_in_the_kernel, true},
    {"post-handshake: a full socket at the request", Full_at_the_request_in_user_space, false},
    {"post-handshake: a full socket at the request, in the kernel", Full_at_the_request_in_the_kernel, true},
    {"post-handshake: a full socket at the answer", Full_at_the_answer_in_user_space, false},
    {"post-handshake: a full socket at the answer, in the kernel", Full_at_the_answer_in_the_kernel, true},
    {"post-handshake: a write of the client's waits", A_write_of_the_client_waits, false},
    {"post-handshake: a write of the server's waits", A_write_of_the_server_waits, false},
    {"post-handshake: key updates", Key_updates_in_user_space, false},
    {"post-handshake: key updates, in the kernel", Key_updates_in_the_kernel, true},
    {"post-handshake: no ticket vouches", No_ticket_vouches_in_user_space, false},
    {"post-handshake: no ticket vouches, in the kernel", No_ticket_vouches_in_the_kernel, true},
    {"post-handshake: an end in place of the answer", The_client_closes_in_user_space, false},
    {"post-handshake: an end in place of the answer, in the kernel", The_client_closes_in_the_kernel, true},
    {"post-handshake: the client's alert", The_clients_alert_in_user_space, false},
    {"post-handshake: the client's alert, in the kernel", The_clients_alert_in_the_kernel, true},
    {NULL, NULL, false}};

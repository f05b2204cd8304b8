/* SPDX-License-Identifier: MIT
 *
 * Every argument that violates the contract returns an errno and has no effect.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void CheckContext(const KtlsContextOptions* options, int32_t expected)
{
    KtlsContext* context = (KtlsContext*)(uintptr_t)options;
    KtlsResult result;
    CHECK_EQ(KtlsNative_ContextCreate(options, &context, &result), expected);
    CHECK(context == NULL || expected == 0);
    KtlsNative_ContextFree(context);
}

static void Context_options(void)
{
    static const uint8_t s_alpn[] = {2, 'h', '2', 0, 5};
    KtlsContext* context = NULL;
    KtlsResult result;
    Fixture_Initialize();
    KtlsContextOptions good = Fixture_ServerOptions(0);
    CHECK_EQ(KtlsNative_ContextCreate(NULL, &context, &result), EINVAL);
    CHECK_EQ(KtlsNative_ContextCreate(&good, NULL, &result), EINVAL);
    CHECK_EQ(KtlsNative_ContextCreate(&good, &context, NULL), EINVAL);

#define BAD(assignment)                                               \
    do                                                                \
    {                                                                 \
        KtlsContextOptions bad = good;                                \
        KtlsBlob blobs[2] = {g_fixture.chain[0], g_fixture.chain[1]}; \
        bad.certificates = blobs;                                     \
        assignment;                                                   \
        CheckContext(&bad, EINVAL);                                   \
    } while (0)
    BAD(bad.role = 2);
    BAD(bad.role = -1);
    BAD(bad.flags = 0x400);
    BAD(bad.flags = INT32_MIN);
    BAD(bad.minVersion = 0x0300);
    BAD(bad.maxVersion = 0x0305);
    BAD(bad.minVersion = -1);
    BAD((bad.minVersion = 0x0304, bad.maxVersion = 0x0303));
    BAD(bad.alpnLength = 1);
    BAD(bad.alpnLength = -1);
    BAD((bad.alpn = s_alpn, bad.alpnLength = 65536));
    BAD((bad.alpn = s_alpn, bad.alpnLength = 2));
    BAD((bad.alpn = s_alpn, bad.alpnLength = 4));
    BAD((bad.alpn = s_alpn + 4, bad.alpnLength = 1));
    BAD(bad.certificateCount = -1);
    BAD(bad.certificates = NULL);
    BAD(bad.privateKey = 0);
    BAD(bad.certificateCount = 0);
    BAD(blobs[0].data = NULL);
    BAD(blobs[1].length = 0);
    BAD(blobs[1].length = -1);
    BAD(blobs[0].reserved = 1);
    BAD((bad.role = KTLS_ROLE_CLIENT, bad.flags = 0));
    /* Flags and members of the other role. */
    BAD(bad.flags = KTLS_FLAG_PAUSE_AT_CERTIFICATE);
    BAD(bad.flags = KTLS_FLAG_CLIENT_SESSIONS);
    BAD(bad.flags = KTLS_FLAG_POST_HANDSHAKE_AUTH);
    BAD((bad.role = KTLS_ROLE_CLIENT, bad.flags = KTLS_FLAG_VERIFY_PEER | KTLS_FLAG_PAUSE_AT_CLIENT_HELLO));
    BAD(
        (bad.role = KTLS_ROLE_CLIENT,
         bad.flags = KTLS_FLAG_VERIFY_PEER | KTLS_FLAG_CLIENT_SESSIONS | KTLS_FLAG_NO_TICKETS));
    BAD(
        (bad.role = KTLS_ROLE_CLIENT, bad.flags = KTLS_FLAG_VERIFY_PEER, bad.sessionIdContext = s_alpn,
         bad.sessionIdContextLength = 1));
    BAD((bad.role = KTLS_ROLE_CLIENT, bad.flags = KTLS_FLAG_VERIFY_PEER, bad.clientCas = blobs, bad.clientCaCount = 1));
    BAD(bad.sessionIdContextLength = 1);
    BAD(bad.sessionIdContextLength = -1);
    BAD((bad.sessionIdContext = s_alpn, bad.sessionIdContextLength = 33));
    BAD(bad.clientCaCount = 1);
    BAD((bad.clientCas = blobs, bad.clientCaCount = -1));
    BAD((bad.clientCas = blobs, bad.clientCaCount = 2, blobs[1].length = 0));
    BAD((bad.clientCas = blobs, bad.clientCaCount = 2, blobs[1].reserved = 1));
#undef BAD
    CheckContext(&good, 0);
}

static void CheckRefused(const KtlsContextOptions* options)
{
    KtlsContext* context = NULL;
    KtlsResult result;
    CHECK_EQ(KtlsNative_ContextCreate(options, &context, &result), 0);
    CHECK(context == NULL);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    CHECK(result.openSslError != 0);
    CHECK(ERR_peek_error() == 0);
}

static void Options_that_openssl_rejects(void)
{
    static const uint8_t s_noDer[] = {1, 2, 3};
    Fixture_Initialize();
    KtlsContextOptions options = Fixture_ServerOptions(0);
    options.cipherList = "NO-SUCH-CIPHER";
    CheckRefused(&options);
    options = Fixture_ServerOptions(0);
    options.cipherSuites = "TLS_NO_SUCH_SUITE";
    CheckRefused(&options);
    options = Fixture_ServerOptions(0);
    options.privateKey = (intptr_t)g_fixture.otherKey;
    CheckRefused(&options);
    for (int bad = 0; bad < 2; bad++)
    {
        KtlsBlob blobs[2] = {g_fixture.chain[0], g_fixture.chain[1]};
        blobs[bad].data = s_noDer;
        blobs[bad].length = sizeof(s_noDer);
        options = Fixture_ServerOptions(0);
        options.certificates = blobs;
        CheckRefused(&options);
    }
}

static void Connection_create(void)
{
    KtlsPair pair;
    KtlsResult result;
    KtlsConnection* connection = NULL;
    uint64_t notAContext[32] = {0};
    Fixture_Initialize();
    KtlsContextOptions options = Fixture_ClientOptions(0);
    KtlsContext* context = Fixture_CreateContext(&options);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    CHECK_EQ(KtlsNative_ConnectionCreate(NULL, pair.client, NULL, &connection, &result), EINVAL);
    CHECK_EQ(KtlsNative_ConnectionCreate((KtlsContext*)notAContext, pair.client, NULL, &connection, &result), EINVAL);
    CHECK_EQ(KtlsNative_ConnectionCreate(context, pair.client, NULL, NULL, &result), EINVAL);
    CHECK_EQ(KtlsNative_ConnectionCreate(context, pair.client, NULL, &connection, NULL), EINVAL);
    CHECK_EQ(KtlsNative_ConnectionCreate(context, -1, NULL, &connection, &result), EBADF);
    CHECK_EQ(KtlsNative_ConnectionCreate(context, 0x7FFF0000, NULL, &connection, &result), EBADF);

    int pipes[2];
    CHECK(pipe(pipes) == 0);
    CHECK_EQ(KtlsNative_ConnectionCreate(context, pipes[0], NULL, &connection, &result), ENOTSOCK);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    int other = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    CHECK_EQ(KtlsNative_ConnectionCreate(context, other, NULL, &connection, &result), EINVAL);
    (void)close(other);
    other = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK_EQ(KtlsNative_ConnectionCreate(context, other, NULL, &connection, &result), ENOTCONN);
    (void)close(other);

    CHECK(fcntl(pair.client, F_SETFL, 0) == 0);
    CHECK_EQ(KtlsNative_ConnectionCreate(context, pair.client, NULL, &connection, &result), EINVAL);
    CHECK(fcntl(pair.client, F_SETFL, O_NONBLOCK) == 0);
    CHECK(connection == NULL);

    char longName[300];
    memset(longName, 'a', sizeof(longName));
    longName[sizeof(longName) - 1] = '\0';
    CHECK_EQ(KtlsNative_ConnectionCreate(context, pair.client, longName, &connection, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    CHECK(connection == NULL);
    KtlsNative_ContextFree(context);
    KtlsPair_Close(&pair);
}

static void Calls_on_a_connection(void)
{
    KtlsResult result;
    KtlsConnectionInfo info;
    uint8_t buffer[16];
    intptr_t certificate = 0;
    uint64_t zeroes[32] = {0};
    KtlsConnection* bad = (KtlsConnection*)zeroes;
    Link link = Link_Establish(0, 0);
    KtlsConnection* good = link.client;
    int socket = link.pair.client;

    CHECK_EQ(KtlsNative_Handshake(bad, socket, Fixture_Accept, 0, &result), EINVAL);
    CHECK_EQ(KtlsNative_Handshake(NULL, socket, Fixture_Accept, 0, &result), EINVAL);
    CHECK_EQ(KtlsNative_Handshake(good, socket, Fixture_Accept, 0, NULL), EINVAL);
    CHECK_EQ(KtlsNative_Handshake(good, socket, NULL, 0, &result), EINVAL);
    CHECK_EQ(KtlsNative_Handshake(good, link.pair.server, Fixture_Accept, 0, &result), EBADF);
    CHECK_EQ(KtlsNative_ReceiveFailed(bad, socket, EBADMSG), EINVAL);
    CHECK_EQ(KtlsNative_ReceiveFailed(good, -1, EBADMSG), EBADF);
    CHECK_EQ(KtlsNative_ReceiveFailed(good, socket, 0), EINVAL);
    CHECK_EQ(KtlsNative_ReceiveFailed(good, socket, ECONNRESET), EINVAL);
    CHECK_EQ(KtlsNative_Read(bad, socket, buffer, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_Read(good, -1, buffer, 1, &result), EBADF);
    CHECK_EQ(KtlsNative_Read(good, socket, buffer, -1, &result), EINVAL);
    CHECK_EQ(KtlsNative_Read(good, socket, NULL, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_Read(good, socket, buffer, 1, NULL), EINVAL);
    CHECK_EQ(KtlsNative_Write(bad, socket, buffer, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_Write(good, -1, buffer, 1, &result), EBADF);
    CHECK_EQ(KtlsNative_Write(good, socket, buffer, 0, &result), EINVAL);
    CHECK_EQ(KtlsNative_Write(good, socket, buffer, -1, &result), EINVAL);
    CHECK_EQ(KtlsNative_Write(good, socket, NULL, 1, &result), EINVAL);
    CHECK_EQ(KtlsNative_Write(good, socket, buffer, 1, NULL), EINVAL);
    CHECK_EQ(KtlsNative_Flush(bad, socket, &result), EINVAL);
    CHECK_EQ(KtlsNative_Flush(good, -1, &result), EBADF);
    CHECK_EQ(KtlsNative_Flush(good, socket, NULL), EINVAL);
    CHECK_EQ(KtlsNative_Shutdown(bad, socket, &result), EINVAL);
    CHECK_EQ(KtlsNative_CloseSending(bad, socket, &result), EINVAL);
    CHECK_EQ(KtlsNative_CloseSending(good, -1, &result), EBADF);
    CHECK_EQ(KtlsNative_CloseSending(good, socket, NULL), EINVAL);
    CHECK_EQ(KtlsNative_Shutdown(good, -1, &result), EBADF);
    CHECK_EQ(KtlsNative_Shutdown(good, socket, NULL), EINVAL);
    CHECK_EQ(KtlsNative_KeyUpdate(bad, socket, 0, &result), EINVAL);
    CHECK_EQ(KtlsNative_KeyUpdate(good, -1, 0, &result), EBADF);
    CHECK_EQ(KtlsNative_KeyUpdate(good, socket, 2, &result), EINVAL);
    CHECK_EQ(KtlsNative_KeyUpdate(good, socket, 0, NULL), EINVAL);
    CHECK_EQ(KtlsNative_GetConnectionInfo(bad, &info), EINVAL);
    CHECK_EQ(KtlsNative_GetConnectionInfo(good, NULL), EINVAL);
    CHECK_EQ(KtlsNative_GetPeerCertificate(bad, 0, &certificate), EINVAL);
    CHECK_EQ(KtlsNative_GetPeerCertificate(good, -1, &certificate), EINVAL);
    CHECK_EQ(KtlsNative_GetPeerCertificate(good, 0, NULL), EINVAL);
    KtlsNative_ConnectionFree(bad);
    KtlsNative_ContextFree((KtlsContext*)zeroes);
    /* The connection still works. */
    Link_TransferBothWays(&link, 1000);
    Link_Free(&link);
}

static void Calls_before_the_handshake(void)
{
    KtlsResult result;
    KtlsConnectionInfo info;
    uint8_t buffer[16];
    intptr_t certificate;
    Link link = Link_CreateDefault(0);
    CHECK_EQ(KtlsNative_Read(link.client, link.pair.client, buffer, 1, &result), ENOTCONN);
    CHECK_EQ(KtlsNative_Write(link.client, link.pair.client, buffer, 1, &result), ENOTCONN);
    CHECK_EQ(KtlsNative_Flush(link.client, link.pair.client, &result), ENOTCONN);
    CHECK_EQ(KtlsNative_Shutdown(link.client, link.pair.client, &result), ENOTCONN);
    CHECK_EQ(KtlsNative_CloseSending(link.client, link.pair.client, &result), ENOTCONN);
    CHECK_EQ(KtlsNative_KeyUpdate(link.client, link.pair.client, 0, &result), ENOTCONN);
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.client, &info), 0);
    CHECK_EQ(info.protocolVersion | info.cipherSuite | info.ktlsSend | info.ktlsReceive | info.alpnLength, 0);
    CHECK_EQ(KtlsNative_GetPeerCertificate(link.client, 0, &certificate), ENODATA);
    Link_Free(&link);
}

/* Checks the list of a context with known ciphers, and a buffer that is too small. */
static void Cipher_list(void)
{
    static const char s_list[] = "ECDHE-RSA-AES128-GCM-SHA256:AES256-SHA";
    uint8_t text[sizeof(s_list)];
    int32_t length = 1;
    Fixture_Initialize();
    SSL_CTX* context = SSL_CTX_new(TLS_method());
    CHECK_EQ(SSL_CTX_set_cipher_list(context, s_list), 1);
    intptr_t handle = (intptr_t)context;

    CHECK_EQ(KtlsNative_GetCipherList(0, text, sizeof(text), &length), EINVAL);
    CHECK_EQ(length, 0);
    CHECK_EQ(KtlsNative_GetCipherList(handle, NULL, 1, &length), EINVAL);
    CHECK_EQ(KtlsNative_GetCipherList(handle, text, -1, &length), EINVAL);
    CHECK_EQ(KtlsNative_GetCipherList(handle, text, sizeof(text), NULL), EINVAL);
    CHECK_EQ(KtlsNative_GetCipherList(handle, NULL, 0, &length), ERANGE);
    CHECK_EQ(length, (int32_t)strlen(s_list));
    CHECK_EQ(KtlsNative_GetCipherList(handle, text, length - 1, &length), ERANGE);
    CHECK_EQ(KtlsNative_GetCipherList(handle, text, length, &length), 0);
    CHECK(memcmp(text, s_list, strlen(s_list)) == 0);
    SSL_CTX_free(context);
}

const Test g_argumentTests[] = {
    {"arguments: context options", .run = Context_options},
    {"arguments: options that OpenSSL rejects", .run = Options_that_openssl_rejects},
    {"arguments: sockets and contexts of a connection", .run = Connection_create},
    {"arguments: calls on a connection", .run = Calls_on_a_connection},
    {"arguments: calls before the handshake", .run = Calls_before_the_handshake},
    {"arguments: a cipher list", .run = Cipher_list},
    {.name = NULL}};

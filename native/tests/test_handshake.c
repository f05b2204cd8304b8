/* SPDX-License-Identifier: MIT
 *
 * Handshakes that succeed, and peers that violate the protocol.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t s_h2AndHttp[] = {2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
static const uint8_t s_httpAndH2[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1', 2, 'h', '2'};
static const uint8_t s_h2[] = {2, 'h', '2'};
static const uint8_t s_other[] = {1, 'x', 3, 'h', '2', 'c'};

static void Handshake(int32_t version)
{
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    client.alpn = s_httpAndH2;
    client.alpnLength = sizeof(s_httpAndH2);
    server.alpn = s_h2AndHttp;
    server.alpnLength = sizeof(s_h2AndHttp);
    server.flags |= KTLS_FLAG_RELEASE_BUFFERS;
    Link link = Link_Create(&client, &server);
    int verified = 0;
    link.verifyState = (intptr_t)&verified;
    Link_Succeed(&link);
    CHECK_EQ(verified, 1);
    CHECK(ERR_peek_error() == 0);

    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.client, &info), 0);
    CHECK_EQ(info.protocolVersion, version);
    CHECK_EQ(info.cipherSuite >> 8, version == TLS1_3_VERSION ? 0x13 : 0xC0);
    CHECK_EQ(info.resumed, 0);
    CHECK_EQ(info.ktlsSend | info.ktlsReceive, 0);
    CHECK_EQ(info.alpnLength, 2); /* the order of the server applies */
    CHECK(memcmp(info.alpn, "h2", 2) == 0);
    CHECK_EQ(info.serverNameLength, 0);
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.server, &info), 0);
    CHECK(memcmp(info.alpn, "h2", 2) == 0);
    CHECK_EQ(info.serverNameLength, 5 + 9);
    CHECK(memcmp(info.serverName + 5, "localhost", 9) == 0);
    /* A further call returns OK again. */
    CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &link.serverResult), 0);
    CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
    Link_TransferBothWays(&link, 100000);
    Link_Free(&link);
}

/* The SSLs that were created in this process, in order. */
static SSL* s_made[2];
static int s_madeCount;

static void OnNewSsl(void* parent, void* pointer, CRYPTO_EX_DATA* data, int index, long argument, void* argumentPointer)
{
    (void)pointer, (void)data, (void)index, (void)argument, (void)argumentPointer;
    CHECK(s_madeCount < 2);
    s_made[s_madeCount++] = parent;
}

static int CountKeyExchangeKeys(SSL* ssl)
{
    EVP_PKEY* keys[2] = {NULL, NULL};
    (void)SSL_get_tmp_key(ssl, &keys[0]);
    (void)SSL_get_peer_tmp_key(ssl, &keys[1]);
    int count = 0;
    for (int i = 0; i < 2; i++)
    {
        if (keys[i] != NULL)
        {
            CHECK_EQ(EVP_PKEY_get_id(keys[i]), EVP_PKEY_NONE);
            CHECK(i2d_PUBKEY(keys[i], NULL) <= 0);
            count++;
        }
        EVP_PKEY_free(keys[i]);
    }
    return count;
}

static void Key_exchange_keys_are_wiped(void)
{
    static const int32_t Versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    CHECK(SSL_get_ex_new_index(0, NULL, OnNewSsl, NULL, NULL) >= 0);
    for (size_t i = 0; i < sizeof(Versions) / sizeof(Versions[0]); i++)
    {
        KtlsContextOptions client = Fixture_ClientOptions(Versions[i]);
        KtlsContextOptions server = Fixture_ServerOptions(Versions[i]);
        s_madeCount = 0;
        Link link = Link_Create(&client, &server);
        Link_Run(&link);
        CHECK_EQ(link.clientResult.status, KTLS_STATUS_OK);
        CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
        CHECK_EQ(s_madeCount, 2);

        /* The keys are empty. A TLS 1.2 server has already freed its own key. */
        CHECK(CountKeyExchangeKeys(s_made[0]) > 0);
        CHECK_EQ(CountKeyExchangeKeys(s_made[1]) > 0, Versions[i] == TLS1_3_VERSION);
        ERR_clear_error();
        Link_TransferBothWays(&link, 100000);
        Link_Free(&link);
    }
}

static void Handshake_tls12(void)
{
    Handshake(TLS1_2_VERSION);
}

static void Handshake_tls13(void)
{
    Handshake(TLS1_3_VERSION);
}

static void Alpn_without_overlap_is_fatal(void)
{
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_ServerOptions(0);
    client.alpn = s_other;
    client.alpnLength = sizeof(s_other);
    server.alpn = s_h2;
    server.alpnLength = sizeof(s_h2);
    Link link = Link_Create(&client, &server);
    Link_Run(&link);
    CHECK_EQ(link.clientResult.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(link.clientResult.reason, 1000 + SSL_AD_NO_APPLICATION_PROTOCOL);
    CHECK_EQ(link.serverResult.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(link.serverResult.reason, SSL_R_NO_APPLICATION_PROTOCOL);
    /* A further call repeats the failure. */
    KtlsResult again;
    CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Fixture_Accept, 0, &again), 0);
    CHECK(memcmp(&again, &link.clientResult, sizeof(again)) == 0);
    Link_Free(&link);
}

static void Alpn_of_one_side_only(void)
{
    for (int side = 0; side < 2; side++)
    {
        KtlsContextOptions client = Fixture_ClientOptions(0);
        KtlsContextOptions server = Fixture_ServerOptions(0);
        KtlsContextOptions* options = side == 0 ? &client : &server;
        options->alpn = s_h2;
        options->alpnLength = sizeof(s_h2);
        Link link = Link_Create(&client, &server);
        Link_Run(&link);
        KtlsConnectionInfo info;
        CHECK_EQ(KtlsNative_GetConnectionInfo(link.client, &info), 0);
        CHECK(info.protocolVersion != 0);
        CHECK_EQ(info.alpnLength, 0);
        Link_Free(&link);
    }
}

static void Versions_without_overlap(void)
{
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_2_VERSION);
    KtlsContextOptions server = Fixture_ServerOptions(TLS1_3_VERSION);
    Link link = Link_Create(&client, &server);
    Link_Run(&link);
    CHECK_EQ(link.clientResult.reason, 1000 + SSL_AD_PROTOCOL_VERSION);
    CHECK_EQ(link.serverResult.reason, SSL_R_UNSUPPORTED_PROTOCOL);
    Link_Free(&link);
}

static void Chosen_ciphers(void)
{
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_3_VERSION);
    KtlsContextOptions server = Fixture_ServerOptions(TLS1_3_VERSION);
    client.cipherSuites = "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256";
    server.cipherSuites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384";
    Link link = Link_Create(&client, &server);
    Link_Run(&link);
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.client, &info), 0);
    CHECK_EQ(info.cipherSuite, 0x1301);
    Link_Free(&link);

    client = Fixture_ClientOptions(TLS1_2_VERSION);
    server = Fixture_ServerOptions(TLS1_2_VERSION);
    client.cipherList = "ECDHE-ECDSA-AES256-GCM-SHA384";
    link = Link_Create(&client, &server);
    Link_Run(&link);
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.server, &info), 0);
    CHECK_EQ(info.cipherSuite, 0xC02C);
    Link_Free(&link);
}

/* A shim server whose client is a raw socket. */
static Link CreateWithRawClient(const void* bytes, size_t length)
{
    Link link = Link_CreateDefault(0);
    CHECK(send(link.pair.client, bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
    Fixture_Wait(link.pair.server, POLLIN);
    return link;
}

static void A_plain_text_peer(void)
{
    static const char s_request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    KtlsResult result;
    Link link = CreateWithRawClient(s_request, sizeof(s_request) - 1);
    CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    CHECK_EQ(result.reason, SSL_R_HTTP_REQUEST);
    CHECK(result.openSslError != 0);
    Link_Free(&link);
}

static void A_peer_that_sends_garbage(void)
{
    uint8_t garbage[600];
    KtlsResult result;
    memset(garbage, 0xA5, sizeof(garbage));
    Link link = CreateWithRawClient(garbage, sizeof(garbage));
    CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    Link_Free(&link);
}

static void End_of_stream_in_the_handshake(void)
{
    Link link = Link_CreateDefault(0);
    KtlsResult result;
    CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Fixture_Accept, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    CHECK(shutdown(link.pair.client, SHUT_WR) == 0);
    do
    {
        Fixture_Wait(link.pair.server, POLLIN);
        CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &result), 0);
    } while (result.status == KTLS_STATUS_WANT_READ);
    CHECK_EQ(result.status, KTLS_STATUS_UNEXPECTED_EOF);
    CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_UNEXPECTED_EOF);
    Link_Free(&link);
}

static void A_reset_in_the_handshake(void)
{
    Link link = Link_CreateDefault(0);
    KtlsPair gone = {-1, link.pair.server};
    KtlsResult result;
    KtlsNative_ConnectionFree(link.server);
    link.server = NULL;
    link.pair.server = -1;
    KtlsPair_Close(&gone);
    CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Fixture_Accept, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_SYSCALL);
    CHECK(result.sysErrno == ECONNRESET || result.sysErrno == EPIPE);
    Link_Free(&link);
}

/* TLS 1.2: the server rejects the client in the middle of the client's flight, sends an alert and resets the
 * connection. */
static void An_alert_is_read_after_a_reset(void)
{
    static const uint8_t s_alert[] = {SSL3_RT_ALERT, 3, 3, 0, 2, SSL3_AL_FATAL, SSL_AD_HANDSHAKE_FAILURE};
    static const uint8_t s_warning[] = {SSL3_RT_ALERT, 3, 3, 0, 2, SSL3_AL_WARNING, SSL_AD_USER_CANCELLED};
    for (int fatal = 0; fatal < 2; fatal++)
    {
        Link link = Link_CreateDefault(TLS1_2_VERSION);
        KtlsResult result;
        CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Fixture_Accept, 0, &result), 0);
        Fixture_Wait(link.pair.server, POLLIN);
        CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &result), 0);
        CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);

        const struct linger reset = {1, 0};
        CHECK(send(link.pair.server, fatal ? s_alert : s_warning, sizeof(s_alert), MSG_NOSIGNAL) == sizeof(s_alert));
        CHECK(setsockopt(link.pair.server, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);
        KtlsNative_ConnectionFree(link.server);
        link.server = NULL;
        CHECK(close(link.pair.server) == 0);
        link.pair.server = -1;

        Fixture_Wait(link.pair.client, POLLERR);
        CHECK_EQ(KtlsNative_Handshake(link.client, link.pair.client, Fixture_Accept, 0, &result), 0);
        CHECK_EQ(result.status, fatal ? KTLS_STATUS_TLS_ERROR : KTLS_STATUS_SYSCALL);
        CHECK_EQ(result.sysErrno, fatal ? 0 : ECONNRESET);
        CHECK_EQ(result.reason, fatal ? SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE : 0);
        CHECK_EQ(result.openSslError, fatal ? ERR_PACK(ERR_LIB_SSL, 0, SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE) : 0);
        Link_Free(&link);
    }
}

/* The sanitized run finds memory that is not freed. */
static void A_hundred_connections_leak_nothing(void)
{
    Fixture_Initialize();
    int before = 0;
    for (int i = 0; i < 100; i++)
    {
        Link link = Link_CreateDefault(0);
        if (i % 5 == 0)
        {
            Link_Run(&link);
            CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
        }
        Link_Free(&link);
        before = i == 0 ? Fixture_CountDescriptors() : before;
    }
    CHECK_EQ(Fixture_CountDescriptors(), before);
}

const Test g_handshakeTests[] = {
    {"handshake: TLS 1.2 with ALPN and SNI", .run = Handshake_tls12},
    {"handshake: TLS 1.3 with ALPN and SNI", .run = Handshake_tls13},
    {"handshake: key exchange keys are wiped", .run = Key_exchange_keys_are_wiped},
    {"handshake: ALPN without overlap is fatal", .run = Alpn_without_overlap_is_fatal},
    {"handshake: ALPN of one side only", .run = Alpn_of_one_side_only},
    {"handshake: versions without overlap", .run = Versions_without_overlap},
    {"handshake: chosen ciphers", .run = Chosen_ciphers},
    {"handshake: a plain-text peer", .run = A_plain_text_peer},
    {"handshake: a peer that sends garbage", .run = A_peer_that_sends_garbage},
    {"handshake: end of stream in the middle", .run = End_of_stream_in_the_handshake},
    {"handshake: a reset in the middle", .run = A_reset_in_the_handshake},
    {"handshake: an alert is read after a reset", .run = An_alert_is_read_after_a_reset},
    {"handshake: a hundred connections leak nothing", .run = A_hundred_connections_leak_nothing},
    {.name = NULL}};

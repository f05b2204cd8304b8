/* SPDX-License-Identifier: MIT
 *
 * A server that selects its context after the ClientHello: all settings of the new context apply.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/conf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint8_t s_h2AndHttp[] = {2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
static const uint8_t s_h2[] = {2, 'h', '2'};

/* The second context has settings that the first lacks: certificate, ALPN, version, ciphers. */
static void Switch_to(int32_t version, int32_t firstFlags, int32_t flags)
{
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions first = Fixture_PausingOptions();
    KtlsContextOptions second = Fixture_ServerOptions(version);
    client.alpn = s_h2AndHttp;
    client.alpnLength = sizeof(s_h2AndHttp);
    client.flags |= flags & KTLS_FLAG_ENABLE_KTLS;
    first.flags |= firstFlags;
    first.cipherList = "ECDHE-ECDSA-AES128-GCM-SHA256";
    first.cipherSuites = "TLS_AES_128_GCM_SHA256";
    /* The minimum is above the maximum of the first context, and vice versa. */
    first.minVersion = first.maxVersion = version == TLS1_2_VERSION ? TLS1_3_VERSION : TLS1_2_VERSION;
    second.flags |= flags;
    second.alpn = s_h2;
    second.alpnLength = sizeof(s_h2);
    second.cipherList = "ECDHE-ECDSA-AES256-GCM-SHA384";
    second.cipherSuites = "TLS_AES_256_GCM_SHA384";
    Link link = Link_CreatePaused(&client, &first);
    Link_Switch(&link, &second);
    Link_Complete(&link);

    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.server, &info), 0);
    CHECK_EQ(info.protocolVersion, version);
    CHECK_EQ(info.cipherSuite, version == TLS1_2_VERSION ? 0xC02C : 0x1302);
    CHECK_EQ(info.alpnLength, 2);
    CHECK_EQ(info.serverNameLength, 5 + 9);
    CHECK(memcmp(info.serverName + 5, "localhost", 9) == 0);
    CHECK_EQ(info.ktlsSend, (firstFlags & flags & KTLS_FLAG_ENABLE_KTLS) != 0);
    int32_t layer;
    CHECK_EQ(KtlsNative_GetLayer(link.pair.server, &layer), 0);
    CHECK((firstFlags & KTLS_FLAG_ENABLE_KTLS) != 0 || layer == KTLS_LAYER_NONE);
    Link_Free(&link);
}

static void Switch_tls12(void)
{
    Switch_to(TLS1_2_VERSION, 0, 0);
    Switch_to(TLS1_2_VERSION, KTLS_FLAG_NO_TICKETS | KTLS_FLAG_RELEASE_BUFFERS, 0);
    Switch_to(TLS1_2_VERSION, 0, KTLS_FLAG_PAUSE_AT_CLIENT_HELLO); /* does not pause again */
}

static void Switch_tls13(void)
{
    Switch_to(TLS1_3_VERSION, 0, 0);
    Switch_to(TLS1_3_VERSION, KTLS_FLAG_ALLOW_RENEGOTIATION, KTLS_FLAG_RELEASE_BUFFERS);
    Switch_to(TLS1_3_VERSION, 0, KTLS_FLAG_PAUSE_AT_CLIENT_HELLO);
}

/* The kernel gets the keys if both contexts allow it. If the first does not, the socket stays without "tls". */
static void Switch_in_the_kernel(void)
{
    Switch_to(TLS1_2_VERSION, KTLS_FLAG_ENABLE_KTLS, KTLS_FLAG_ENABLE_KTLS);
    Switch_to(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS, KTLS_FLAG_ENABLE_KTLS);
    Switch_to(TLS1_2_VERSION, 0, KTLS_FLAG_ENABLE_KTLS);
    Switch_to(TLS1_3_VERSION, 0, KTLS_FLAG_ENABLE_KTLS);
    Switch_to(TLS1_2_VERSION, KTLS_FLAG_ENABLE_KTLS, 0);
    Switch_to(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS, 0);
}

static void Default_ciphers_replace_chosen_ones(void)
{
    KtlsContextOptions client = Fixture_ClientOptions(TLS1_3_VERSION);
    KtlsContextOptions first = Fixture_PausingOptions();
    KtlsContextOptions second = Fixture_ServerOptions(0);
    first.cipherSuites = "TLS_AES_128_GCM_SHA256";
    client.cipherSuites = "TLS_AES_256_GCM_SHA384";
    Link link = Link_CreatePaused(&client, &first);
    Link_Switch(&link, &second);
    Link_Complete(&link);
    Link_Free(&link);
}

/* Switches to the current context. */
static void Switch_to_the_same(void)
{
    KtlsResult result;
    Fixture_Initialize();
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_ServerOptions(0);
    server.flags |= KTLS_FLAG_PAUSE_AT_CLIENT_HELLO;
    KtlsContext* clientContext = Fixture_CreateContext(&client);
    KtlsContext* serverContext = Fixture_CreateContext(&server);
    Link link = Link_CreateWith(clientContext, serverContext, NULL);
    Link_RunToPause(&link, KTLS_STATUS_WANT_CLIENT_HELLO);
    KtlsClientHello hello;
    CHECK_EQ(KtlsNative_GetClientHello(link.server, &hello), 0);
    CHECK_EQ(hello.serverNameLength, 0);
    CHECK_EQ(KtlsNative_SwitchContext(link.server, serverContext, &result), 0);
    KtlsNative_ContextFree(clientContext);
    KtlsNative_ContextFree(serverContext);
    Link_Complete(&link);
    Link_Free(&link);
}

/* Requests a client certificate if the second context does, and not if only the first does. */
static void The_verify_mode_is_switched(void)
{
    for (int32_t version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
    {
        KtlsContextOptions client = Fixture_ClientOptions(version);
        KtlsContextOptions first = Fixture_PausingOptions();
        KtlsContextOptions second = Fixture_ServerOptions(0);
        client.certificateCount = second.certificateCount;
        client.certificates = second.certificates;
        client.privateKey = second.privateKey;
        second.flags |= KTLS_FLAG_VERIFY_PEER | KTLS_FLAG_REQUIRE_PEER;
        Link link = Link_CreatePaused(&client, &first);
        Link_Switch(&link, &second);
        KtlsResult result;
        CHECK_EQ(KtlsNative_Handshake(link.server, link.pair.server, NULL, 0, &result), EINVAL);
        int calls = 0;
        link.verifyState = (intptr_t)&calls;
        Link_Complete(&link);
        CHECK_EQ(calls, 2);
        Fixture_CheckPeerChain(link.server, 2);
        Link_Free(&link);

        second.flags = 0;
        first.flags |= KTLS_FLAG_REQUIRE_PEER;
        link = Link_CreatePaused(&client, &first);
        Link_Switch(&link, &second);
        Link_Complete(&link);
        Fixture_CheckPeerChain(link.server, 0);
        Link_Free(&link);
    }
}

/* A context uses OpenSSL's default groups, which only its configuration can restrict. */
static void AllowOnlyP256(void)
{
    static const char s_configuration[] = "openssl_conf = all\n[all]\nssl_conf = tls\n[tls]\nsystem_default = groups\n"
                                          "[groups]\nGroups = P-256\n";
    char name[] = "/tmp/native-tests-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && write(file, s_configuration, sizeof(s_configuration) - 1) > 0);
    CHECK(CONF_modules_load_file(name, NULL, 0) == 1);
    (void)unlink(name);
    (void)close(file);
}

static void CountHellos(int sent, int version, int type, const void* message, size_t length, SSL* ssl, void* count)
{
    (void)version;
    (void)ssl;
    if (sent != 0 && type == SSL3_RT_HANDSHAKE && length > 0 && *(const uint8_t*)message == SSL3_MT_CLIENT_HELLO)
    {
        ++*(int*)count;
    }
}

/* A client whose only key share is for a group that the server does not accept causes a HelloRetryRequest. */
static void A_second_hello_does_not_pause(void)
{
    KtlsPair pair;
    KtlsResult result;
    Fixture_Initialize();
    AllowOnlyP256();
    KtlsContextOptions pausing = Fixture_PausingOptions();
    KtlsContextOptions second = Fixture_ServerOptions(TLS1_3_VERSION);
    second.flags |= KTLS_FLAG_PAUSE_AT_CLIENT_HELLO;
    KtlsContext* first = Fixture_CreateContext(&pausing);
    KtlsContext* next = Fixture_CreateContext(&second);
    Fixture_OpenPair(&pair);
    KtlsConnection* shim = Fixture_CreateConnection(first, pair.server, NULL);
    int hellos = 0;
    SSL_CTX* client = SSL_CTX_new(TLS_client_method());
    SSL* plain = SSL_new(client);
    CHECK(plain != NULL && SSL_set_fd(plain, pair.client) == 1);
    CHECK(SSL_set1_groups_list(plain, "P-384:P-256") == 1);
    SSL_set_msg_callback(plain, CountHellos);
    SSL_set_msg_callback_arg(plain, &hellos);
    SSL_set_connect_state(plain);
    int pauses = 0;
    bool plainDone = false;
    bool shimDone = false;
    while (!plainDone || !shimDone)
    {
        plainDone = plainDone || SSL_do_handshake(plain) == 1;
        CHECK_EQ(KtlsNative_Handshake(shim, pair.server, NULL, 0, &result), 0);
        CHECK(result.status <= KTLS_STATUS_WANT_WRITE || result.status == KTLS_STATUS_WANT_CLIENT_HELLO);
        shimDone = result.status == KTLS_STATUS_OK;
        if (result.status == KTLS_STATUS_WANT_CLIENT_HELLO)
        {
            pauses++;
            CHECK_EQ(KtlsNative_SwitchContext(shim, next, &result), 0);
        }
    }
    CHECK_EQ(hellos, 2);
    CHECK_EQ(pauses, 1);
    SSL_free(plain);
    SSL_CTX_free(client);
    KtlsNative_ConnectionFree(shim);
    KtlsNative_ContextFree(first);
    KtlsNative_ContextFree(next);
    KtlsPair_Close(&pair);
}

const Test g_switchTests[] = {
    {"switch: TLS 1.2", .run = Switch_tls12},
    {"switch: TLS 1.3", .run = Switch_tls13},
    {"switch: in the kernel", .runInKernel = Switch_in_the_kernel},
    {"switch: default ciphers replace chosen ones", .run = Default_ciphers_replace_chosen_ones},
    {"switch: to the same context", .run = Switch_to_the_same},
    {"switch: the verify mode of the other context", .run = The_verify_mode_is_switched},
    {"switch: a second hello does not pause", .run = A_second_hello_does_not_pause},
    {.name = NULL}};

/* SPDX-License-Identifier: MIT
 *
 * Kernel TLS for one direction, without a supported cipher, and on a socket that already has another layer.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void Flags(void)
{
    static const int32_t s_bad[] = {
        KTLS_FLAG_SEND_ONLY, KTLS_FLAG_RECEIVE_ONLY,
        KTLS_FLAG_ENABLE_KTLS | KTLS_FLAG_SEND_ONLY | KTLS_FLAG_RECEIVE_ONLY};
    Fixture_Initialize();
    for (size_t i = 0; i < sizeof(s_bad) / sizeof(s_bad[0]); i++)
    {
        KtlsContextOptions options = Fixture_ClientOptions(0);
        KtlsContext* context = NULL;
        KtlsResult result;
        options.flags |= s_bad[i];
        CHECK_EQ(KtlsNative_ContextCreate(&options, &context, &result), EINVAL);
        CHECK(context == NULL);
    }
}

static void CheckConf(int socket, bool send, bool receive)
{
    KtlsSocketInfo kernel;
    CHECK_EQ(KtlsNative_GetSocketInfo(socket, &kernel), 0);
    CHECK_EQ(kernel.sendConf != KTLS_CONF_NONE, send);
    CHECK_EQ(kernel.receiveConf != KTLS_CONF_NONE, receive);
}

static void Update(KtlsConnection* connection, int socket, int32_t requestPeer)
{
    KtlsResult result;
    CHECK_EQ(KtlsNative_KeyUpdate(connection, socket, requestPeer, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
}

static int32_t ReadControl(KtlsConnection* connection, int socket)
{
    KtlsResult result;
    uint8_t byte;
    Link_ReadNext(connection, socket, &byte, 1, &result);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
    return result.keyUpdate;
}

/* One end is limited to a direction. The other end does not use the kernel, and can always update its keys. */
static void One_direction(int32_t version, int32_t flag, bool limitsServer)
{
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    (limitsServer ? &server : &client)->flags |= KTLS_FLAG_ENABLE_KTLS | flag;
    Link link = Link_Create(&client, &server);
    Link_Complete(&link);
    KtlsConnection* limited = limitsServer ? link.server : link.client;
    KtlsConnection* other = limitsServer ? link.client : link.server;
    int socket = limitsServer ? link.pair.server : link.pair.client;
    int otherSocket = limitsServer ? link.pair.client : link.pair.server;
    bool receives =
        flag == KTLS_FLAG_RECEIVE_ONLY && (version == TLS1_2_VERSION || g_fixture.library.openSslVersion >= 0x30200000);
    bool sends = flag == KTLS_FLAG_SEND_ONLY;
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(limited, &info), 0);
    CHECK_EQ(info.ktlsSend, sends);
    CHECK_EQ(info.ktlsReceive, receives);
    CheckConf(socket, sends, receives);
    Link_TransferBothWays(&link, 100000);

    bool canRekey = g_fixture.probe.rekeySendErrno == 0 && g_fixture.probe.rekeyReceiveErrno == 0 &&
                    g_fixture.library.openSslVersion >= 0x30200000;
    if (version == TLS1_3_VERSION && (canRekey || (!sends && !receives)))
    {
        Update(limited, socket, 0);
        (void)ReadControl(other, otherSocket);
        CheckConf(socket, sends, receives);
        Update(other, otherSocket, 1);
        CHECK_EQ(ReadControl(limited, socket), 1);
        CheckConf(socket, sends, receives);
        Update(limited, socket, 0);
        (void)ReadControl(other, otherSocket);
        CheckConf(socket, sends, receives);
        Link_TransferBothWays(&link, 100000);
        CheckConf(socket, sends, receives);
    }
    else if (version == TLS1_3_VERSION && sends)
    {
        Update(other, otherSocket, 0);
        CHECK_EQ(ReadControl(limited, socket), 0);
        CheckConf(socket, sends, receives);
        Link_TransferBothWays(&link, 100000);
    }
    Link_Free(&link);
}

static void Each_direction_alone(void)
{
    for (int i = 0; i < 8; i++)
    {
        One_direction(
            (i & 1) != 0 ? TLS1_3_VERSION : TLS1_2_VERSION, (i & 2) != 0 ? KTLS_FLAG_SEND_ONLY : KTLS_FLAG_RECEIVE_ONLY,
            (i & 4) != 0);
    }
}

/* Memory that OpenSSL or the shim allocates for an attempt that fails is freed with the connection. ASAN checks it. */
static void Kernel_tls_is_unavailable(void)
{
    int before = 0;
    for (int i = 0; i < 50; i++)
    {
        KtlsContextOptions client = Fixture_ClientOptions(TLS1_2_VERSION);
        KtlsContextOptions server = Fixture_ServerOptions(TLS1_2_VERSION);
        client.cipherList = "ECDHE-ECDSA-AES128-SHA256";
        client.flags |= KTLS_FLAG_ENABLE_KTLS | (i % 2 == 0 ? KTLS_FLAG_SEND_ONLY : 0);
        server.flags |= KTLS_FLAG_ENABLE_KTLS | (i % 2 == 0 ? KTLS_FLAG_RECEIVE_ONLY : 0);
        Link link = Link_Create(&client, &server);
        Link_Complete(&link);
        CheckConf(link.pair.client, false, false);
        CheckConf(link.pair.server, false, false);
        Link_Free(&link);
        before = i == 0 ? Fixture_CountDescriptors() : before;
    }
    CHECK_EQ(Fixture_CountDescriptors(), before);
}

static int32_t LayerOf(int socket)
{
    int32_t layer = -1;
    CHECK_EQ(KtlsNative_GetLayer(socket, &layer), 0);
    return layer;
}

static void Layer_of_plain_sockets(void)
{
    int32_t layer;
    KtlsPair pair;
    CHECK_EQ(KtlsNative_GetLayer(0, NULL), EINVAL);
    CHECK_EQ(KtlsNative_GetLayer(-1, &layer), EBADF);
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    CHECK_EQ(LayerOf(pair.client), KTLS_LAYER_NONE);
    CHECK(send(pair.server, "x", 1, 0) == 1);
    Fixture_Wait(pair.client, POLLIN);
    CHECK_EQ(LayerOf(pair.client), KTLS_LAYER_NONE);
    char byte = 0;
    CHECK(recv(pair.client, &byte, 1, 0) == 1 && byte == 'x');
    (void)shutdown(pair.server, SHUT_WR);
    Fixture_Wait(pair.client, POLLIN);
    CHECK_EQ(LayerOf(pair.client), KTLS_LAYER_NONE);
    KtlsPair_Close(&pair);
}

/* Creates a sockmap for four sockets with bpf(2) (linux/bpf.h). */
static int CreateSockmap(void)
{
    const uint32_t attributes[18] = {15, 4, 4, 4};
    int map = (int)syscall(SYS_bpf, 0, attributes, sizeof(attributes));
    if (map < 0)
    {
        Test_Skip("cannot create a sockmap");
    }
    return map;
}

static void AddToSockmap(int map, uint32_t key, int socket)
{
    const struct
    {
        uint64_t map;
        uint64_t key;
        uint64_t value;
        uint64_t flags;
    } attributes = {(uint64_t)map, (uintptr_t)&key, (uintptr_t)&socket, 0};
    CHECK_EQ(syscall(SYS_bpf, 2, &attributes, sizeof(attributes)), 0);
}

static void Layer_of_a_socket_in_a_sockmap(void)
{
    KtlsPair pair;
    int map = CreateSockmap();
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    AddToSockmap(map, 0, pair.client);
    CHECK_EQ(LayerOf(pair.client), KTLS_LAYER_SOCKMAP);
    CHECK_EQ(LayerOf(pair.server), KTLS_LAYER_NONE);
    CHECK(send(pair.server, "x", 1, 0) == 1);
    Fixture_Wait(pair.client, POLLIN);
    CHECK_EQ(LayerOf(pair.client), KTLS_LAYER_NONE); /* hidden by the unread data, as documented */
    char byte = 0;
    CHECK(recv(pair.client, &byte, 1, 0) == 1 && byte == 'x');
    CHECK_EQ(LayerOf(pair.client), KTLS_LAYER_SOCKMAP);
    KtlsPair_Close(&pair);
    (void)close(map);
}

/* The server detects the sockmap after the ClientHello, even if it pauses there and switches its context. */
static void A_server_in_a_sockmap(bool switches)
{
    int map = CreateSockmap();
    KtlsContextOptions client = Fixture_ClientOptions(0);
    KtlsContextOptions server = Fixture_ServerOptions(0);
    server.flags |= KTLS_FLAG_ENABLE_KTLS;
    KtlsContextOptions first = switches ? Fixture_PausingOptions() : server;
    first.flags |= KTLS_FLAG_ENABLE_KTLS;
    Link link = Link_Create(&client, &first);
    AddToSockmap(map, 0, link.pair.server);
    if (switches)
    {
        Link_RunToPause(&link, KTLS_STATUS_WANT_CLIENT_HELLO);
        Link_Switch(&link, &server);
    }
    Link_Complete(&link);
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.server, &info), 0);
    CHECK_EQ(info.sockmap, 1);
    CHECK_EQ(info.ktlsSend | info.ktlsReceive, 0);
    CheckConf(link.pair.server, false, false);
    Link_TransferBothWays(&link, 100000);
    Link_Free(&link);
    (void)close(map);
}

static void Servers_in_a_sockmap(void)
{
    A_server_in_a_sockmap(false);
    A_server_in_a_sockmap(true);
}

static void Layer_of_a_socket_with_tls(void)
{
    KtlsPair pair;
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    CHECK(setsockopt(pair.client, IPPROTO_TCP, 31, "tls", sizeof("tls")) == 0);
    CHECK_EQ(LayerOf(pair.client), KTLS_LAYER_ULP);
    KtlsPair_Close(&pair);
}

const Test g_directionTests[] = {
    {"directions: flags", .run = Flags},
    {"directions: each alone, key updates included", .runInKernel = Each_direction_alone},
    {"directions: kernel TLS is unavailable", .run = Kernel_tls_is_unavailable},
    {"layer: plain sockets", .run = Layer_of_plain_sockets},
    {"layer: a socket in a sockmap", .run = Layer_of_a_socket_in_a_sockmap},
    {"layer: servers in a sockmap", .run = Servers_in_a_sockmap},
    {"layer: a socket with tls", .runInKernel = Layer_of_a_socket_with_tls},
    {.name = NULL}};

/* SPDX-License-Identifier: MIT
 *
 * The capabilities of the kernel, and its state for one socket.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void Probe(void)
{
    KtlsProbe probe;
    CHECK_EQ(KtlsNative_ProbeKernel(NULL), EINVAL);
    memset(&probe, 0xAA, sizeof(probe));
    int before = Fixture_CountDescriptors();
    CHECK_EQ(KtlsNative_ProbeKernel(&probe), 0);
    CHECK_EQ(Fixture_CountDescriptors(), before);
    CHECK(memcmp(&probe, &g_fixture.probe, sizeof(probe)) == 0);
    if (probe.ulpErrno != 0)
    {
        const int32_t* all = (const int32_t*)&probe;
        for (size_t i = 0; i < sizeof(probe) / sizeof(int32_t); i++)
        {
            CHECK_EQ(all[i], probe.ulpErrno);
        }
    }
}

/* Without descriptors the probe returns an errno and a table without support, and leaks nothing. */
static void Probe_without_descriptors(void)
{
    const struct rlimit few = {64, 64};
    int spare[3];
    int taken[64];
    int count = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (int descriptor; count < 64 && (descriptor = dup(0)) >= 0;)
    {
        taken[count++] = descriptor;
    }
    CHECK(count >= 3);
    for (int free = 0; free <= 2; free++)
    {
        for (int i = 0; i < free; i++)
        {
            (void)close(taken[count - 1 - i]);
        }
        KtlsProbe probe;
        CHECK_EQ(KtlsNative_ProbeKernel(&probe), EMFILE);
        CHECK_EQ(probe.ulpErrno, EMFILE);
        CHECK_EQ(probe.send[1][0], EMFILE);
        for (int i = 0; i < free; i++)
        {
            spare[i] = dup(0);
            CHECK_EQ(spare[i], taken[count - free + i]);
        }
    }
    for (int i = 0; i < count; i++)
    {
        (void)close(taken[i]);
    }
}

static void Socket_info_of_other_sockets(void)
{
    KtlsSocketInfo info;
    KtlsPair pair;
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    CHECK_EQ(KtlsNative_GetSocketInfo(pair.client, NULL), EINVAL);
    CHECK_EQ(KtlsNative_GetSocketInfo(-1, &info), EBADF);
    CHECK_EQ(KtlsNative_GetSocketInfo(pair.client, &info), 0);
    CHECK_EQ(info.sendConf | info.receiveConf | info.version | info.cipher, 0);
    KtlsPair_Close(&pair);
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(KtlsNative_GetSocketInfo(ends[0], &info) != 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    CHECK(pipe(ends) == 0);
    CHECK_EQ(KtlsNative_GetSocketInfo(ends[0], &info), ENOTSOCK);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static const char* ConfName(int32_t conf)
{
    static const char* const s_names[] = {"none", "unknown", "software", "device"};
    return conf >= 0 && conf <= 3 ? s_names[conf] : "?";
}

static void CheckOffload(KtlsConnection* connection, int socket, int32_t version, int32_t cipher)
{
    KtlsConnectionInfo info;
    KtlsSocketInfo kernel;
    /* OpenSSL gives the kernel TLS 1.3 receiving keys since 3.2. */
    bool receives = version == TLS1_2_VERSION || g_fixture.library.openSslVersion >= 0x30200000;
    CHECK_EQ(KtlsNative_GetConnectionInfo(connection, &info), 0);
    CHECK_EQ(info.ktlsSend, 1);
    CHECK_EQ(info.ktlsReceive, receives);
    CHECK_EQ(KtlsNative_GetSocketInfo(socket, &kernel), 0);
    CHECK_EQ(kernel.version, version);
    CHECK_EQ(kernel.cipher, cipher);
    CHECK(kernel.sendConf == KTLS_CONF_SOFTWARE || kernel.sendConf == KTLS_CONF_UNKNOWN);
    CHECK(kernel.receiveConf == (receives ? kernel.sendConf : KTLS_CONF_NONE));
    Test_Note(
        "TLS %s, cipher %d: send %s, receive %s", version == TLS1_2_VERSION ? "1.2" : "1.3", kernel.cipher,
        ConfName(kernel.sendConf), ConfName(kernel.receiveConf));
}

static void Offload(int32_t version, int32_t flags, const char* suite, int32_t cipher)
{
    KtlsContextOptions client = Fixture_ClientOptions(version);
    KtlsContextOptions server = Fixture_ServerOptions(version);
    *(version == TLS1_2_VERSION ? &client.cipherList : &client.cipherSuites) = suite;
    client.flags |= KTLS_FLAG_ENABLE_KTLS | flags;
    server.flags |= KTLS_FLAG_ENABLE_KTLS | flags;
    Link link = Link_Create(&client, &server);
    Link_Run(&link);
    CHECK_EQ(link.serverResult.status, KTLS_STATUS_OK);
    CheckOffload(link.client, link.pair.client, version, cipher);
    CheckOffload(link.server, link.pair.server, version, cipher);
    Link_TransferBothWays(&link, 200000);
    Link_Free(&link);
}

static void Offload_tls12(void)
{
    Offload(TLS1_2_VERSION, 0, "ECDHE-ECDSA-AES128-GCM-SHA256", 51);
    Offload(TLS1_2_VERSION, KTLS_FLAG_NO_TICKETS, "ECDHE-ECDSA-AES256-GCM-SHA384", 52);
}

static void Offload_tls13(void)
{
    Offload(TLS1_3_VERSION, 0, "TLS_AES_128_GCM_SHA256", 51);
    Offload(TLS1_3_VERSION, KTLS_FLAG_RELEASE_BUFFERS, "TLS_AES_256_GCM_SHA384", 52);
}

/* If sock_diag is denied, an unprivileged process still gets version and cipher of the keys. */
static void Socket_info_without_privilege(void)
{
    Link link = Link_Establish(TLS1_3_VERSION, KTLS_FLAG_ENABLE_KTLS);
    CHECK(setuid(65534) == 0);
    KtlsSocketInfo info;
    CHECK_EQ(KtlsNative_GetSocketInfo(link.pair.client, &info), 0);
    CHECK_EQ(info.version, TLS1_3_VERSION);
    CHECK(info.cipher == 51 || info.cipher == 52);
    CHECK(info.sendConf == KTLS_CONF_SOFTWARE || info.sendConf == KTLS_CONF_UNKNOWN);
    Test_Note("unprivileged: send %s, receive %s", ConfName(info.sendConf), ConfName(info.receiveConf));
    Link_Free(&link);
}

/* Without SSL_OP_ENABLE_KTLS OpenSSL may attach the layer but must not set keys. */
static void No_keys_without_the_option(void)
{
    Link link = Link_Establish(TLS1_3_VERSION, 0);
    KtlsConnectionInfo info;
    KtlsSocketInfo kernel;
    CHECK_EQ(KtlsNative_GetConnectionInfo(link.client, &info), 0);
    CHECK_EQ(info.ktlsSend | info.ktlsReceive, 0);
    CHECK_EQ(KtlsNative_GetSocketInfo(link.pair.client, &kernel), 0);
    CHECK_EQ(kernel.sendConf | kernel.receiveConf | kernel.version | kernel.cipher, 0);
    Link_TransferBothWays(&link, 100000);
    Link_Free(&link);
}

const Test g_kernelTests[] = {
    {"kernel: probe", .run = Probe},
    {"kernel: probe without descriptors", .run = Probe_without_descriptors},
    {"kernel: info of other sockets", .run = Socket_info_of_other_sockets},
    {"kernel: TLS 1.2 is offloaded", .runInKernel = Offload_tls12},
    {"kernel: TLS 1.3 is offloaded", .runInKernel = Offload_tls13},
    {"kernel: info without privilege", .runInKernel = Socket_info_without_privilege},
    {"kernel: no keys without the option", .runInKernel = No_keys_without_the_option},
    {.name = NULL}};

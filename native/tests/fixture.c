/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

enum
{
    WAIT_SECONDS = 100 /* for one event: long enough for an emulated machine on a busy host */
};

Fixture g_fixture;

static X509* Issue(const char* name, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuerKey)
{
    X509* certificate = X509_new();
    CHECK(certificate != NULL && X509_set_version(certificate, 2) == 1);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(certificate), issuer == NULL ? 1 : 2);
    (void)X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
    (void)X509_gmtime_adj(X509_getm_notAfter(certificate), 30L * 86400);
    X509_NAME* subject = X509_NAME_new();
    (void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char*)name, -1, -1, 0);
    (void)X509_set_subject_name(certificate, subject);
    (void)X509_set_issuer_name(certificate, issuer != NULL ? X509_get_subject_name(issuer) : subject);
    X509_NAME_free(subject);
    CHECK(X509_set_pubkey(certificate, key) == 1);
    CHECK(X509_sign(certificate, issuerKey, EVP_sha256()) > 0);
    return certificate;
}

static KtlsBlob Encode(X509* certificate)
{
    unsigned char* data = NULL;
    int length = i2d_X509(certificate, &data);
    CHECK(length > 0);
    KtlsBlob blob = {data, length, 0};
    return blob;
}

static void CreateCertificates(void)
{
    EVP_PKEY* rootKey = EVP_EC_gen("P-256");
    EVP_PKEY* intermediateKey = EVP_EC_gen("P-256");
    g_fixture.key = EVP_EC_gen("P-256");
    g_fixture.otherKey = EVP_EC_gen("P-256");
    CHECK(rootKey != NULL && intermediateKey != NULL && g_fixture.key != NULL && g_fixture.otherKey != NULL);
    X509* root = Issue("test root", rootKey, NULL, rootKey);
    g_fixture.intermediate = Issue("test intermediate", intermediateKey, root, rootKey);
    g_fixture.leaf = Issue("localhost", g_fixture.key, g_fixture.intermediate, intermediateKey);
    g_fixture.chain[0] = Encode(g_fixture.leaf);
    g_fixture.chain[1] = Encode(g_fixture.intermediate);
    X509_free(root);
    EVP_PKEY_free(rootKey);
    EVP_PKEY_free(intermediateKey);
}

static void PrintProbe(const char* label, const int32_t row[KTLS_PROBE_CIPHERS])
{
    static const char* const s_names[KTLS_PROBE_CIPHERS] = {"AES-128-GCM", "AES-256-GCM", "AES-128-CCM", "ChaCha20"};
    printf("  %s:", label);
    for (int i = 0; i < KTLS_PROBE_CIPHERS; i++)
    {
        printf(" %s=%s", s_names[i], row[i] == 0 ? "yes" : strerrorname_np(row[i]));
    }
    printf("\n");
}

static const char* ErrorName(int32_t error)
{
    return error == 0 ? "yes" : strerrorname_np(error);
}

bool Fixture_Create(void)
{
    struct utsname kernel;
    CHECK(uname(&kernel) == 0);
    CreateCertificates();
    const KtlsProbe* probe = &g_fixture.probe;
    int32_t error = KtlsNative_ProbeKernel(&g_fixture.probe);
    printf(
        "kernel %s, %s; probe: %s, tls: %s\n", kernel.release, OpenSSL_version(OPENSSL_VERSION), ErrorName(error),
        ErrorName(probe->ulpErrno));
    if (probe->ulpErrno == 0)
    {
        PrintProbe("TLS 1.2 send   ", probe->send[0]);
        PrintProbe("TLS 1.2 receive", probe->receive[0]);
        PrintProbe("TLS 1.3 send   ", probe->send[1]);
        PrintProbe("TLS 1.3 receive", probe->receive[1]);
        printf(
            "  rekey send=%s receive=%s, no-pad=%s, zero-copy=%s\n", ErrorName(probe->rekeySendErrno),
            ErrorName(probe->rekeyReceiveErrno), ErrorName(probe->noPadErrno), ErrorName(probe->zeroCopyErrno));
    }
    return error == 0 && probe->ulpErrno == 0;
}

void Fixture_Free(void)
{
    EVP_PKEY_free(g_fixture.key);
    EVP_PKEY_free(g_fixture.otherKey);
    X509_free(g_fixture.leaf);
    X509_free(g_fixture.intermediate);
    OPENSSL_free((void*)(uintptr_t)g_fixture.chain[0].data);
    OPENSSL_free((void*)(uintptr_t)g_fixture.chain[1].data);
    memset(&g_fixture, 0, sizeof(g_fixture));
}

int Fixture_CountDescriptors(void)
{
    DIR* directory = opendir("/proc/self/fd");
    int count = 0;
    while (directory != NULL && readdir(directory) != NULL)
    {
        count++;
    }
    (void)closedir(directory);
    return count;
}

void Fixture_Initialize(void)
{
    CHECK_EQ(KtlsNative_Initialize((int64_t)OpenSSL_version_num(), &g_fixture.library), 0);
}

KtlsContextOptions Fixture_ClientOptions(int32_t version)
{
    KtlsContextOptions options;
    memset(&options, 0, sizeof(options));
    options.role = KTLS_ROLE_CLIENT;
    options.flags = KTLS_FLAG_VERIFY_PEER;
    options.minVersion = version;
    options.maxVersion = version;
    return options;
}

KtlsContextOptions Fixture_ServerOptions(int32_t version)
{
    KtlsContextOptions options = Fixture_ClientOptions(version);
    options.role = KTLS_ROLE_SERVER;
    options.flags = 0;
    options.certificateCount = 2;
    options.certificates = g_fixture.chain;
    options.privateKey = (intptr_t)g_fixture.key;
    return options;
}

KtlsContextOptions Fixture_PausingOptions(void)
{
    KtlsContextOptions options = Fixture_ServerOptions(0);
    options.flags = KTLS_FLAG_PAUSE_AT_CLIENT_HELLO;
    options.certificateCount = 0;
    options.certificates = NULL;
    options.privateKey = 0;
    return options;
}

KtlsContext* Fixture_CreateContext(const KtlsContextOptions* options)
{
    KtlsContext* context = NULL;
    KtlsResult result;
    CHECK_EQ(KtlsNative_ContextCreate(options, &context, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK(context != NULL);
    return context;
}

KtlsConnection* Fixture_CreateConnection(KtlsContext* context, int socket, const char* serverName)
{
    KtlsConnection* connection = NULL;
    KtlsResult result;
    CHECK_EQ(KtlsNative_ConnectionCreate(context, socket, serverName, &connection, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK(connection != NULL);
    return connection;
}

void Fixture_OpenPair(KtlsPair* pair)
{
    CHECK_EQ(KtlsPair_Open(pair), 0);
    int on = 1;
    CHECK(setsockopt(pair->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
    CHECK(setsockopt(pair->server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
}

void Fixture_ShrinkBuffers(const KtlsPair* pair)
{
    int size = 4096; /* the kernel enforces its own minimum */
    const int ends[] = {pair->client, pair->server};
    for (int i = 0; i < 2; i++)
    {
        CHECK(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
        CHECK(setsockopt(ends[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) == 0);
    }
}

size_t Fixture_Fill(int socket)
{
    static const uint8_t s_noise[65536];
    size_t filled = 0;
    for (ssize_t sent; (sent = send(socket, s_noise, sizeof(s_noise), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;)
    {
        filled += (size_t)sent;
    }
    return filled;
}

void Fixture_Drain(int socket, size_t size)
{
    uint8_t drain[65536];
    while (size > 0)
    {
        Fixture_Wait(socket, POLLIN);
        ssize_t received = recv(socket, drain, size < sizeof(drain) ? size : sizeof(drain), 0);
        CHECK(received > 0);
        size -= (size_t)received;
    }
}

void Fixture_WaitAt(const char* file, int line, const char* what, struct pollfd* waits, nfds_t count)
{
    int ready;
    do
    {
        ready = poll(waits, count, WAIT_SECONDS * 1000);
        CHECK(ready >= 0 || errno == EINTR);
    } while (ready < 0);
    if (ready == 0)
    {
        Test_Fail(file, line, "waited %d s for %s", WAIT_SECONDS, what);
    }
}

int32_t Fixture_Accept(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl)
{
    (void)staple;
    CHECK(chain != NULL && count > 0 && ssl != 0);
    if (state != 0)
    {
        ++*(int*)state;
    }
    return X509_V_OK;
}

bool Fixture_IsInChain(intptr_t certificate, int32_t index)
{
    const X509* expected = index == 0 ? g_fixture.leaf : g_fixture.intermediate;
    return certificate != 0 && X509_cmp((const X509*)certificate, expected) == 0;
}

int32_t Fixture_Reject(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl)
{
    (void)chain;
    (void)count;
    (void)staple;
    (void)ssl;
    return (int32_t)state;
}

const Rejection g_rejections[7] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, SSL_AD_CERTIFICATE_EXPIRED},
    {X509_V_ERR_CERT_REVOKED, SSL_AD_CERTIFICATE_REVOKED},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, SSL_AD_UNKNOWN_CA},
    {X509_V_ERR_HOSTNAME_MISMATCH, SSL_AD_BAD_CERTIFICATE},
    {X509_V_ERR_APPLICATION_VERIFICATION, SSL_AD_HANDSHAKE_FAILURE},
    {-5, SSL_AD_HANDSHAKE_FAILURE},
    {999999, SSL_AD_CERTIFICATE_UNKNOWN}};

void Fixture_CheckPeerChain(KtlsConnection* connection, int32_t count)
{
    intptr_t certificate;
    for (int32_t i = 0; i < count; i++)
    {
        CHECK_EQ(KtlsNative_GetPeerCertificate(connection, i, &certificate), 0);
        CHECK(Fixture_IsInChain(certificate, i));
    }
    CHECK_EQ(KtlsNative_GetPeerCertificate(connection, count, &certificate), ENODATA);
    CHECK_EQ(certificate, 0);
}

void Fixture_ShakeHands(KtlsConnection* shim, int socket, SSL* plain)
{
    bool shimDone = false;
    bool plainDone = false;
    while (!shimDone || !plainDone)
    {
        KtlsResult result;
        CHECK_EQ(KtlsNative_Handshake(shim, socket, Fixture_Accept, 0, &result), 0);
        CHECK(result.status <= KTLS_STATUS_WANT_WRITE);
        shimDone = result.status == KTLS_STATUS_OK;
        plainDone = SSL_do_handshake(plain) == 1;
    }
}

uint8_t Fixture_PatternAt(size_t offset)
{
    return (uint8_t)(offset * 31 + (offset >> 8) * 7 + (offset >> 16));
}

int Fixture_OpenFile(size_t size)
{
    uint8_t* content = malloc(size);
    CHECK(content != NULL);
    for (size_t i = 0; i < size; i++)
    {
        content[i] = Fixture_PatternAt(i);
    }
    int file = memfd_create("pattern", MFD_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(write(file, content, size), (ssize_t)size);
    free(content);
    return file;
}

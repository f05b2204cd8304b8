/* SPDX-License-Identifier: MIT
 *
 * Binding libssl: the selection among the images of the process, repeated calls, and unsuitable libraries.
 */
#include "fixture.h"
#include "stub_libssl.h"
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void Nothing_works_before_initialize(void)
{
    KtlsContextOptions options = Fixture_ClientOptions(0);
    KtlsContext* context = (KtlsContext*)&options;
    KtlsConnection* connection = (KtlsConnection*)&options;
    KtlsResult result;
    KtlsConnectionInfo info;
    int32_t length = 1;
    intptr_t certificate = 0;
    uint8_t text[8];
    CHECK_EQ(KtlsNative_ContextCreate(&options, &context, &result), ENOSYS);
    CHECK(context == NULL);
    CHECK_EQ(KtlsNative_ConnectionCreate(NULL, 0, NULL, &connection, &result), ENOSYS);
    CHECK(connection == NULL);
    CHECK_EQ(KtlsNative_Handshake(NULL, 0, NULL, 0, &result), ENOSYS);
    CHECK_EQ(KtlsNative_Read(NULL, 0, NULL, 0, &result), ENOSYS);
    CHECK_EQ(KtlsNative_Write(NULL, 0, text, 1, &result), ENOSYS);
    CHECK_EQ(KtlsNative_Flush(NULL, 0, &result), ENOSYS);
    CHECK_EQ(KtlsNative_Shutdown(NULL, 0, &result), ENOSYS);
    CHECK_EQ(KtlsNative_CloseSending(NULL, 0, &result), ENOSYS);
    CHECK_EQ(KtlsNative_KeyUpdate(NULL, 0, 0, &result), ENOSYS);
    CHECK_EQ(KtlsNative_RequestCertificate(NULL, 0, NULL, 0, &result), ENOSYS);
    CHECK_EQ(KtlsNative_GetConnectionInfo(NULL, &info), ENOSYS);
    CHECK_EQ(KtlsNative_GetPeerCertificate(NULL, 0, &certificate), ENOSYS);
    KtlsClientHello hello;
    KtlsSessionInfo sessionInfo;
    KtlsSession* session = (KtlsSession*)&options;
    CHECK_EQ(KtlsNative_GetClientHello(NULL, &hello), ENOSYS);
    CHECK_EQ(KtlsNative_SwitchContext(NULL, NULL, &result), ENOSYS);
    CHECK_EQ(KtlsNative_AbortHandshake(NULL, 0, 40, &result), ENOSYS);
    CHECK_EQ(KtlsNative_SetOcspResponse(NULL, text, 1), ENOSYS);
    CHECK_EQ(KtlsNative_GetAcceptableIssuer(NULL, 0, NULL, 0, &length), ENOSYS);
    CHECK_EQ(KtlsNative_UseCertificate(NULL, NULL, 0, 0, &result), ENOSYS);
    CHECK_EQ(KtlsNative_GetFinished(NULL, 0, NULL, 0, &length), ENOSYS);
    CHECK_EQ(KtlsNative_TakeSession(NULL, &session), ENOSYS);
    CHECK(session == NULL);
    CHECK_EQ(KtlsNative_UseSession(NULL, NULL), ENOSYS);
    CHECK_EQ(KtlsNative_SessionInfo(NULL, &sessionInfo), ENOSYS);
    KtlsNative_SessionFree(NULL);
    CHECK_EQ(KtlsNative_ErrorText(1, text, sizeof(text)), ENOSYS);
    CHECK_EQ(text[0], 0);
    KtlsNative_ContextFree(NULL);
    KtlsNative_ConnectionFree(NULL);
}

static void The_interface_needs_no_library(void)
{
    uint64_t hash = 0;
    CHECK_EQ(KtlsNative_GetInterface(&hash), 0);
    CHECK(hash == KTLS_INTERFACE);
    CHECK_EQ(KtlsNative_GetInterface(NULL), EINVAL);
}

static void Load(const char* name)
{
    CHECK(dlopen(name, RTLD_LAZY) != NULL);
}

static void Initialize_uses_the_library_of_the_process(void)
{
    KtlsLibraryInfo info;
    CHECK_EQ(KtlsNative_Initialize((int64_t)OpenSSL_version_num(), &info), 0);
    CHECK_EQ(info.openSslVersion, OpenSSL_version_num());
    CHECK(strncmp((const char*)info.soName, "libssl.so.", 10) == 0);
    CHECK_EQ(atoi((const char*)info.soName + 10), OPENSSL_VERSION_MAJOR);
    CHECK(strcmp((const char*)info.versionText, OpenSSL_version(OPENSSL_VERSION)) == 0);
    CHECK_EQ(info.missingSymbol[0], 0);
    /* Debian builds OpenSSL with enable-ktls. */
    CHECK_EQ(info.hasKtls, 1);
}

static void Initialize_repeats_its_first_result(void)
{
    KtlsLibraryInfo first;
    KtlsLibraryInfo second;
    CHECK_EQ(KtlsNative_Initialize((int64_t)OpenSSL_version_num(), &first), 0);
    Load("libssl.so.97");
    CHECK_EQ(KtlsNative_Initialize(STUB_97_VERSION, &second), 0);
    CHECK(memcmp(&first, &second, sizeof(first)) == 0);
    CHECK_EQ(KtlsNative_Initialize(0, NULL), EINVAL);
}

static void* InitializeOnThread(void* answer)
{
    KtlsLibraryInfo info;
    *(int32_t*)answer = KtlsNative_Initialize((int64_t)OpenSSL_version_num(), &info);
    return NULL;
}

static void Initialize_from_many_threads(void)
{
    pthread_t threads[8];
    int32_t answers[8];
    for (int i = 0; i < 8; i++)
    {
        answers[i] = -1;
        CHECK_EQ(pthread_create(&threads[i], NULL, InitializeOnThread, &answers[i]), 0);
    }
    for (int i = 0; i < 8; i++)
    {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(answers[i], 0);
    }
}

static void Of_two_images_the_one_with_the_version_is_used(void)
{
    KtlsLibraryInfo info;
    Load("libssl.so.97");
    CHECK_EQ(KtlsNative_Initialize((int64_t)OpenSSL_version_num(), &info), 0);
    CHECK_EQ(info.openSslVersion, OpenSSL_version_num());
}

/* Libcrypto is found through libssl. */
static void A_later_image_with_the_version_is_used(void)
{
    KtlsLibraryInfo info;
    Load("libssl.so.98");
    Load("libssl.so.97");
    CHECK_EQ(KtlsNative_Initialize(STUB_97_VERSION, &info), 0);
    CHECK(strcmp((const char*)info.soName, "libssl.so.97") == 0);
    CHECK_EQ(info.openSslVersion, STUB_97_VERSION);
    CHECK_EQ(info.hasKtls, 0); /* its BIO_new returns NULL */
}

static void Without_the_version_the_first_image_is_used(void)
{
    KtlsLibraryInfo info;
    Load("libssl.so.97");
    CHECK_EQ(KtlsNative_Initialize(0x30000010, &info), 0);
    CHECK_EQ(info.openSslVersion, OpenSSL_version_num());
}

static void A_library_that_lacks_symbols_is_rejected(void)
{
    KtlsLibraryInfo info;
    KtlsResult result;
    KtlsContext* context;
    KtlsContextOptions options = Fixture_ClientOptions(0);
    Load("libssl.so.99");
    CHECK_EQ(KtlsNative_Initialize(STUB_99_VERSION, &info), ENOSYS);
    CHECK(strcmp((const char*)info.soName, "libssl.so.99") == 0);
    CHECK(strcmp((const char*)info.missingSymbol, "ERR_clear_error") == 0);
    CHECK_EQ(KtlsNative_ContextCreate(&options, &context, &result), ENOSYS);
    CHECK_EQ(KtlsNative_Initialize((int64_t)OpenSSL_version_num(), &info), ENOSYS);
}

static void A_newer_major_version_is_rejected(void)
{
    KtlsLibraryInfo info;
    Load("libssl.so.98");
    CHECK_EQ(KtlsNative_Initialize(STUB_98_VERSION, &info), ENOTSUP);
    CHECK_EQ(info.missingSymbol[0], 0);
    CHECK_EQ(info.openSslVersion, STUB_98_VERSION);
    CHECK(strcmp((const char*)info.versionText, "stub") == 0);
}

static void Error_text_is_cut_to_capacity(void)
{
    uint8_t text[64];
    int64_t wrongVersion = (20L << 23) | 267;
    Fixture_Initialize();
    CHECK_EQ(KtlsNative_ErrorText(wrongVersion, text, sizeof(text)), 0);
    CHECK(strstr((const char*)text, "error:0A00010B") != NULL);
    CHECK_EQ(KtlsNative_ErrorText(wrongVersion, text, 6), 0);
    CHECK_EQ(strlen((const char*)text), 5);
    CHECK_EQ(KtlsNative_ErrorText(wrongVersion, text, 1), 0);
    CHECK_EQ(text[0], 0);
    CHECK_EQ(KtlsNative_ErrorText(wrongVersion, text, 0), EINVAL);
    CHECK_EQ(KtlsNative_ErrorText(wrongVersion, text, 4097), EINVAL);
    CHECK_EQ(KtlsNative_ErrorText(wrongVersion, NULL, 10), EINVAL);
}

const Test g_libraryTests[] = {
    {"library: nothing works before Initialize", .run = Nothing_works_before_initialize},
    {"library: the interface needs no library", .run = The_interface_needs_no_library},
    {"library: the libssl of the process is used", .run = Initialize_uses_the_library_of_the_process},
    {"library: Initialize repeats its first result", .run = Initialize_repeats_its_first_result},
    {"library: Initialize from many threads", .run = Initialize_from_many_threads},
    {"library: of two images the one with the version is used", .run = Of_two_images_the_one_with_the_version_is_used},
    {"library: a later image with the version is used", .run = A_later_image_with_the_version_is_used},
    {"library: without the version the first image is used", .run = Without_the_version_the_first_image_is_used},
    {"library: a missing symbol is reported", .run = A_library_that_lacks_symbols_is_rejected},
    {"library: a newer major version is rejected", .run = A_newer_major_version_is_rejected},
    {"library: error text is cut to capacity", .run = Error_text_is_cut_to_capacity},
    {.name = NULL}};

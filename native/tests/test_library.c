/* SPDX-License-Identifier: MIT
 *
 * Binding libssl: the selection, repeated calls, and unsuitable libraries.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
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

static void Initialize_uses_the_library_of_the_process(void)
{
    KtlsLibraryInfo info;
    CHECK_EQ(KtlsNative_Initialize(NULL, &info), 0);
    CHECK_EQ(info.openSslVersion, OpenSSL_version_num());
    CHECK_EQ(info.fromProcess, 1);
    CHECK(strcmp((const char*)info.soName, "libssl.so.3") == 0);
    CHECK(strcmp((const char*)info.versionText, OpenSSL_version(OPENSSL_VERSION)) == 0);
    CHECK_EQ(info.missingSymbol[0], 0);
    /* Debian builds OpenSSL with enable-ktls. */
    CHECK_EQ(
        info.capabilities, KTLS_CAP_KTLS | KTLS_CAP_KEY_UPDATE | KTLS_CAP_SENDFILE | KTLS_CAP_CLIENT_HELLO_CB |
                               KTLS_CAP_POST_HANDSHAKE_AUTH);
}

static void Initialize_repeats_its_first_result(void)
{
    KtlsLibraryInfo first;
    KtlsLibraryInfo second;
    CHECK_EQ(KtlsNative_Initialize("", &first), 0);
    CHECK_EQ(KtlsNative_Initialize("99", &second), 0);
    CHECK(memcmp(&first, &second, sizeof(first)) == 0);
    CHECK_EQ(KtlsNative_Initialize(NULL, NULL), EINVAL);
}

static void* InitializeOnThread(void* answer)
{
    KtlsLibraryInfo info;
    *(int32_t*)answer = KtlsNative_Initialize(NULL, &info);
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

static void A_missing_override_is_ignored(void)
{
    KtlsLibraryInfo info;
    CHECK_EQ(KtlsNative_Initialize("77", &info), 0);
    CHECK(strcmp((const char*)info.soName, "libssl.so.3") == 0);
}

static void An_overlong_override_is_ignored(void)
{
    char name[200];
    KtlsLibraryInfo info;
    memset(name, '9', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    CHECK_EQ(KtlsNative_Initialize(name, &info), 0);
    CHECK(strcmp((const char*)info.soName, "libssl.so.3") == 0);
}

static void A_library_that_lacks_symbols_is_rejected(void)
{
    KtlsLibraryInfo info;
    KtlsResult result;
    KtlsContext* context;
    KtlsContextOptions options = Fixture_ClientOptions(0);
    CHECK_EQ(KtlsNative_Initialize("99", &info), ENOSYS);
    CHECK(strcmp((const char*)info.soName, "libssl.so.99") == 0);
    CHECK(strcmp((const char*)info.missingSymbol, "ERR_clear_error") == 0);
    CHECK_EQ(info.fromProcess, 0);
    CHECK_EQ(KtlsNative_ContextCreate(&options, &context, &result), ENOSYS);
    CHECK_EQ(KtlsNative_Initialize(NULL, &info), ENOSYS);
}

static void Another_major_version_is_rejected(void)
{
    KtlsLibraryInfo info;
    CHECK_EQ(KtlsNative_Initialize("98", &info), ENOSYS);
    CHECK_EQ(info.missingSymbol[0], 0);
    CHECK_EQ(info.openSslVersion, 0x40000000);
}

static void Libcrypto_is_found_through_libssl(void)
{
    KtlsLibraryInfo info;
    CHECK_EQ(KtlsNative_Initialize("97", &info), 0);
    CHECK(strcmp((const char*)info.soName, "libssl.so.97") == 0);
    CHECK_EQ(info.capabilities & KTLS_CAP_KTLS, 0); /* its BIO_new returns NULL */
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
    {"library: nothing works before Initialize", Nothing_works_before_initialize, false},
    {"library: the libssl of the process is used", Initialize_uses_the_library_of_the_process, false},
    {"library: Initialize repeats its first result", Initialize_repeats_its_first_result, false},
    {"library: Initialize from many threads", Initialize_from_many_threads, false},
    {"library: a missing override is ignored", A_missing_override_is_ignored, false},
    {"library: an overlong override is ignored", An_overlong_override_is_ignored, false},
    {"library: a missing symbol is reported", A_library_that_lacks_symbols_is_rejected, false},
    {"library: another major version is rejected", Another_major_version_is_rejected, false},
    {"library: libcrypto is found through libssl", Libcrypto_is_found_through_libssl, false},
    {"library: error text is cut to capacity", Error_text_is_cut_to_capacity, false},
    {NULL, NULL, false}};

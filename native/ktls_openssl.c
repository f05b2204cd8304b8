/* SPDX-License-Identifier: MIT */
#include "ktls_openssl.h"
#include "ktls_export.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(void*) == sizeof(void (*)(void)), "dlsym's result must fit a function pointer");
_Static_assert(sizeof(void*) == 8, "64-bit targets only: error codes and options are passed as long");

#define SSL_LIBRARY "libssl.so"
#define CRYPTO_LIBRARY "libcrypto.so"
#define OLDEST_MAJOR 3
#define NEWEST_MAJOR 4

/* The images of libssl in a process: one, or few if other native code brings its own. */
#define MAX_IMAGES 8

typedef struct Images
{
    char* paths[MAX_IMAGES];
    int count;
} Images;

typedef struct Symbol
{
    const char* name;
    size_t offset;
    bool required;
} Symbol;

#define REQUIRED_ROW(type, name, parameters) {#name, offsetof(KtlsOpenSsl, name), true},
#define OPTIONAL_ROW(type, name, parameters) {#name, offsetof(KtlsOpenSsl, name), false},
static const Symbol s_rows[] = {KTLS_OPENSSL_SYMBOLS(REQUIRED_ROW, OPTIONAL_ROW)};

/* Written once, under s_lock. s_published makes the table visible to other threads. */
static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static bool s_bindAttempted;
static int32_t s_bindError;
static KtlsLibraryInfo s_info;
static KtlsOpenSsl s_table;
static _Atomic(const KtlsOpenSsl*) s_published;

const KtlsOpenSsl* KtlsOpenSsl_Get(void)
{
    return atomic_load_explicit(&s_published, memory_order_acquire);
}

void KtlsOpenSsl_ClearErrors(const KtlsOpenSsl* api)
{
    /* Peeking is much cheaper than clearing, and the queue is almost always empty. */
    if (api->ERR_peek_error() != 0)
    {
        api->ERR_clear_error();
    }
}

bool KtlsOpenSsl_HasClientHelloCallback(const KtlsOpenSsl* api)
{
    return api->SSL_CTX_set_client_hello_cb != NULL && api->SSL_client_hello_get0_ext != NULL &&
           api->SSL_client_hello_get0_legacy_version != NULL;
}

bool KtlsOpenSsl_HasPostHandshakeAuth(const KtlsOpenSsl* api)
{
    return api->SSL_CTX_set_post_handshake_auth != NULL && api->SSL_verify_client_post_handshake != NULL &&
           api->SSL_set_num_tickets != NULL;
}

static void CopyText(uint8_t* target, size_t capacity, const char* text)
{
    (void)snprintf((char*)target, capacity, "%s", text);
}

static const char* GetFileName(const char* path)
{
    const char* slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The loader is locked during this callback, so the images are opened later. */
static int AddImage(struct dl_phdr_info* image, size_t size, void* argument)
{
    (void)size;
    Images* images = argument;
    const char* path = image->dlpi_name;
    if (path != NULL && strncmp(GetFileName(path), SSL_LIBRARY, sizeof(SSL_LIBRARY) - 1) == 0 &&
        images->count < MAX_IMAGES)
    {
        char* copy = strdup(path);
        if (copy != NULL)
        {
            images->paths[images->count++] = copy;
        }
    }
    return 0;
}

static void FreeImages(Images* images)
{
    for (int i = 0; i < images->count; i++)
    {
        free(images->paths[i]);
    }
}

/* dlsym on libssl also searches its dependencies, which normally include libcrypto. Otherwise the libcrypto with the
 * same suffix is searched. */
static void* FindSymbol(void* library, const char* soName, const char* name)
{
    void* symbol = dlsym(library, name);
    if (symbol == NULL)
    {
        char crypto[80];
        const int length = snprintf(crypto, sizeof(crypto), CRYPTO_LIBRARY "%s", soName + sizeof(SSL_LIBRARY) - 1);
        const bool fits = length > 0 && (size_t)length < sizeof(crypto);
        void* cryptoLibrary = fits ? dlopen(crypto, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (cryptoLibrary != NULL)
        {
            symbol = dlsym(cryptoLibrary, name);
            (void)dlclose(cryptoLibrary); /* drops the reference of this dlopen */
        }
    }
    return symbol;
}

/* Returns 0 if the image has no such function, as before OpenSSL 1.1.0. */
static unsigned long GetVersion(void* library, const char* path)
{
    void* symbol = FindSymbol(library, GetFileName(path), "OpenSSL_version_num");
    unsigned long (*getVersion)(void);
    memcpy(&getVersion, &symbol, sizeof(getVersion));
    return getVersion != NULL ? getVersion() : 0;
}

/* Opens the image that .NET has loaded, because .NET passes SSL_CTX and EVP_PKEY objects of that image. Other native
 * code of the process may have loaded another version. Of several images of one version .NET has the first, because the
 * dynamic loader finds a loaded library by its name. If none has the version, the first image is opened. */
static void* OpenImage(const Images* images, unsigned long runtimeVersion, KtlsLibraryInfo* info)
{
    void* chosen = NULL;
    for (int i = 0; i < images->count; i++)
    {
        void* library = dlopen(images->paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library == NULL)
        {
            continue;
        }
        unsigned long version = GetVersion(library, images->paths[i]);
        bool isOfRuntime = version == runtimeVersion;
        if (chosen != NULL && !isOfRuntime)
        {
            (void)dlclose(library); /* drops the reference of this dlopen */
            continue;
        }
        if (chosen != NULL)
        {
            (void)dlclose(chosen);
        }
        chosen = library;
        info->openSslVersion = (int64_t)version;
        CopyText(info->soName, sizeof(info->soName), GetFileName(images->paths[i]));
        if (isOfRuntime)
        {
            break;
        }
    }
    return chosen;
}

static void* OpenLibrary(unsigned long runtimeVersion, KtlsLibraryInfo* info)
{
    Images images = {{NULL}, 0};
    (void)dl_iterate_phdr(AddImage, &images);
    void* library = OpenImage(&images, runtimeVersion, info);
    FreeImages(&images);
    return library;
}

static bool FillTable(void* library, KtlsOpenSsl* table, KtlsLibraryInfo* info)
{
    for (size_t i = 0; i < sizeof(s_rows) / sizeof(s_rows[0]); i++)
    {
        void* symbol = FindSymbol(library, (const char*)info->soName, s_rows[i].name);
        if (symbol == NULL && s_rows[i].required)
        {
            CopyText(info->missingSymbol, sizeof(info->missingSymbol), s_rows[i].name);
            return false;
        }
        memcpy((char*)table + s_rows[i].offset, &symbol, sizeof(symbol));
    }
    return true;
}

/* Detects an OpenSSL that was built with enable-ktls. Without it, BIO_CTRL_GET_KTLS_* on a socket BIO return 0 for any
 * flags. BIO_FLAGS 0x1000 to 0x4000 are reserved for kTLS (openssl/bio.h). No descriptor is involved. */
static bool HasKtls(const KtlsOpenSsl* api)
{
    const int reservedForKtls = 0x7000;
    BIO* bio = api->BIO_new(api->BIO_s_socket());
    if (bio == NULL)
    {
        return false;
    }

    api->BIO_set_flags(bio, reservedForKtls);
    bool has = api->BIO_ctrl(bio, BIO_CTRL_GET_KTLS_SEND, 0, NULL) > 0 &&
               api->BIO_ctrl(bio, BIO_CTRL_GET_KTLS_RECV, 0, NULL) > 0;
    api->BIO_clear_flags(bio, reservedForKtls);
    (void)api->BIO_free(bio);
    return has;
}

/* The library stays open, because unloading OpenSSL is not safe (exit handlers, thread-local data). */
static int32_t Bind(unsigned long runtimeVersion, KtlsOpenSsl* table, KtlsLibraryInfo* info)
{
    void* library = OpenLibrary(runtimeVersion, info);
    if (library == NULL)
    {
        return ENOENT;
    }
    void* getText = FindSymbol(library, (const char*)info->soName, "OpenSSL_version");
    if (getText != NULL)
    {
        memcpy(&table->OpenSSL_version, &getText, sizeof(getText));
        CopyText(info->versionText, sizeof(info->versionText), table->OpenSSL_version(0));
    }
    /* A function may have another signature in a major version that is unknown here. */
    table->version = (unsigned long)info->openSslVersion;
    if (table->version >> 28 < OLDEST_MAJOR || table->version >> 28 > NEWEST_MAJOR)
    {
        return ENOTSUP;
    }
    if (!FillTable(library, table, info))
    {
        return ENOSYS;
    }

    table->connectionIndex = table->CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL, 0, NULL, NULL, NULL, NULL);
    if (table->connectionIndex < 0)
    {
        KtlsOpenSsl_ClearErrors(table);
        return ENOMEM;
    }
    info->hasKtls = HasKtls(table) ? 1 : 0;
    KtlsOpenSsl_ClearErrors(table);
    return 0;
}

int32_t KtlsNative_Initialize(int64_t runtimeVersion, KtlsLibraryInfo* info)
{
    if (info == NULL)
    {
        return EINVAL;
    }

    (void)pthread_mutex_lock(&s_lock);
    if (!s_bindAttempted)
    {
        s_bindError = Bind((unsigned long)runtimeVersion, &s_table, &s_info);
        s_bindAttempted = true;
        if (s_bindError == 0)
        {
            atomic_store_explicit(&s_published, &s_table, memory_order_release);
        }
    }
    *info = s_info;
    int32_t error = s_bindError;
    (void)pthread_mutex_unlock(&s_lock);
    return error;
}

int32_t KtlsNative_ErrorText(int64_t openSslError, uint8_t* text, int32_t capacity)
{
    if (text == NULL || capacity < 1 || capacity > 4096)
    {
        return EINVAL;
    }
    text[0] = '\0';
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    api->ERR_error_string_n((unsigned long)openSslError, (char*)text, (size_t)capacity);
    return 0;
}

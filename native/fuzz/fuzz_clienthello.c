/* SPDX-License-Identifier: MIT
 *
 * The extensions that a paused server copies from a ClientHello: server name and versions. An input is a list of
 * extensions.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum
{
    SERVER_NAME = 0,
    ALPN = 16,
    SUPPORTED_VERSIONS = 43,
    EXTENSION_MAX = 2000,
    EXTENSIONS_MAX = 6
};

typedef struct Extension
{
    unsigned int type;
    uint8_t* body;
    size_t length;
} Extension;

typedef struct Extensions
{
    Extension all[EXTENSIONS_MAX];
    size_t count;
} Extensions;

static const Extension* Find(const Extensions* extensions, unsigned int type)
{
    for (size_t i = 0; i < extensions->count; i++)
    {
        if (extensions->all[i].type == type)
        {
            return &extensions->all[i];
        }
    }
    return NULL;
}

/* Prepends the lengths that the type requires, because random lengths are almost never right. */
static void Frame(Extension* extension)
{
    size_t head = extension->type == SERVER_NAME ? 5 : extension->type == ALPN ? 2 : 1;
    size_t length = extension->length;
    uint8_t* framed = malloc(head + length);
    CHECK(framed != NULL);
    for (size_t i = 0; i < head; i++)
    {
        framed[i] = (uint8_t)(length >> (8 * (head - 1 - i) % 16));
    }
    if (extension->type == SERVER_NAME)
    {
        framed[0] = (uint8_t)((length + 3) >> 8);
        framed[1] = (uint8_t)(length + 3);
        framed[2] = 0;
    }
    memcpy(framed + head, extension->body, length);
    free(extension->body);
    extension->body = framed;
    extension->length += head;
}

static Extensions Take(Input* input)
{
    static const unsigned int s_types[] = {SERVER_NAME, ALPN, SUPPORTED_VERSIONS, 0x3333};
    Extensions extensions = {.count = 0};
    while (input->left > 0 && extensions.count < EXTENSIONS_MAX)
    {
        uint8_t choice = Input_TakeByte(input) % 8;
        Extension extension = {.type = s_types[choice % 4]};
        extension.body = Input_TakeBlock(input, EXTENSION_MAX, &extension.length);
        if (Find(&extensions, extension.type) != NULL)
        {
            free(extension.body); /* OpenSSL rejects duplicate extensions */
            continue;
        }
        if (choice >= 4)
        {
            Frame(&extension);
        }
        extensions.all[extensions.count++] = extension;
    }
    return extensions;
}

static int32_t LengthOf(const Extension* extension, size_t capacity)
{
    return extension == NULL ? -1 : extension->length <= capacity ? (int32_t)extension->length : 0;
}

static void CheckHello(const Extensions* extensions, KtlsConnection* server)
{
    KtlsClientHello hello;
    CHECK_EQ(KtlsNative_GetClientHello(server, &hello), 0);
    const Extension* name = Find(extensions, SERVER_NAME);
    const Extension* versions = Find(extensions, SUPPORTED_VERSIONS);
    CHECK_EQ(hello.legacyVersion, TLS1_2_VERSION);
    CHECK_EQ(hello.serverNameLength, name == NULL ? 0 : LengthOf(name, sizeof(hello.serverName)));
    CHECK(hello.serverNameLength <= 0 || memcmp(hello.serverName, name->body, (size_t)hello.serverNameLength) == 0);
    CHECK_EQ(hello.versionsLength, LengthOf(versions, sizeof(hello.versions)));
    CHECK(hello.versionsLength <= 0 || memcmp(hello.versions, versions->body, (size_t)hello.versionsLength) == 0);
}

/* Continues with a context that has a certificate, or aborts with an alert. */
static void Decide(KtlsConnection* server, int socket, uint8_t choice)
{
    static KtlsContext* s_serving;
    KtlsResult result;
    if (choice >= 128)
    {
        int32_t error = KtlsNative_AbortHandshake(server, socket, choice - 128, &result);
        CHECK(error == EINVAL || (error == 0 && result.status == KTLS_STATUS_TLS_ERROR));
        return;
    }
    if (s_serving == NULL)
    {
        static const uint8_t s_alpn[] = "\x02h2\x08http/1.1";
        KtlsContextOptions options = Fixture_ServerOptions(0);
        options.alpn = s_alpn;
        options.alpnLength = sizeof(s_alpn) - 1;
        s_serving = Fixture_CreateContext(&options);
    }
    CHECK_EQ(KtlsNative_SwitchContext(server, s_serving, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_OK);
    CHECK_EQ(KtlsNative_Handshake(server, socket, NULL, 0, &result), 0);
    CHECK(result.status == KTLS_STATUS_WANT_READ || result.status == KTLS_STATUS_TLS_ERROR);
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(server, &info), 0);
    CHECK(info.alpnLength == 0 || info.alpnLength == 2 || info.alpnLength == 8);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static KtlsContext* s_pausing;
    if (s_pausing == NULL)
    {
        KtlsContextOptions options = Fixture_PausingOptions();
        s_pausing = Fixture_CreateContext(&options);
    }
    Input input = {data, size};
    uint8_t choice = Input_TakeByte(&input);
    Extensions extensions = Take(&input);
    Hello hello;
    Hello_Begin(&hello);
    for (size_t i = 0; i < extensions.count; i++)
    {
        Hello_AddExtension(&hello, extensions.all[i].type, extensions.all[i].body, extensions.all[i].length);
    }
    Hello_End(&hello);

    KtlsPair pair = Fuzz_Connect();
    KtlsConnection* server = Fixture_CreateConnection(s_pausing, pair.server, NULL);
    Fuzz_Send(pair.client, hello.record, hello.length);
    KtlsResult result;
    CHECK_EQ(KtlsNative_Handshake(server, pair.server, NULL, 0, &result), 0);
    CHECK_EQ(result.status, KTLS_STATUS_WANT_CLIENT_HELLO);
    CheckHello(&extensions, server);
    Decide(server, pair.server, choice);
    KtlsNative_ConnectionFree(server);
    Fuzz_Disconnect(&pair);
    for (size_t i = 0; i < extensions.count; i++)
    {
        free(extensions.all[i].body);
    }
    return 0;
}

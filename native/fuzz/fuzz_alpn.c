/* SPDX-License-Identifier: MIT
 *
 * The selection of the application protocol by a server (RFC 7301). An input consists of the lists of server and
 * client. A second implementation must make the same selection.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum
{
    ALPN = 16,
    LIST_MAX = 600
};

static bool IsList(const uint8_t* list, size_t length)
{
    size_t at = 0;
    while (at < length && list[at] != 0)
    {
        at += 1U + list[at];
    }
    return at == length;
}

/* Finds a name, preceded by its length, in the list. Returns NULL if it is absent. */
static const uint8_t* Find(const uint8_t* list, size_t length, const uint8_t* name)
{
    for (const uint8_t* at = list; at < list + length; at += 1 + *at)
    {
        if (memcmp(at, name, 1U + *name < (size_t)(list + length - at) ? 1U + *name : (size_t)(list + length - at)) ==
            0)
        {
            return at;
        }
    }
    return NULL;
}

/* Returns the first name of the server that the client offers. */
static const uint8_t* Choose(const uint8_t* ours, size_t ourLength, const uint8_t* theirs, size_t theirLength)
{
    for (const uint8_t* at = ours; at < ours + ourLength; at += 1 + *at)
    {
        if (Find(theirs, theirLength, at) != NULL)
        {
            return at;
        }
    }
    return NULL;
}

static KtlsContext* Create(const uint8_t* list, size_t length)
{
    KtlsContextOptions options = Fixture_ServerOptions(0);
    options.certificateCount = 1; /* saves decoding */
    options.alpn = list;
    options.alpnLength = (int32_t)length;
    KtlsContext* context = NULL;
    KtlsResult result;
    int32_t error = KtlsNative_ContextCreate(&options, &context, &result);
    CHECK_EQ(error, IsList(list, length) ? 0 : EINVAL);
    CHECK(error != 0 || result.status == KTLS_STATUS_OK);
    return context;
}

static void Offer(
    KtlsContext* context, const uint8_t* ours, size_t ourLength, const uint8_t* theirs, size_t theirLength)
{
    uint8_t body[2 + LIST_MAX] = {(uint8_t)(theirLength >> 8), (uint8_t)theirLength};
    memcpy(body + 2, theirs, theirLength);
    Hello hello;
    Hello_Begin(&hello);
    Hello_AddExtension(&hello, ALPN, body, 2 + theirLength);
    Hello_End(&hello);

    KtlsPair pair = Fuzz_Connect();
    KtlsConnection* server = Fixture_CreateConnection(context, pair.server, NULL);
    Fuzz_Send(pair.client, hello.record, hello.length);
    KtlsResult result;
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_Handshake(server, pair.server, NULL, 0, &result), 0);
    CHECK_EQ(KtlsNative_GetConnectionInfo(server, &info), 0);
    bool rejected = theirLength == 0 || !IsList(theirs, theirLength);
    const uint8_t* chosen = rejected ? NULL : Choose(ours, ourLength, theirs, theirLength);
    if (rejected || (chosen == NULL && ourLength > 0))
    {
        CHECK_EQ(result.status, KTLS_STATUS_TLS_ERROR);
    }
    else if (chosen == NULL)
    {
        CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
        CHECK_EQ(info.alpnLength, 0);
    }
    else
    {
        CHECK_EQ(result.status, KTLS_STATUS_WANT_READ);
        CHECK_EQ(info.alpnLength, *chosen);
        CHECK(memcmp(info.alpn, chosen + 1, *chosen) == 0);
    }
    KtlsNative_ConnectionFree(server);
    Fuzz_Disconnect(&pair);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    Input input = {data, size};
    size_t ourLength;
    size_t theirLength;
    uint8_t* ours = Input_TakeBlock(&input, LIST_MAX, &ourLength);
    uint8_t* theirs = Input_TakeBlock(&input, LIST_MAX, &theirLength);
    KtlsContext* context = Create(ours, ourLength);
    if (context != NULL)
    {
        Offer(context, ours, ourLength, theirs, theirLength);
    }
    KtlsNative_ContextFree(context);
    free(ours);
    free(theirs);
    return 0;
}

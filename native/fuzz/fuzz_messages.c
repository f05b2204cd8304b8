/* SPDX-License-Identifier: MIT
 *
 * The message callback (ktls_messages.c). An input is a list of calls of the callback on a connection in one of its
 * states. A second implementation must produce the same result. The target gets the callback from a symbol table in
 * which it has replaced one function.
 */
#include "input.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_messages.h"
#include "ktls_openssl.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum
{
    MESSAGE_MAX = 300,
    KEY_UPDATE = 24,
    FINISHED = 20,
    HEADER = 256, /* SSL3_RT_HEADER */
    KEY_UPDATE_LENGTH = 5
};

static KtlsMessageCallback s_callback;

static void Capture(SSL* ssl, KtlsMessageCallback callback)
{
    (void)ssl;
    s_callback = callback;
}

static bool IsKtlsOptionSet(const KtlsConnection* connection)
{
    return (KtlsOpenSsl_Get()->SSL_get_options(connection->ssl) & SSL_OP_ENABLE_KTLS) != 0;
}

/* Returns the value of SSL_OP_ENABLE_KTLS that is expected after a message that precedes a key change. It depends on
 * the message only if the flags limit kernel TLS to one direction. */
static bool GetExpectedKtlsOption(const KtlsConnection* connection, bool written, int contentType, bool before)
{
    int32_t flags = connection->context->flags;
    bool send = (flags & KTLS_FLAG_RECEIVE_ONLY) == 0;
    bool receive = (flags & KTLS_FLAG_SEND_ONLY) == 0;
    if ((flags & KTLS_FLAG_ENABLE_KTLS) == 0 || (send && receive))
    {
        return before;
    }
    bool isTls13 = KtlsOpenSsl_Get()->SSL_version(connection->ssl) == TLS1_3_VERSION;
    return written && (isTls13 || contentType == SSL3_RT_CHANGE_CIPHER_SPEC) ? send : receive;
}

static void CallCallback(KtlsConnection* connection, Input* input)
{
    static const int s_types[] = {SSL3_RT_HANDSHAKE, SSL3_RT_CHANGE_CIPHER_SPEC, SSL3_RT_ALERT, HEADER};
    uint8_t choice = Input_TakeByte(input);
    int written = choice & 1;
    int contentType = s_types[choice >> 1 & 3];
    size_t length;
    uint8_t* message = Input_TakeBlock(input, MESSAGE_MAX, &length);
    uint8_t* expected = malloc(length > 0 ? length : 1);
    CHECK(expected != NULL);
    memcpy(expected, message, length);

    bool isHandshake = contentType == SSL3_RT_HANDSHAKE && length > 0;
    bool isCipherSpec = contentType == SSL3_RT_CHANGE_CIPHER_SPEC;
    bool isCounted = isHandshake && written == 0 && connection->established;
    bool requestsUpdate = isCounted && length == KEY_UPDATE_LENGTH && message[0] == KEY_UPDATE && message[4] == 1;
    bool changesKey = isCipherSpec || (isHandshake && (message[0] == FINISHED || message[0] == KEY_UPDATE));
    int32_t messages = connection->messageCount;
    bool wasRequested = connection->keyUpdateRequested;
    bool before = IsKtlsOptionSet(connection);
    bool after = changesKey && !connection->inSockmap
                     ? GetExpectedKtlsOption(connection, written != 0, contentType, before)
                     : before;
    if (requestsUpdate)
    {
        expected[4] = 0; /* OpenSSL must not respond */
    }

    s_callback(written, TLS1_3_VERSION, contentType, message, length, connection->ssl, NULL);

    CHECK_EQ(connection->messageCount, messages + isCounted);
    CHECK_EQ(connection->keyUpdateRequested, wasRequested || requestsUpdate);
    CHECK(memcmp(message, expected, length) == 0);
    CHECK_EQ(IsKtlsOptionSet(connection), after);
    free(expected);
    free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static const int32_t s_flags[] = {
        0, KTLS_FLAG_ENABLE_KTLS, KTLS_FLAG_ENABLE_KTLS | KTLS_FLAG_SEND_ONLY,
        KTLS_FLAG_ENABLE_KTLS | KTLS_FLAG_RECEIVE_ONLY};
    static KtlsConnection* s_ends[8][2];
    Input input = {data, size};
    uint8_t choice = Input_TakeByte(&input);
    KtlsConnection** ends = s_ends[choice % 8];
    if (ends[0] == NULL)
    {
        int32_t version = choice % 2 == 0 ? TLS1_3_VERSION : TLS1_2_VERSION;
        Fuzz_Establish(version, s_flags[choice / 2 % 4], &ends[0], &ends[1]);
    }
    KtlsConnection* connection = ends[choice >> 3 & 1];
    KtlsOpenSsl table = *KtlsOpenSsl_Get();
    table.SSL_set_msg_callback = Capture;
    connection->messageCount = 0;
    connection->keyUpdateRequested = false;
    connection->established = (choice & 16) == 0;
    connection->inSockmap = (choice & 32) != 0;
    KtlsMessages_SetCallback(&table, connection);
    while (input.left > 0)
    {
        CallCallback(connection, &input);
    }
    return 0;
}

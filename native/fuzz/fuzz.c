/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int* count, char*** arguments);

/* Aborts, so that libFuzzer reports a crash and keeps the input. */
void Test_Fail(const char* file, int line, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "%s:%d: ", file, line);
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

int LLVMFuzzerInitialize(int* count, char*** arguments)
{
    (void)count;
    (void)arguments;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)Fixture_Create();
    Fixture_Initialize();
    return 0;
}

uint8_t Input_TakeByte(Input* input)
{
    if (input->left == 0)
    {
        return 0;
    }
    input->left--;
    return *input->at++;
}

uint8_t* Input_TakeBlock(Input* input, size_t most, size_t* length)
{
    size_t wanted = (size_t)Input_TakeByte(input) << 8;
    wanted |= Input_TakeByte(input);
    wanted = wanted < most ? wanted : most;
    *length = wanted < input->left ? wanted : input->left;
    uint8_t* block = malloc(*length > 0 ? *length : 1);
    CHECK(block != NULL);
    if (*length > 0)
    {
        memcpy(block, input->at, *length);
    }
    input->at += *length;
    input->left -= *length;
    return block;
}

KtlsPair Fuzz_Connect(void)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    KtlsPair pair = {ends[0], ends[1]};
    return pair;
}

void Fuzz_Disconnect(const KtlsPair* pair)
{
    (void)close(pair->client);
    (void)close(pair->server);
}

void Fuzz_Establish(int32_t version, int32_t flags, KtlsConnection** client, KtlsConnection** server)
{
    Link link = Link_Establish(version, flags);
    *client = link.client;
    *server = link.server;
}

void Fuzz_Send(int socket, const uint8_t* data, size_t length)
{
    CHECK_EQ(send(socket, data, length, MSG_NOSIGNAL), (int64_t)length);
}

/* The offsets of the length fields, which depend on the contents of the ClientHello. */
enum
{
    RECORD_LENGTH = 3,
    MESSAGE_LENGTH = 6,
    BODY = 9
};

static size_t s_extensions; /* offset of the length of all extensions */

static void Append(Hello* hello, const void* bytes, size_t length)
{
    CHECK(hello->length + length <= sizeof(hello->record));
    memcpy(hello->record + hello->length, bytes, length);
    hello->length += length;
}

static void Put(Hello* hello, size_t at, size_t width, size_t value)
{
    for (size_t i = 0; i < width; i++)
    {
        hello->record[at + i] = (uint8_t)(value >> (8 * (width - 1 - i)));
    }
}

void Hello_Begin(Hello* hello)
{
    /* TLS 1.2; a random of zeros; no session; ECDHE-ECDSA-AES128-GCM-SHA256 and TLS_AES_128_GCM_SHA256; no compression.
     */
    static const uint8_t s_version[] = {3, 3};
    static const uint8_t s_random[32] = {0};
    static const uint8_t s_rest[] = {0, 0, 4, 0xC0, 0x2B, 0x13, 0x01, 1, 0, 0, 0};
    static const uint8_t s_heads[] = {22, 3, 1, 0, 0, 1, 0, 0, 0};
    static const uint8_t s_groups[] = {0, 2, 0, 23};          /* P-256 */
    static const uint8_t s_signatures[] = {0, 4, 4, 3, 8, 7}; /* ECDSA with SHA-256, Ed25519 */
    hello->length = 0;
    Append(hello, s_heads, sizeof(s_heads));
    Append(hello, s_version, sizeof(s_version));
    Append(hello, s_random, sizeof(s_random));
    Append(hello, s_rest, sizeof(s_rest));
    s_extensions = hello->length - 2;
    Hello_AddExtension(hello, 10, s_groups, sizeof(s_groups));
    Hello_AddExtension(hello, 13, s_signatures, sizeof(s_signatures));
}

void Hello_AddExtension(Hello* hello, unsigned int type, const uint8_t* body, size_t length)
{
    size_t at = hello->length;
    uint8_t head[4] = {0};
    Append(hello, head, sizeof(head));
    Put(hello, at, 2, type);
    Put(hello, at + 2, 2, length);
    Append(hello, body, length);
}

void Hello_End(Hello* hello)
{
    Put(hello, RECORD_LENGTH, 2, hello->length - (RECORD_LENGTH + 2));
    Put(hello, MESSAGE_LENGTH, 3, hello->length - BODY);
    Put(hello, s_extensions, 2, hello->length - s_extensions - 2);
}

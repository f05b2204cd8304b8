/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

enum
{
    CAPACITY = 4096,
    HEADER = 4, /* tag, 0x82, length */
    MAX_LENGTH = 65535
};

/* Writes a tag and a length of two bytes in front of the content, and returns its new start. */
static uint8_t* Wrap(uint8_t* content, const uint8_t* end, uint8_t tag)
{
    size_t length = (size_t)(end - content);
    uint8_t* start = content - HEADER;
    start[0] = tag;
    start[1] = 0x82;
    start[2] = (uint8_t)(length >> 8);
    start[3] = (uint8_t)length;
    return start;
}

/* Encodes a session of TLS 1.2 with the leaf, at the end of the buffer. Returns its start. */
static uint8_t* EncodeSession(uint8_t* buffer)
{
    static const uint8_t s_fields[] = {2, 1, 1, 2, 2, 3, 3, 4, 2, 0xC0, 0x2F, 4, 0, 4, 0};
    uint8_t* end = buffer + CAPACITY;
    int length = i2d_X509(g_fixture.leaf, NULL);
    CHECK(length > 255 && length < CAPACITY - 100);
    uint8_t* certificate = end - length;
    uint8_t* next = certificate;
    CHECK_EQ(i2d_X509(g_fixture.leaf, &next), length);
    uint8_t* start = Wrap(certificate, end, 0xA3) - sizeof(s_fields);
    memcpy(start, s_fields, sizeof(s_fields));
    return Wrap(start, end, 0x30);
}

static void It_has_the_certificate_and_outlives_its_context(void)
{
    uint8_t buffer[CAPACITY];
    uint8_t* session = EncodeSession(buffer);
    int32_t length = (int32_t)(buffer + CAPACITY - session);
    Fixture_Initialize();
    SSL_CTX* context = SSL_CTX_new(TLS_method());
    intptr_t ssl = 0;
    CHECK_EQ(KtlsNative_BystanderCreate((intptr_t)context, session, length, &ssl), 0);
    SSL_CTX_free(context);
    memset(buffer, 0, sizeof(buffer));

    CHECK_EQ(KtlsNative_BystanderReference(ssl), 0);
    SSL_free((SSL*)ssl);
    CHECK(X509_cmp(SSL_get0_peer_certificate((SSL*)ssl), g_fixture.leaf) == 0);
    CHECK_EQ(SSL_get_finished((SSL*)ssl, buffer, sizeof(buffer)), 0);
    SSL_free((SSL*)ssl);
}

static void It_may_have_none(void)
{
    Fixture_Initialize();
    SSL_CTX* context = SSL_CTX_new(TLS_method());
    intptr_t ssl = 0;
    CHECK_EQ(KtlsNative_BystanderCreate((intptr_t)context, NULL, 0, &ssl), 0);
    CHECK(SSL_get0_peer_certificate((SSL*)ssl) == NULL);
    SSL_free((SSL*)ssl);
    SSL_CTX_free(context);
}

/* Any other session is refused, and leaves neither a bystander nor an error of OpenSSL. */
static void Arguments(void)
{
    static uint8_t s_long[MAX_LENGTH + 1];
    uint8_t buffer[CAPACITY];
    uint8_t* session = EncodeSession(buffer);
    int32_t length = (int32_t)(buffer + CAPACITY - session);
    intptr_t ssl = 1;
    SSL_CTX* context = SSL_CTX_new(TLS_method());
    intptr_t handle = (intptr_t)context;
    CHECK_EQ(KtlsNative_BystanderCreate(handle, session, length, &ssl), ENOSYS);
    CHECK_EQ(ssl, 0);
    CHECK_EQ(KtlsNative_BystanderReference(handle), ENOSYS);
    Fixture_Initialize();

    CHECK_EQ(KtlsNative_BystanderCreate(handle, session, length, NULL), EINVAL);
    CHECK_EQ(KtlsNative_BystanderCreate(0, session, length, &ssl), EINVAL);
    CHECK_EQ(KtlsNative_BystanderCreate(handle, NULL, length, &ssl), EINVAL);
    CHECK_EQ(KtlsNative_BystanderCreate(handle, session, 0, &ssl), EINVAL);
    CHECK_EQ(KtlsNative_BystanderCreate(handle, session, -1, &ssl), EINVAL);
    CHECK_EQ(KtlsNative_BystanderCreate(handle, s_long, sizeof(s_long), &ssl), EINVAL);
    CHECK_EQ(KtlsNative_BystanderCreate(handle, s_long, MAX_LENGTH, &ssl), EINVAL);
    CHECK_EQ(KtlsNative_BystanderCreate(handle, session, length - 1, &ssl), EINVAL);
    memmove(session - 1, session, (size_t)length);
    CHECK_EQ(KtlsNative_BystanderCreate(handle, session - 1, length + 1, &ssl), EINVAL); /* a byte too many */
    CHECK_EQ(KtlsNative_BystanderReference(0), EINVAL);
    CHECK_EQ(ssl, 0);
    CHECK_EQ(ERR_peek_error(), 0);
    SSL_CTX_free(context);
}

const Test g_bystanderTests[] = {
    {"bystander: it has the certificate and outlives its context",
     .run = It_has_the_certificate_and_outlives_its_context},
    {"bystander: it may have none", .run = It_may_have_none},
    {"bystander: arguments", .run = Arguments},
    {.name = NULL}};

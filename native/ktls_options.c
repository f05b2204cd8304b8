/* SPDX-License-Identifier: MIT */
#include "ktls_options.h"
#include "ktls_openssl.h"

#define SERVER_FLAGS KTLS_FLAG_PAUSE_AT_CLIENT_HELLO
#define CLIENT_FLAGS (KTLS_FLAG_PAUSE_AT_CERTIFICATE | KTLS_FLAG_CLIENT_SESSIONS | KTLS_FLAG_POST_HANDSHAKE_AUTH)
#define SHARED_FLAGS                                                                                        \
    (KTLS_FLAG_ENABLE_KTLS | KTLS_FLAG_NO_TICKETS | KTLS_FLAG_ALLOW_RENEGOTIATION | KTLS_FLAG_VERIFY_PEER | \
     KTLS_FLAG_REQUIRE_PEER | KTLS_FLAG_RELEASE_BUFFERS | KTLS_FLAG_SEND_ONLY | KTLS_FLAG_RECEIVE_ONLY)

bool KtlsOptions_IsAlpnWellFormed(const uint8_t* alpn, int32_t length)
{
    int32_t at = 0;
    while (at < length)
    {
        if (alpn[at] == 0)
        {
            return false;
        }
        at += 1 + alpn[at];
    }
    return at == length;
}

static bool IsVersionKnown(int32_t version)
{
    return version == 0 || (version >= 0x0301 && version <= TLS1_3_VERSION);
}

static bool AreBlobsWellFormed(const KtlsBlob* blobs, int32_t count)
{
    if (count < 0 || (count > 0 && blobs == NULL))
    {
        return false;
    }
    for (int32_t i = 0; i < count; i++)
    {
        if (blobs[i].data == NULL || blobs[i].length <= 0 || blobs[i].reserved != 0)
        {
            return false;
        }
    }
    return true;
}

bool KtlsOptions_IsChainWellFormed(const KtlsBlob* certificates, int32_t count, intptr_t privateKey)
{
    return AreBlobsWellFormed(certificates, count) && (count > 0) == (privateKey != 0);
}

/* SEND_ONLY and RECEIVE_ONLY exclude each other and require ENABLE_KTLS. */
static bool AreDirectionsValid(int32_t flags)
{
    int32_t directions = flags & (KTLS_FLAG_SEND_ONLY | KTLS_FLAG_RECEIVE_ONLY);
    return directions == 0 ||
           ((flags & KTLS_FLAG_ENABLE_KTLS) != 0 && directions != (KTLS_FLAG_SEND_ONLY | KTLS_FLAG_RECEIVE_ONLY));
}

static bool AreFlagsValid(int32_t role, int32_t flags)
{
    if (!AreDirectionsValid(flags))
    {
        return false;
    }
    if (role == KTLS_ROLE_SERVER)
    {
        return (flags & ~(SHARED_FLAGS | SERVER_FLAGS)) == 0;
    }
    const int32_t sessions = KTLS_FLAG_CLIENT_SESSIONS | KTLS_FLAG_NO_TICKETS;
    /* A client without VERIFY_PEER would accept any server. It is never valid. */
    return role == KTLS_ROLE_CLIENT && (flags & ~(SHARED_FLAGS | CLIENT_FLAGS)) == 0 &&
           (flags & KTLS_FLAG_VERIFY_PEER) != 0 && (flags & sessions) != sessions;
}

static bool IsSessionIdContextValid(const KtlsContextOptions* options)
{
    return options->sessionIdContextLength >= 0 && options->sessionIdContextLength <= SSL_MAX_SID_CTX_LENGTH &&
           (options->sessionIdContextLength == 0 || options->sessionIdContext != NULL);
}

bool KtlsOptions_AreValid(const KtlsContextOptions* options)
{
    if (!AreFlagsValid(options->role, options->flags))
    {
        return false;
    }
    if (!IsVersionKnown(options->minVersion) || !IsVersionKnown(options->maxVersion) ||
        (options->minVersion != 0 && options->maxVersion != 0 && options->maxVersion < options->minVersion))
    {
        return false;
    }
    if (options->alpnLength < 0 || options->alpnLength > 65535 || (options->alpnLength > 0 && options->alpn == NULL))
    {
        return false;
    }
    if (options->role == KTLS_ROLE_CLIENT && (options->sessionIdContextLength != 0 || options->clientCaCount != 0))
    {
        return false;
    }
    return KtlsOptions_IsAlpnWellFormed(options->alpn, options->alpnLength) &&
           KtlsOptions_IsChainWellFormed(options->certificates, options->certificateCount, options->privateKey) &&
           AreBlobsWellFormed(options->clientCas, options->clientCaCount) && IsSessionIdContextValid(options);
}

/* SPDX-License-Identifier: MIT */
#include "ktls_context.h"
#include "ktls_certificate.h"
#include "ktls_connection.h"
#include "ktls_handshake.h"
#include "ktls_hello.h"
#include "ktls_messages.h"
#include "ktls_options.h"
#include "ktls_posthandshake.h"
#include "ktls_result.h"
#include "ktls_session.h"
#include "ktls_staple.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_MAGIC 0x4B746378U /* "Ktcx" */

bool KtlsContext_IsValid(const KtlsContext* context)
{
    return context != NULL && context->magic == CONTEXT_MAGIC;
}

void KtlsContext_AddReference(KtlsContext* context)
{
    (void)atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
}

void KtlsContext_Release(KtlsContext* context)
{
    if (atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) != 1)
    {
        return;
    }
    KtlsOpenSsl_Get()->SSL_CTX_free(context->context);
    free(context->alpn);
    KtlsTickets_Free(&context->tickets);
    explicit_bzero(context, sizeof(*context));
    free(context);
}

/* The server's order decides. No common name is fatal (RFC 7301, 3.2), never a silent choice. */
static int SelectAlpn(
    SSL* ssl, const unsigned char** out, unsigned char* outLength, const unsigned char* in, unsigned int inLength,
    void* argument)
{
    (void)ssl;
    const KtlsContext* context = argument;
    for (unsigned int ours = 0; ours < context->alpnLength; ours += 1U + context->alpn[ours])
    {
        unsigned int length = context->alpn[ours];
        for (unsigned int theirs = 0; theirs + length < inLength; theirs += 1U + in[theirs])
        {
            if (in[theirs] == length && memcmp(in + theirs + 1, context->alpn + ours + 1, length) == 0)
            {
                *out = context->alpn + ours + 1;
                *outLength = (unsigned char)length;
                return SSL_TLSEXT_ERR_OK;
            }
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool ApplyAlpn(const KtlsOpenSsl* api, KtlsContext* context, const KtlsContextOptions* options)
{
    if (options->alpnLength == 0)
    {
        return true;
    }
    if (!context->server)
    {
        /* The one setter that returns 0 for success. */
        return api->SSL_CTX_set_alpn_protos(context->context, options->alpn, (unsigned int)options->alpnLength) == 0;
    }
    api->SSL_CTX_set_alpn_select_cb(context->context, SelectAlpn, context);
    return true;
}

/* max_send_fragment and read_ahead keep their defaults: with any other value OpenSSL, or the leftover of a
 * read-ahead, silently keeps the kernel out. Without AUTO_RETRY (the default) SSL_read returns after each handshake
 * message: a peer that sends nothing else does not keep a thread in here. With NO_AUTO_CHAIN the chain is what the
 * options say: OpenSSL would look in each handshake for more of it, in a store that is empty. */
static void ApplyModes(const KtlsOpenSsl* api, const KtlsContext* context, int32_t flags)
{
    long mode = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN;
    if ((flags & KTLS_FLAG_RELEASE_BUFFERS) != 0)
    {
        mode |= SSL_MODE_RELEASE_BUFFERS;
    }
    (void)api->SSL_CTX_ctrl(context->context, SSL_CTRL_MODE, mode, NULL);
    (void)api->SSL_CTX_ctrl(context->context, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY, NULL);

    uint64_t set = SSL_OP_NO_COMPRESSION;
    uint64_t clear = SSL_OP_IGNORE_UNEXPECTED_EOF; /* openssl.cnf may have set it: KtlsNative_AllowTruncation decides */
    set |= context->server ? SSL_OP_CIPHER_SERVER_PREFERENCE : 0;
    set |= (flags & KTLS_FLAG_NO_TICKETS) != 0 ? SSL_OP_NO_TICKET : 0;
    /* Set or cleared, not left alone: openssl.cnf may have preset either. */
    *(KtlsMessages_AsksFirst(flags) ? &set : &clear) |= SSL_OP_ENABLE_KTLS;
    *((flags & KTLS_FLAG_ALLOW_RENEGOTIATION) != 0 ? &clear : &set) |= SSL_OP_NO_RENEGOTIATION;
    (void)api->SSL_CTX_set_options(context->context, set);
    (void)api->SSL_CTX_clear_options(context->context, clear);
}

static bool ApplySessions(const KtlsOpenSsl* api, const KtlsContext* context, const KtlsContextOptions* options)
{
    static const unsigned char s_id[] = "KernelTls";
    int32_t flags = options->flags;
    if ((flags & KTLS_FLAG_CLIENT_SESSIONS) != 0)
    {
        KtlsSession_KeepNew(api, context->context);
        return true;
    }
    if (!context->server || (flags & KTLS_FLAG_NO_TICKETS) != 0)
    {
        (void)api->SSL_CTX_ctrl(context->context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    }
    if (!context->server)
    {
        return true;
    }
    /* TLS 1.3 servers issue stateful tickets under SSL_OP_NO_TICKET; only the number turns them off. */
    if ((flags & KTLS_FLAG_NO_TICKETS) != 0 && api->SSL_CTX_set_num_tickets != NULL &&
        api->SSL_CTX_set_num_tickets(context->context, 0) != 1)
    {
        return false;
    }
    if ((flags & KTLS_FLAG_NO_TICKETS) == 0 &&
        api->SSL_CTX_set_tlsext_ticket_key_evp_cb(context->context, KtlsTickets_OnKey) != 1)
    {
        return false;
    }
    /* Without it every resumption fails once client certificates are asked for. */
    bool named = options->sessionIdContextLength > 0;
    return api->SSL_CTX_set_session_id_context(
               context->context, named ? options->sessionIdContext : s_id,
               named ? (unsigned int)options->sessionIdContextLength : sizeof(s_id) - 1) == 1;
}

/* As .NET limits versions: by options, with the bounds of openssl.cnf taken away. Bounds would limit the same, but
 * change the ClientHello: OpenSSL leaves out signature algorithms and extensions by them. */
static bool ApplyVersions(const KtlsOpenSsl* api, SSL_CTX* context, const KtlsContextOptions* options)
{
    static const struct
    {
        int32_t version;
        uint64_t without;
    } s_versions[] = {
        {SSL3_VERSION, SSL_OP_NO_SSLV3},     {TLS1_VERSION, SSL_OP_NO_TLSV1},     {TLS1_1_VERSION, SSL_OP_NO_TLSV1_1},
        {TLS1_2_VERSION, SSL_OP_NO_TLSV1_2}, {TLS1_3_VERSION, SSL_OP_NO_TLSV1_3},
    };
    if (options->minVersion == 0 && options->maxVersion == 0)
    {
        return true;
    }

    uint64_t without = 0;
    for (size_t i = 0; i < sizeof(s_versions) / sizeof(s_versions[0]); i++)
    {
        bool below = s_versions[i].version < options->minVersion;
        bool above = options->maxVersion != 0 && s_versions[i].version > options->maxVersion;
        without |= below || above ? s_versions[i].without : 0;
    }
    (void)api->SSL_CTX_set_options(context, without);
    return api->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, 0, NULL) == 1 &&
           api->SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, 0, NULL) == 1;
}

static bool ApplyCiphers(const KtlsOpenSsl* api, SSL_CTX* ctx, const KtlsContextOptions* options)
{
    return (options->cipherList == NULL || api->SSL_CTX_set_cipher_list(ctx, options->cipherList) == 1) &&
           (options->cipherSuites == NULL || api->SSL_CTX_set_ciphersuites(ctx, options->cipherSuites) == 1) &&
           (options->signatureAlgorithms == NULL ||
            api->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SIGALGS_LIST, 0, (void*)(uintptr_t)options->signatureAlgorithms) == 1);
}

static void ApplyVerification(const KtlsOpenSsl* api, KtlsContext* context, int32_t flags)
{
    int mode = context->verifiesPeer ? SSL_VERIFY_PEER : SSL_VERIFY_NONE;
    if (context->server && (flags & KTLS_FLAG_REQUIRE_PEER) != 0)
    {
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    }
    api->SSL_CTX_set_verify(context->context, mode, NULL);
    api->SSL_CTX_set_cert_verify_callback(context->context, KtlsHandshake_VerifyPeer, NULL);
}

static bool AddCertificate(const KtlsOpenSsl* api, SSL_CTX* context, const KtlsBlob* blob, bool leaf)
{
    X509* certificate = KtlsCertificate_Decode(api, blob);
    if (certificate == NULL)
    {
        return false;
    }
    /* Argument 1 makes the chain take a reference of its own, so that both cases end in X509_free. */
    bool added = leaf ? api->SSL_CTX_use_certificate(context, certificate) == 1
                      : api->SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, certificate) == 1;
    api->X509_free(certificate);
    return added;
}

static bool ApplyCertificates(const KtlsOpenSsl* api, const KtlsContext* context, const KtlsContextOptions* options)
{
    for (int32_t i = 0; i < options->certificateCount; i++)
    {
        if (!AddCertificate(api, context->context, &options->certificates[i], i == 0))
        {
            return false;
        }
    }
    return options->certificateCount == 0 ||
           (api->SSL_CTX_use_PrivateKey(context->context, (EVP_PKEY*)options->privateKey) == 1 &&
            api->SSL_CTX_check_private_key(context->context) == 1);
}

static bool ApplyClientCas(const KtlsOpenSsl* api, const KtlsContext* context, const KtlsContextOptions* options)
{
    for (int32_t i = 0; i < options->clientCaCount; i++)
    {
        X509* authority = KtlsCertificate_Decode(api, &options->clientCas[i]);
        /* Copies the subject's name. */
        bool added = authority != NULL && api->SSL_CTX_add_client_CA(context->context, authority) == 1;
        api->X509_free(authority);
        if (!added)
        {
            return false;
        }
    }
    return true;
}

static void ApplyPauses(const KtlsOpenSsl* api, const KtlsContext* context, int32_t flags)
{
    if (!context->server)
    {
        api->SSL_CTX_set_cert_cb(context->context, KtlsCertificate_OnRequest, NULL);
    }
    if (context->answersLater)
    {
        api->SSL_CTX_set_post_handshake_auth(context->context, 1);
    }
    if (context->server)
    {
        static char s_pause;
        if (KtlsHello_IsSupported(api))
        {
            bool pauses = (flags & KTLS_FLAG_PAUSE_AT_CLIENT_HELLO) != 0;
            api->SSL_CTX_set_client_hello_cb(context->context, KtlsHello_See, pauses ? &s_pause : NULL);
        }
        KtlsStaple_Allow(api, context->context);
    }
}

static void LogKeys(const SSL* ssl, const char* line)
{
    const KtlsConnection* connection = KtlsConnection_Of(KtlsOpenSsl_Get(), ssl);
    if (connection != NULL && connection->context->keyLog != NULL)
    {
        connection->context->keyLog(line);
    }
}

static bool Apply(const KtlsOpenSsl* api, KtlsContext* context, const KtlsContextOptions* options)
{
    ApplyModes(api, context, options->flags);
    ApplyVerification(api, context, options->flags);
    ApplyPauses(api, context, options->flags);
    if (options->keyLog != NULL)
    {
        api->SSL_CTX_set_keylog_callback(context->context, LogKeys);
    }
    return ApplySessions(api, context, options) && ApplyVersions(api, context->context, options) &&
           ApplyCiphers(api, context->context, options) && ApplyAlpn(api, context, options) &&
           ApplyCertificates(api, context, options) && ApplyClientCas(api, context, options);
}

static KtlsContext* Allocate(const KtlsContextOptions* options)
{
    KtlsContext* context = calloc(1, sizeof(*context));
    if (context == NULL)
    {
        return NULL;
    }
    context->server = options->role == KTLS_ROLE_SERVER;
    context->verifiesPeer = (options->flags & (KTLS_FLAG_VERIFY_PEER | KTLS_FLAG_REQUIRE_PEER)) != 0;
    context->pausesAtCertificate = (options->flags & KTLS_FLAG_PAUSE_AT_CERTIFICATE) != 0;
    context->answersLater = (options->flags & KTLS_FLAG_POST_HANDSHAKE_AUTH) != 0;
    context->flags = options->flags;
    context->keyLog = options->keyLog;
    atomic_init(&context->references, 1);
    if (KtlsTickets_Create(&context->tickets) != 0)
    {
        free(context);
        return NULL;
    }
    if (options->alpnLength > 0)
    {
        context->alpnLength = (unsigned int)options->alpnLength;
        context->alpn = malloc(context->alpnLength);
        if (context->alpn == NULL)
        {
            KtlsTickets_Free(&context->tickets);
            free(context);
            return NULL;
        }
        memcpy(context->alpn, options->alpn, context->alpnLength);
    }
    return context;
}

int32_t KtlsNative_ContextCreate(const KtlsContextOptions* options, KtlsContext** context, KtlsResult* result)
{
    if (options == NULL || context == NULL || result == NULL)
    {
        return EINVAL;
    }
    *context = NULL;
    memset(result, 0, sizeof(*result));
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsOptions_AreValid(options))
    {
        return EINVAL;
    }
    if (((options->flags & KTLS_FLAG_PAUSE_AT_CLIENT_HELLO) != 0 && !KtlsHello_IsSupported(api)) ||
        ((options->flags & KTLS_FLAG_POST_HANDSHAKE_AUTH) != 0 && !KtlsPostHandshake_IsSupported(api)))
    {
        return ENOSYS;
    }

    KtlsContext* created = Allocate(options);
    if (created == NULL)
    {
        return ENOMEM;
    }
    KtlsResult_Begin(api, result);
    created->context = api->SSL_CTX_new(created->server ? api->TLS_server_method() : api->TLS_client_method());
    if (created->context == NULL || !Apply(api, created, options))
    {
        KtlsResult_Refused(api, result);
        KtlsContext_Release(created);
        return 0;
    }
    KtlsOpenSsl_ClearErrors(api);
    created->magic = CONTEXT_MAGIC;
    *context = created;
    return 0;
}

int32_t KtlsNative_RotateTicketKeys(KtlsContext* context)
{
    if (KtlsOpenSsl_Get() == NULL)
    {
        return ENOSYS;
    }
    return KtlsContext_IsValid(context) && context->server ? KtlsTickets_Rotate(&context->tickets) : EINVAL;
}

void KtlsNative_ContextFree(KtlsContext* context)
{
    if (KtlsContext_IsValid(context))
    {
        KtlsContext_Release(context);
    }
}

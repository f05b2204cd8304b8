/* SPDX-License-Identifier: MIT */
#include "ktls_certificate.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_handshake.h"
#include "ktls_hello.h"
#include "ktls_messages.h"
#include "ktls_options.h"
#include "ktls_result.h"
#include "ktls_session.h"
#include "ktls_staple.h"
#include "ktls_ticketchain.h"

#include <errno.h>
#include <string.h>

/* Selects by the order of the server. Without a common protocol the handshake fails (RFC 7301, 3.2). */
static int SelectAlpn(
    SSL* ssl, const unsigned char** out, unsigned char* outLength, const unsigned char* in, unsigned int inLength,
    void* argument)
{
    (void)ssl;
    const KtlsContext* context = argument;
    for (unsigned int own = 0; own < context->alpnLength; own += 1U + context->alpn[own])
    {
        unsigned int length = context->alpn[own];
        for (unsigned int offered = 0; offered + length < inLength; offered += 1U + in[offered])
        {
            if (in[offered] == length && memcmp(in + offered + 1, context->alpn + own + 1, length) == 0)
            {
                *out = context->alpn + own + 1;
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
        /* Unlike other setters, this one returns 0 for success. */
        return api->SSL_CTX_set_alpn_protos(context->sslContext, options->alpn, (unsigned int)options->alpnLength) == 0;
    }
    api->SSL_CTX_set_alpn_select_cb(context->sslContext, SelectAlpn, context);
    return true;
}

/* max_send_fragment and read_ahead keep their defaults: with any other value, or with data that was read ahead, OpenSSL
 * silently does not enable kernel TLS. AUTO_RETRY (the default) is cleared so that SSL_read returns after each
 * handshake message: a peer that sends only such messages cannot occupy a thread. NO_AUTO_CHAIN is set because the
 * options contain the whole chain: otherwise OpenSSL would search an empty store for more certificates in each
 * handshake. */
static void ApplyModes(const KtlsOpenSsl* api, const KtlsContext* context, int32_t flags)
{
    long mode = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN;
    if ((flags & KTLS_FLAG_RELEASE_BUFFERS) != 0)
    {
        mode |= SSL_MODE_RELEASE_BUFFERS;
    }
    (void)api->SSL_CTX_ctrl(context->sslContext, SSL_CTRL_MODE, mode, NULL);
    (void)api->SSL_CTX_ctrl(context->sslContext, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY, NULL);

    uint64_t set = SSL_OP_NO_COMPRESSION;
    uint64_t clear = SSL_OP_IGNORE_UNEXPECTED_EOF; /* may be set by openssl.cnf; not in the handshake */
    set |= context->server ? SSL_OP_CIPHER_SERVER_PREFERENCE : 0;
    set |= (flags & KTLS_FLAG_NO_TICKETS) != 0 ? SSL_OP_NO_TICKET : 0;
    /* Each is set or cleared explicitly, because openssl.cnf may preset it. */
    *(KtlsMessages_StartsWithKtls(flags) ? &set : &clear) |= SSL_OP_ENABLE_KTLS;
    *((flags & KTLS_FLAG_ALLOW_RENEGOTIATION) != 0 ? &clear : &set) |= SSL_OP_NO_RENEGOTIATION;
    (void)api->SSL_CTX_set_options(context->sslContext, set);
    (void)api->SSL_CTX_clear_options(context->sslContext, clear);
}

static bool ApplySessions(const KtlsOpenSsl* api, const KtlsContext* context, const KtlsContextOptions* options)
{
    static const unsigned char s_id[] = "KernelTls";
    int32_t flags = options->flags;
    if ((flags & KTLS_FLAG_CLIENT_SESSIONS) != 0)
    {
        KtlsSession_KeepNewest(api, context->sslContext);
        return true;
    }
    if (!context->server || (flags & KTLS_FLAG_NO_TICKETS) != 0)
    {
        (void)api->SSL_CTX_ctrl(context->sslContext, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    }
    if (!context->server)
    {
        return true;
    }
    /* Under SSL_OP_NO_TICKET a TLS 1.3 server sends stateful tickets. Only num_tickets 0 disables them. */
    if ((flags & KTLS_FLAG_NO_TICKETS) != 0 && api->SSL_CTX_set_num_tickets != NULL &&
        api->SSL_CTX_set_num_tickets(context->sslContext, 0) != 1)
    {
        return false;
    }
    if ((flags & KTLS_FLAG_NO_TICKETS) == 0 && (!KtlsSession_SetTicketCallback(api, context->sslContext) ||
                                                !KtlsTicketChain_SetCallbacks(api, context->sslContext)))
    {
        return false;
    }
    /* Without a session ID context, every resumption fails if client certificates are requested. */
    bool named = options->sessionIdContextLength > 0;
    return api->SSL_CTX_set_session_id_context(
               context->sslContext, named ? options->sessionIdContext : s_id,
               named ? (unsigned int)options->sessionIdContextLength : sizeof(s_id) - 1) == 1;
}

/* Limits the versions as .NET does: by options, with the bounds of openssl.cnf removed. Protocol version bounds would
 * have the same effect but change the ClientHello, because OpenSSL omits signature algorithms and extensions based on
 * them. */
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
            (api->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SIGALGS_LIST, 0, (void*)(uintptr_t)options->signatureAlgorithms) ==
                 1 &&
             api->SSL_CTX_ctrl(
                 ctx, SSL_CTRL_SET_CLIENT_SIGALGS_LIST, 0, (void*)(uintptr_t)options->signatureAlgorithms) == 1));
}

static void ApplyVerification(const KtlsOpenSsl* api, KtlsContext* context, int32_t flags)
{
    int mode = context->verifiesPeer ? SSL_VERIFY_PEER : SSL_VERIFY_NONE;
    if (context->server && (flags & KTLS_FLAG_REQUIRE_PEER) != 0)
    {
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    }
    api->SSL_CTX_set_verify(context->sslContext, mode, NULL);
    api->SSL_CTX_set_cert_verify_callback(context->sslContext, KtlsHandshake_OnVerify, NULL);
}

static bool AddCertificate(const KtlsOpenSsl* api, SSL_CTX* context, const KtlsBlob* blob, bool leaf)
{
    X509* certificate = KtlsCertificate_Decode(api, blob);
    if (certificate == NULL)
    {
        return false;
    }
    /* With argument 1 the chain takes its own reference, so that X509_free is correct in both cases. */
    bool added = leaf ? api->SSL_CTX_use_certificate(context, certificate) == 1
                      : api->SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, certificate) == 1;
    api->X509_free(certificate);
    return added;
}

static bool ApplyCertificates(const KtlsOpenSsl* api, const KtlsContext* context, const KtlsContextOptions* options)
{
    for (int32_t i = 0; i < options->certificateCount; i++)
    {
        if (!AddCertificate(api, context->sslContext, &options->certificates[i], i == 0))
        {
            return false;
        }
    }
    return options->certificateCount == 0 ||
           (api->SSL_CTX_use_PrivateKey(context->sslContext, (EVP_PKEY*)options->privateKey) == 1 &&
            api->SSL_CTX_check_private_key(context->sslContext) == 1);
}

static bool ApplyClientCas(const KtlsOpenSsl* api, const KtlsContext* context, const KtlsContextOptions* options)
{
    for (int32_t i = 0; i < options->clientCaCount; i++)
    {
        X509* authority = KtlsCertificate_Decode(api, &options->clientCas[i]);
        /* OpenSSL copies the subject name. */
        bool added = authority != NULL && api->SSL_CTX_add_client_CA(context->sslContext, authority) == 1;
        api->X509_free(authority);
        if (!added)
        {
            return false;
        }
    }
    return true;
}

static void ApplyCallbacks(const KtlsOpenSsl* api, const KtlsContext* context, int32_t flags)
{
    if (!context->server)
    {
        api->SSL_CTX_set_cert_cb(context->sslContext, KtlsCertificate_OnCertificateRequest, NULL);
        KtlsHandshake_SetFlightCallback(api, context->sslContext);
    }
    if (context->postHandshakeAuth)
    {
        api->SSL_CTX_set_post_handshake_auth(context->sslContext, 1);
    }
    if (context->server)
    {
        static char s_pauseArgument;
        if (KtlsOpenSsl_HasClientHelloCallback(api))
        {
            bool pauses = (flags & KTLS_FLAG_PAUSE_AT_CLIENT_HELLO) != 0;
            api->SSL_CTX_set_client_hello_cb(
                context->sslContext, KtlsHello_OnClientHello, pauses ? &s_pauseArgument : NULL);
        }
        KtlsStaple_SetCallback(api, context->sslContext);
    }
}

static void OnKeyLog(const SSL* ssl, const char* line)
{
    const KtlsConnection* connection = KtlsConnection_FromSsl(KtlsOpenSsl_Get(), ssl);
    if (connection != NULL && connection->context->keyLog != NULL)
    {
        connection->context->keyLog(line);
    }
}

static bool ApplyOptions(const KtlsOpenSsl* api, KtlsContext* context, const KtlsContextOptions* options)
{
    ApplyModes(api, context, options->flags);
    ApplyVerification(api, context, options->flags);
    ApplyCallbacks(api, context, options->flags);
    if (options->keyLog != NULL)
    {
        api->SSL_CTX_set_keylog_callback(context->sslContext, OnKeyLog);
    }
    return ApplySessions(api, context, options) && ApplyVersions(api, context->sslContext, options) &&
           ApplyCiphers(api, context->sslContext, options) && ApplyAlpn(api, context, options) &&
           ApplyCertificates(api, context, options) && ApplyClientCas(api, context, options);
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
    if (((options->flags & KTLS_FLAG_PAUSE_AT_CLIENT_HELLO) != 0 && !KtlsOpenSsl_HasClientHelloCallback(api)) ||
        ((options->flags & KTLS_FLAG_POST_HANDSHAKE_AUTH) != 0 && !KtlsOpenSsl_HasPostHandshakeAuth(api)))
    {
        return ENOSYS;
    }

    KtlsContext* created = KtlsContext_Allocate(options);
    if (created == NULL)
    {
        return ENOMEM;
    }
    KtlsResult_Begin(api, result);
    created->sslContext = api->SSL_CTX_new(created->server ? api->TLS_server_method() : api->TLS_client_method());
    if (created->sslContext == NULL || !ApplyOptions(api, created, options))
    {
        KtlsResult_Fail(api, result);
        KtlsContext_Release(created);
        return 0;
    }
    KtlsOpenSsl_ClearErrors(api);
    created->magic = KTLS_CONTEXT_MAGIC;
    *context = created;
    return 0;
}

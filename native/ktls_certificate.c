/* SPDX-License-Identifier: MIT */
#include "ktls_certificate.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_options.h"
#include "ktls_posthandshake.h"
#include "ktls_result.h"

#include <errno.h>
#include <string.h>

X509* KtlsCertificate_Decode(const KtlsOpenSsl* api, const KtlsBlob* blob)
{
    const unsigned char* at = blob->data;
    /* cppcheck-suppress returnDanglingLifetime ; OpenSSL moves the pointer and does not keep its address */
    return api->d2i_X509(NULL, &at, blob->length);
}

int KtlsCertificate_OnCertificateRequest(SSL* ssl, void* argument)
{
    (void)argument;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = KtlsConnection_FromSsl(api, ssl);
    if (connection == NULL)
    {
        return 0;
    }
    connection->certificateRequested = true;
    if (KtlsPostHandshake_IsRequest(api, connection))
    {
        return KtlsPostHandshake_OnRequest(connection);
    }
    if (!connection->context->pausesAtCertificate)
    {
        return 1;
    }
    /* Outside KtlsNative_Handshake (renegotiation) the caller cannot decide: the chain of the context is sent. */
    if (connection->certificateDecision == KTLS_DECISION_MADE || !connection->inHandshake)
    {
        return 1;
    }
    connection->certificateDecision = KTLS_DECISION_WAITING;
    return -1;
}

int32_t KtlsNative_GetAcceptableIssuer(
    KtlsConnection* connection, int32_t index, uint8_t* buffer, int32_t capacity, int32_t* length)
{
    if (length == NULL)
    {
        return EINVAL;
    }
    *length = 0;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection) || index < 0 || capacity < 0 || (capacity > 0 && buffer == NULL))
    {
        return EINVAL;
    }

    const OPENSSL_STACK* names = api->SSL_get0_peer_CA_list(connection->ssl);
    if (names == NULL || index >= api->OPENSSL_sk_num(names))
    {
        return ENODATA;
    }
    const X509_NAME* name = api->OPENSSL_sk_value(names, index);
    KtlsOpenSsl_ClearErrors(api);
    int size = api->i2d_X509_NAME(name, NULL);
    KtlsOpenSsl_ClearErrors(api);
    if (size <= 0)
    {
        return ENOMEM;
    }
    *length = size;
    if (capacity < size)
    {
        return ERANGE;
    }
    unsigned char* at = buffer;
    (void)api->i2d_X509_NAME(name, &at);
    return 0;
}

static bool AddCertificate(const KtlsOpenSsl* api, SSL* ssl, const KtlsBlob* blob, bool leaf)
{
    X509* certificate = KtlsCertificate_Decode(api, blob);
    if (certificate == NULL)
    {
        return false;
    }
    /* With argument 1 the chain takes its own reference, so that X509_free is correct in both cases. */
    bool added = leaf ? api->SSL_use_certificate(ssl, certificate) == 1
                      : api->SSL_ctrl(ssl, SSL_CTRL_CHAIN_CERT, 1, certificate) == 1;
    api->X509_free(certificate);
    return added;
}

static bool UseChain(const KtlsOpenSsl* api, SSL* ssl, const KtlsBlob* certificates, int32_t count, EVP_PKEY* key)
{
    for (int32_t i = 0; i < count; i++)
    {
        if (!AddCertificate(api, ssl, &certificates[i], i == 0))
        {
            return false;
        }
    }
    return count == 0 || (api->SSL_use_PrivateKey(ssl, key) == 1 && api->SSL_check_private_key(ssl) == 1);
}

int32_t KtlsNative_UseCertificate(
    KtlsConnection* connection, const KtlsBlob* certificates, int32_t count, intptr_t privateKey, KtlsResult* result)
{
    if (result == NULL)
    {
        return EINVAL;
    }
    memset(result, 0, sizeof(*result));
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection) || !KtlsOptions_IsChainWellFormed(certificates, count, privateKey))
    {
        return EINVAL;
    }
    bool paused = connection->certificateDecision == KTLS_DECISION_WAITING ||
                  connection->postHandshakeDecision == KTLS_DECISION_WAITING;
    if (!paused || connection->failure.status != KTLS_STATUS_OK)
    {
        return EBUSY;
    }

    KtlsResult_Begin(api, result);
    api->SSL_certs_clear(connection->ssl); /* the chain of the context, or a part of a rejected one */
    if (!UseChain(api, connection->ssl, certificates, count, (EVP_PKEY*)privateKey))
    {
        KtlsResult_Fail(api, result);
        api->SSL_certs_clear(connection->ssl);
        return 0;
    }
    KtlsOpenSsl_ClearErrors(api);
    connection->certificateDecision = KTLS_DECISION_MADE;
    return 0;
}

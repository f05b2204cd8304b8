/* SPDX-License-Identifier: MIT */
#include "ktls_staple.h"
#include "ktls_connection.h"
#include "ktls_context.h"

#include <errno.h>
#include <string.h>

#define RESPONSE_MAX 16000

/* Runs only if the client requested a response. */
static int OnStatusRequest(SSL* ssl, void* argument)
{
    (void)argument;
    const KtlsConnection* connection = KtlsConnection_FromSsl(KtlsOpenSsl_Get(), ssl);
    return connection != NULL && connection->ocspResponseSet ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

void KtlsStaple_SetCallback(const KtlsOpenSsl* api, SSL_CTX* context)
{
    (void)api->SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB, (KtlsAnyCallback)OnStatusRequest);
}

/* Called for each extension of the server's messages. */
static void OnExtension(SSL* ssl, int fromServer, int type, const unsigned char* data, int length, void* argument)
{
    (void)fromServer;
    (void)data;
    (void)length;
    (void)argument;
    KtlsConnection* connection = KtlsConnection_FromSsl(KtlsOpenSsl_Get(), ssl);
    if (connection != NULL && type == TLSEXT_TYPE_STATUS_REQUEST)
    {
        connection->stapleAnnounced = true;
    }
}

void KtlsStaple_Request(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    (void)api->SSL_ctrl(connection->ssl, SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE, TLSEXT_STATUSTYPE_OCSP, NULL);
    (void)api->SSL_callback_ctrl(connection->ssl, SSL_CTRL_SET_TLSEXT_DEBUG_CB, (KtlsAnyCallback)OnExtension);
}

int32_t KtlsStaple_GetState(const KtlsOpenSsl* api, const KtlsConnection* connection)
{
    if (connection->context->server)
    {
        return KTLS_STAPLE_NONE;
    }
    const uint8_t* response = NULL;
    if (api->SSL_ctrl(connection->ssl, SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP, 0, (void*)&response) > 0)
    {
        return KTLS_STAPLE_RECEIVED;
    }
    return connection->stapleAnnounced && api->SSL_version(connection->ssl) < TLS1_3_VERSION ? KTLS_STAPLE_EXPECTED
                                                                                             : KTLS_STAPLE_NONE;
}

int32_t KtlsNative_SetOcspResponse(KtlsConnection* connection, const uint8_t* data, int32_t length)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (!KtlsConnection_IsValid(connection) || !connection->context->server || data == NULL || length < 1 ||
        length > RESPONSE_MAX)
    {
        return EINVAL;
    }
    if (!connection->beforeHello)
    {
        return EBUSY;
    }

    /* OpenSSL takes ownership and frees the copy with its own allocator. */
    uint8_t* copy = api->CRYPTO_malloc((size_t)length, __FILE__, __LINE__);
    KtlsOpenSsl_ClearErrors(api);
    if (copy == NULL)
    {
        return ENOMEM;
    }
    memcpy(copy, data, (size_t)length);
    if (api->SSL_ctrl(connection->ssl, SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP, length, copy) != 1)
    {
        api->CRYPTO_free(copy, __FILE__, __LINE__);
        KtlsOpenSsl_ClearErrors(api);
        return ENOMEM;
    }
    connection->ocspResponseSet = true;
    return 0;
}

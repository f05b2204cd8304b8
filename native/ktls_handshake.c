/* SPDX-License-Identifier: MIT */
#include "ktls_handshake.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_io.h"
#include "ktls_result.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The leaf, then what the peer sent; OpenSSL's untrusted list begins with the leaf itself, which is left out.
 * Returns the number of certificates, 0 on failure. */
static int32_t BuildChain(const KtlsOpenSsl* api, const X509_STORE_CTX* store, intptr_t** chain)
{
    const X509* leaf = api->X509_STORE_CTX_get0_cert(store);
    const OPENSSL_STACK* sent = api->X509_STORE_CTX_get0_untrusted(store);
    int sentCount = sent != NULL ? api->OPENSSL_sk_num(sent) : 0;
    if (leaf == NULL || sentCount < 0)
    {
        return 0;
    }
    *chain = calloc((size_t)sentCount + 1, sizeof(**chain));
    if (*chain == NULL)
    {
        return 0;
    }

    int32_t count = 0;
    (*chain)[count++] = (intptr_t)leaf;
    for (int i = 0; i < sentCount; i++)
    {
        const X509* certificate = api->OPENSSL_sk_value(sent, i);
        if (certificate != leaf)
        {
            (*chain)[count++] = (intptr_t)certificate;
        }
    }
    return count;
}

static int32_t Judge(const KtlsOpenSsl* api, const X509_STORE_CTX* store)
{
    const SSL* ssl = api->X509_STORE_CTX_get_ex_data(store, api->SSL_get_ex_data_X509_STORE_CTX_idx());
    const KtlsConnection* connection = ssl != NULL ? KtlsConnection_Of(api, ssl) : NULL;
    if (connection == NULL || connection->verify == NULL)
    {
        return X509_V_ERR_APPLICATION_VERIFICATION;
    }

    intptr_t* chain = NULL;
    int32_t count = BuildChain(api, store, &chain);
    if (count == 0)
    {
        return X509_V_ERR_OUT_OF_MEM;
    }
    int32_t verdict = connection->verify(connection->verifyState, chain, count);
    free(chain);
    return verdict >= X509_V_OK ? verdict : X509_V_ERR_APPLICATION_VERIFICATION;
}

int KtlsHandshake_VerifyPeer(X509_STORE_CTX* store, void* argument)
{
    (void)argument;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    int32_t verdict = Judge(api, store);
    /* The callback ran .NET's chain building on this thread; what that left is not this handshake's error. */
    KtlsOpenSsl_ClearErrors(api);
    api->X509_STORE_CTX_set_error(store, verdict);
    return verdict == X509_V_OK;
}

/* The peer broke the connection while OpenSSL was writing its next flight. A peer that refused says why before it
 * closes, in an alert (RFC 5246, section 7.2) that is here already and that OpenSSL, writing, will not read. The alert
 * replaces the error then. One that was encrypted is longer than this and stays unheard. */
static void HearAlert(const KtlsOpenSsl* api, const KtlsConnection* connection, KtlsResult* result)
{
    enum
    {
        TYPE,
        MAJOR,
        MINOR,
        LENGTH_HIGH,
        LENGTH_LOW,
        LEVEL,
        DESCRIPTION,
        SIZE
    };
    uint8_t record[SIZE];
    bool broken =
        result->status == KTLS_STATUS_SYSCALL && (result->sysErrno == EPIPE || result->sysErrno == ECONNRESET);
    if (broken && !KtlsIo_IsReceiveOffloaded(api, connection->ssl) &&
        recv(connection->socket, record, SIZE, MSG_DONTWAIT) == SIZE && record[TYPE] == SSL3_RT_ALERT &&
        record[MAJOR] == TLS1_2_VERSION >> 8 && record[LENGTH_HIGH] == 0 && record[LENGTH_LOW] == SIZE - LEVEL &&
        record[LEVEL] == SSL3_AL_FATAL)
    {
        result->status = KTLS_STATUS_TLS_ERROR;
        result->sysErrno = 0;
        result->reason = SSL_AD_REASON_OFFSET + record[DESCRIPTION];
        result->openSslError = ((int64_t)ERR_LIB_SSL << 23) | result->reason;
    }
}

/* OpenSSL keeps the keys of the key exchange as long as the connection, for SSL_get_tmp_key alone: a secret that
 * forward secrecy wants gone, and 7 KiB where ML-KEM was part of it. Nobody shares these keys, so that they can lose
 * their content here. */
static void WipeExchangeKeys(const KtlsOpenSsl* api, SSL* ssl)
{
    static const int Keys[] = {SSL_CTRL_GET_TMP_KEY, SSL_CTRL_GET_PEER_TMP_KEY};
    for (size_t i = 0; i < sizeof(Keys) / sizeof(Keys[0]); i++)
    {
        EVP_PKEY* key = NULL;
        if (api->SSL_ctrl(ssl, Keys[i], 0, (void*)&key) == 1 && key != NULL)
        {
            /* It frees the content before it looks at the type; this type it refuses, which leaves a key as new. */
            (void)api->EVP_PKEY_set_type(key, EVP_PKEY_NONE);
            api->EVP_PKEY_free(key);
        }
    }
    KtlsOpenSsl_ClearErrors(api);
}

int32_t KtlsNative_Handshake(
    KtlsConnection* connection, int32_t socket, KtlsVerifyCallback verify, intptr_t state, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    int32_t refusal = KtlsConnection_Enter(connection, socket, result, &api);
    if (refusal != 0)
    {
        return refusal;
    }
    if (verify == NULL && connection->context->verifiesPeer)
    {
        return EINVAL;
    }
    if (connection->failure.status != KTLS_STATUS_OK)
    {
        *result = connection->failure;
        return 0;
    }

    connection->verify = verify;
    connection->verifyState = state;
    connection->inHandshake = true;
    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_do_handshake(connection->ssl);
        error = errno;
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, false, result));
    HearAlert(api, connection, result);
    connection->inHandshake = false;
    connection->verify = NULL;
    connection->verifyState = 0;
    connection->beforeHello = result->status == KTLS_STATUS_WANT_CLIENT_HELLO;

    if (result->status == KTLS_STATUS_OK)
    {
        connection->sendOffloaded = KtlsIo_IsSendOffloaded(api, connection->ssl);
        connection->established = true;
        WipeExchangeKeys(api, connection->ssl);
    }
    KtlsConnection_NoteFailure(api, connection, result);
    return 0;
}

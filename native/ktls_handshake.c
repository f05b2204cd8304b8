/* SPDX-License-Identifier: MIT */
#include "ktls_handshake.h"
#include "ktls_call.h"
#include "ktls_connection.h"
#include "ktls_context.h"
#include "ktls_socket.h"
#include "ktls_socketbio.h"
#include "ktls_staple.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Builds the array for the verify callback: the leaf, then the other certificates that the peer sent. OpenSSL's list
 * of these includes the leaf, which is skipped. Returns the number of certificates, or 0 on failure. */
static int32_t BuildChain(const KtlsOpenSsl* api, const X509* leaf, const OPENSSL_STACK* sent, intptr_t** chain)
{
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

/* Makes sure that OpenSSL no longer uses the descriptor, whose number may now belong to another connection. */
static void DetachSocket(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    int none = -1;
    (void)api->BIO_ctrl(api->SSL_get_rbio(connection->ssl), BIO_C_SET_FD, BIO_NOCLOSE, &none);
    (void)api->BIO_ctrl(api->SSL_get_wbio(connection->ssl), BIO_C_SET_FD, BIO_NOCLOSE, &none);
    connection->socket = -1;
}

/* Calls the verify callback and returns its result. */
static int32_t Validate(const KtlsOpenSsl* api, KtlsConnection* connection, const X509* leaf, const OPENSSL_STACK* sent)
{
    if (connection->verify == NULL)
    {
        return X509_V_ERR_APPLICATION_VERIFICATION;
    }
    intptr_t* chain = NULL;
    int32_t count = BuildChain(api, leaf, sent, &chain);
    if (count == 0)
    {
        return X509_V_ERR_OUT_OF_MEM;
    }
    int32_t staple = KtlsStaple_GetState(api, connection);
    int32_t code = connection->verify(connection->verifyState, chain, count, staple, (intptr_t)connection->ssl);
    free(chain);
    if (code == KTLS_VERDICT_SOCKET_CLOSED)
    {
        DetachSocket(api, connection);
    }
    /* The callback built a chain with .NET on this thread. Its errors must not remain in the error queue. */
    KtlsOpenSsl_ClearErrors(api);
    return code;
}

int KtlsHandshake_OnVerify(X509_STORE_CTX* store, void* argument)
{
    (void)argument;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    const SSL* ssl = api->X509_STORE_CTX_get_ex_data(store, api->SSL_get_ex_data_X509_STORE_CTX_idx());
    KtlsConnection* connection = ssl != NULL ? KtlsConnection_FromSsl(api, ssl) : NULL;
    int32_t code = connection == NULL ? X509_V_ERR_APPLICATION_VERIFICATION
                                      : Validate(
                                            api, connection, api->X509_STORE_CTX_get0_cert(store),
                                            api->X509_STORE_CTX_get0_untrusted(store));
    if (code == KTLS_VERDICT_LATER && !connection->context->server)
    {
        connection->verdictDue = true;
        code = X509_V_OK;
    }
    code = code >= X509_V_OK ? code : X509_V_ERR_APPLICATION_VERIFICATION;
    api->X509_STORE_CTX_set_error(store, code);
    return code == X509_V_OK;
}

/* OpenSSL calls a client's status callback at the end of the server's first flight: at ServerHelloDone or, in TLS 1.3,
 * at Finished. It calls it whether or not there is a response, because every client requests one. 0 ends the handshake
 * with the alert bad_certificate_status_response. */
static int OnServerFlight(SSL* ssl, void* argument)
{
    (void)argument;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = KtlsConnection_FromSsl(api, ssl);
    if (connection == NULL)
    {
        return 0;
    }
    if (!connection->verdictDue && KtlsStaple_GetState(api, connection) != KTLS_STAPLE_RECEIVED)
    {
        return 1;
    }
    const X509* leaf = api->SSL_get0_peer_certificate(ssl);
    int32_t code = Validate(api, connection, leaf, api->SSL_get_peer_cert_chain(ssl));
    connection->verdictDue = code != X509_V_OK;
    return code == X509_V_OK;
}

void KtlsHandshake_SetFlightCallback(const KtlsOpenSsl* api, SSL_CTX* context)
{
    (void)api->SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB, (KtlsAnyCallback)OnServerFlight);
}

/* Handles a connection that the peer closed while OpenSSL was writing its next flight. The peer may have sent an alert
 * before it closed (RFC 5246, section 7.2). OpenSSL does not read it, because it is writing. A plaintext alert replaces
 * the error. An encrypted alert is longer, and is ignored. */
static void ReadPlaintextAlert(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result)
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
    if (broken && !KtlsConnection_IsReceiveOffloaded(api, connection) &&
        KtlsSocketBio_Take(connection, record, SIZE) == SIZE && record[TYPE] == SSL3_RT_ALERT &&
        record[MAJOR] == TLS1_2_VERSION >> 8 && record[LENGTH_HIGH] == 0 && record[LENGTH_LOW] == SIZE - LEVEL &&
        record[LEVEL] == SSL3_AL_FATAL)
    {
        result->status = KTLS_STATUS_TLS_ERROR;
        result->sysErrno = 0;
        result->reason = SSL_AD_REASON_OFFSET + record[DESCRIPTION];
        result->openSslError = ((int64_t)ERR_LIB_SSL << 23) | result->reason;
    }
}

/* Wipes the keys of the key exchange. OpenSSL keeps them for the lifetime of the connection, only for SSL_get_tmp_key.
 * Forward secrecy requires that they are erased, and with ML-KEM they take 7 KiB. The keys are not shared, so that
 * their contents can be freed here. */
static void WipeKeyExchangeKeys(const KtlsOpenSsl* api, SSL* ssl)
{
    static const int s_commands[] = {SSL_CTRL_GET_TMP_KEY, SSL_CTRL_GET_PEER_TMP_KEY};
    for (size_t i = 0; i < sizeof(s_commands) / sizeof(s_commands[0]); i++)
    {
        EVP_PKEY* key = NULL;
        if (api->SSL_ctrl(ssl, s_commands[i], 0, (void*)&key) == 1 && key != NULL)
        {
            /* EVP_PKEY_set_type frees the contents before it rejects this type, which leaves an empty key. */
            (void)api->EVP_PKEY_set_type(key, EVP_PKEY_NONE);
            api->EVP_PKEY_free(key);
        }
    }
    KtlsOpenSsl_ClearErrors(api);
}

/* Each direction that the kernel does not take over uses a BIO of the shim from now on. */
static bool UseOwnBios(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    return (KtlsConnection_IsReceiveOffloaded(api, connection) || KtlsSocketBio_StartReading(api, connection)) &&
           (connection->sendOffloaded || KtlsSocketBio_StartWriting(api, connection));
}

int32_t KtlsNative_Handshake(
    KtlsConnection* connection, int32_t socket, KtlsVerifyCallback verify, intptr_t state, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    int32_t error = KtlsConnection_Enter(connection, socket, result, &api);
    if (error != 0)
    {
        return error;
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
    KtlsCall_DoHandshake(api, connection->ssl, false, result);
    if (connection->corked)
    {
        KtlsSocket_SetCork(connection->socket, false);
        connection->corked = false;
    }
    ReadPlaintextAlert(api, connection, result);
    connection->inHandshake = false;
    connection->verify = NULL;
    connection->verifyState = 0;
    connection->beforeHello = result->status == KTLS_STATUS_WANT_CLIENT_HELLO;

    if (result->status == KTLS_STATUS_OK && connection->verdictDue)
    {
        result->status = KTLS_STATUS_TLS_ERROR; /* OnServerFlight was not called: the peer is not accepted */
    }
    if (result->status == KTLS_STATUS_OK)
    {
        connection->sendOffloaded = KtlsConnection_IsSendOffloaded(api, connection);
        connection->established = true;
        /* OpenSSL would take a FIN for a fatal error, after which the other direction fails, too. KtlsConnection_Leave
         * tells it from a close_notify. */
        (void)api->SSL_set_options(connection->ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
        WipeKeyExchangeKeys(api, connection->ssl);
        if (!UseOwnBios(api, connection))
        {
            return ENOMEM;
        }
    }
    KtlsConnection_SaveFailure(api, connection, result);
    return 0;
}

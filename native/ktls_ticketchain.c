/* SPDX-License-Identifier: MIT */
#include "ktls_ticketchain.h"

#include <errno.h>
#include <string.h>

/* The application data of a ticket: for each issuer its length, then its DER. Each resumption sends a ticket in both
 * directions, and kernels from 6.14 take a handshake message of several records for a KeyUpdate (16 KiB and more). A
 * chain without room is replaced by s_noRoom, and its client does not resume. */
enum
{
    LENGTH_SIZE = sizeof(uint32_t),
    LARGEST_CHAIN = 8 * 1024
};

static const uint8_t s_noRoom[] = {0};

/* Writes the issuers to data, which has LARGEST_CHAIN bytes. Returns their number, 0 if there is no room, or -1 on
 * failure. */
static long Encode(const KtlsOpenSsl* api, const OPENSSL_STACK* issuers, uint8_t* data)
{
    long size = 0;
    for (int i = 0; i < api->OPENSSL_sk_num(issuers); i++)
    {
        const X509* issuer = api->OPENSSL_sk_value(issuers, i);
        int length = api->i2d_X509(issuer, NULL);
        if (length <= 0)
        {
            return -1;
        }
        if (length > LARGEST_CHAIN - LENGTH_SIZE - size)
        {
            return 0;
        }
        uint32_t prefix = (uint32_t)length;
        memcpy(data + size, &prefix, LENGTH_SIZE);
        unsigned char* at = data + size + LENGTH_SIZE;
        size += LENGTH_SIZE + api->i2d_X509(issuer, &at);
    }
    return size;
}

/* Returns 0 to end the connection, because a ticket without the issuers would be refused when it is used. */
static int OnGenerate(SSL* ssl, void* argument)
{
    (void)argument;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    SSL_SESSION* session = api->SSL_get_session(ssl);
    const OPENSSL_STACK* issuers = api->SSL_get_peer_cert_chain(ssl); /* NULL after a resumption by ticket */
    if (session == NULL || issuers == NULL || api->OPENSSL_sk_num(issuers) == 0)
    {
        return 1;
    }
    uint8_t data[LARGEST_CHAIN];
    long size = Encode(api, issuers, data);
    if (size < 0)
    {
        return 0;
    }
    return size > 0 ? api->SSL_SESSION_set1_ticket_appdata(session, data, (size_t)size)
                    : api->SSL_SESSION_set1_ticket_appdata(session, s_noRoom, sizeof(s_noRoom));
}

static int OnDecrypt(
    SSL* ssl, SSL_SESSION* session, const unsigned char* name, size_t nameLength, int status, void* argument)
{
    (void)ssl;
    (void)name;
    (void)nameLength;
    (void)argument;
    void* data = NULL;
    size_t length = 0;
    switch (status)
    {
        case SSL_TICKET_SUCCESS:
        case SSL_TICKET_SUCCESS_RENEW:
            if (KtlsOpenSsl_Get()->SSL_SESSION_get0_ticket_appdata(session, &data, &length) != 1 ||
                length == sizeof(s_noRoom))
            {
                return SSL_TICKET_RETURN_IGNORE_RENEW;
            }
            return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
        default:
            return SSL_TICKET_RETURN_IGNORE_RENEW;
    }
}

bool KtlsTicketChain_SetCallbacks(const KtlsOpenSsl* api, SSL_CTX* context)
{
    return api->SSL_CTX_set_session_ticket_cb(context, OnGenerate, OnDecrypt, NULL) == 1;
}

int32_t KtlsTicketChain_GetIssuer(
    const KtlsOpenSsl* api, KtlsConnection* connection, int32_t index, const X509** issuer)
{
    *issuer = NULL;
    api->X509_free(connection->ticketIssuer);
    connection->ticketIssuer = NULL;
    SSL_SESSION* session = api->SSL_get_session(connection->ssl);
    void* data = NULL;
    size_t left = 0;
    if (session == NULL || api->SSL_SESSION_get0_ticket_appdata(session, &data, &left) != 1)
    {
        return 0;
    }
    const unsigned char* at = data;
    uint32_t length = 0;
    while (left > LENGTH_SIZE)
    {
        memcpy(&length, at, LENGTH_SIZE);
        at += LENGTH_SIZE;
        left -= LENGTH_SIZE;
        if (length > left)
        {
            return 0;
        }
        if (index-- == 0)
        {
            KtlsOpenSsl_ClearErrors(api);
            connection->ticketIssuer = api->d2i_X509(NULL, &at, (long)length);
            KtlsOpenSsl_ClearErrors(api);
            *issuer = connection->ticketIssuer;
            return *issuer != NULL ? 0 : ENOMEM;
        }
        at += length;
        left -= length;
    }
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "ktls_tickets.h"
#include "ktls_connection.h"
#include "ktls_context.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum
{
    IV_SIZE = 16,
    TICKET_REFUSED = -1,
    TICKET_UNKNOWN = 0, /* a full handshake */
    TICKET_GOOD = 1,
    TICKET_RENEW = 2 /* good, and to be replaced */
};

static int32_t MakeKey(KtlsTicketKey* key)
{
    return getrandom(key, sizeof(*key), 0) == (ssize_t)sizeof(*key) ? 0 : errno != 0 ? errno : EIO;
}

int32_t KtlsTickets_Create(KtlsTicketKeys* keys)
{
    int32_t error = pthread_mutex_init(&keys->lock, NULL);
    return error != 0 ? error : MakeKey(&keys->current);
}

int32_t KtlsTickets_Rotate(KtlsTicketKeys* keys)
{
    KtlsTicketKey next;
    int32_t error = MakeKey(&next);
    if (error == 0)
    {
        (void)pthread_mutex_lock(&keys->lock);
        keys->previous = keys->current;
        keys->current = next;
        (void)pthread_mutex_unlock(&keys->lock);
    }
    explicit_bzero(&next, sizeof(next));
    return error;
}

void KtlsTickets_Free(KtlsTicketKeys* keys)
{
    (void)pthread_mutex_destroy(&keys->lock);
    explicit_bzero(keys, sizeof(*keys));
}

/* The key that seals, or the one with this name. Returns TICKET_UNKNOWN, TICKET_GOOD or TICKET_RENEW. */
static int Find(KtlsTicketKeys* keys, const unsigned char* name, bool encrypts, KtlsTicketKey* found)
{
    static const uint8_t s_none[KTLS_TICKET_NAME] = {0};
    int verdict = TICKET_UNKNOWN;
    (void)pthread_mutex_lock(&keys->lock);
    if (encrypts || memcmp(name, keys->current.name, KTLS_TICKET_NAME) == 0)
    {
        *found = keys->current;
        verdict = TICKET_GOOD;
    }
    else if (memcmp(name, keys->previous.name, KTLS_TICKET_NAME) == 0 && memcmp(name, s_none, sizeof(s_none)) != 0)
    {
        *found = keys->previous;
        verdict = TICKET_RENEW;
    }
    (void)pthread_mutex_unlock(&keys->lock);
    return verdict;
}

static bool Use(
    const KtlsOpenSsl* api, KtlsTicketKey* key, const unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac,
    bool encrypts)
{
    char digest[] = "SHA256";
    KtlsParameter parameters[] = {
        {"key", OSSL_PARAM_OCTET_STRING, key->mac, sizeof(key->mac), 0},
        {"digest", OSSL_PARAM_UTF8_STRING, digest, sizeof(digest) - 1, 0},
        {NULL, 0, NULL, 0, 0},
    };
    const EVP_CIPHER* algorithm = api->EVP_aes_256_cbc();
    int started = encrypts ? api->EVP_EncryptInit_ex(cipher, algorithm, NULL, key->cipher, iv)
                           : api->EVP_DecryptInit_ex(cipher, algorithm, NULL, key->cipher, iv);
    return started == 1 && api->EVP_MAC_CTX_set_params(mac, parameters) == 1;
}

int KtlsTickets_OnKey(
    SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypts)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    const KtlsConnection* connection = KtlsConnection_Of(api, ssl);
    if (connection == NULL)
    {
        return TICKET_REFUSED;
    }
    /* A connection goes on with the keys of the context that it began on. */
    KtlsContext* context = connection->firstContext != NULL ? connection->firstContext : connection->context;
    KtlsTicketKey key;
    int verdict = Find(&context->tickets, name, encrypts != 0, &key);
    if (verdict == TICKET_UNKNOWN)
    {
        return verdict;
    }
    if (encrypts != 0)
    {
        memcpy(name, key.name, sizeof(key.name));
        verdict = getrandom(iv, IV_SIZE, 0) == IV_SIZE ? verdict : TICKET_REFUSED;
    }
    if (verdict != TICKET_REFUSED && !Use(api, &key, iv, cipher, mac, encrypts != 0))
    {
        verdict = TICKET_REFUSED;
    }
    explicit_bzero(&key, sizeof(key));
    /* TLS 1.3 sessions are used once: each connection gets the ticket of the next (RFC 8446, C.4), as without a
     * callback. */
    return verdict == TICKET_GOOD && encrypts == 0 && api->SSL_version(ssl) == TLS1_3_VERSION ? TICKET_RENEW : verdict;
}

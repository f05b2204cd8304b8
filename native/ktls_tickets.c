/* SPDX-License-Identifier: MIT */
#include "ktls_tickets.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum
{
    IV_SIZE = 16
};

static int32_t GenerateKey(KtlsTicketKey* key)
{
    return getrandom(key, sizeof(*key), 0) == (ssize_t)sizeof(*key) ? 0 : errno != 0 ? errno : EIO;
}

int32_t KtlsTickets_Create(KtlsTicketKeys* keys)
{
    int32_t error = pthread_mutex_init(&keys->lock, NULL);
    return error != 0 ? error : GenerateKey(&keys->current);
}

int32_t KtlsTickets_Rotate(KtlsTicketKeys* keys)
{
    KtlsTicketKey next;
    int32_t error = GenerateKey(&next);
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

/* Copies the current key to encrypt, or the key with this name to decrypt. Returns KTLS_TICKET_UNKNOWN,
 * KTLS_TICKET_VALID or KTLS_TICKET_RENEW. */
static int FindKey(KtlsTicketKeys* keys, const unsigned char* name, bool encrypts, KtlsTicketKey* found)
{
    static const uint8_t s_none[KTLS_TICKET_NAME] = {0};
    int status = KTLS_TICKET_UNKNOWN;
    (void)pthread_mutex_lock(&keys->lock);
    if (encrypts || memcmp(name, keys->current.name, KTLS_TICKET_NAME) == 0)
    {
        *found = keys->current;
        status = KTLS_TICKET_VALID;
    }
    else if (memcmp(name, keys->previous.name, KTLS_TICKET_NAME) == 0 && memcmp(name, s_none, sizeof(s_none)) != 0)
    {
        *found = keys->previous;
        status = KTLS_TICKET_RENEW;
    }
    (void)pthread_mutex_unlock(&keys->lock);
    return status;
}

static bool InitCipherAndMac(
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
    int initialized = encrypts ? api->EVP_EncryptInit_ex(cipher, algorithm, NULL, key->cipher, iv)
                               : api->EVP_DecryptInit_ex(cipher, algorithm, NULL, key->cipher, iv);
    return initialized == 1 && api->EVP_MAC_CTX_set_params(mac, parameters) == 1;
}

int KtlsTickets_SetupCipher(
    const KtlsOpenSsl* api, KtlsTicketKeys* keys, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
    EVP_MAC_CTX* mac, bool encrypts)
{
    KtlsTicketKey key;
    int status = FindKey(keys, name, encrypts, &key);
    if (status == KTLS_TICKET_UNKNOWN)
    {
        return status;
    }
    if (encrypts)
    {
        memcpy(name, key.name, sizeof(key.name));
        status = getrandom(iv, IV_SIZE, 0) == IV_SIZE ? status : KTLS_TICKET_ERROR;
    }
    if (status != KTLS_TICKET_ERROR && !InitCipherAndMac(api, &key, iv, cipher, mac, encrypts))
    {
        status = KTLS_TICKET_ERROR;
    }
    explicit_bzero(&key, sizeof(key));
    return status;
}

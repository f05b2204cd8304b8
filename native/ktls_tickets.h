/* SPDX-License-Identifier: MIT
 *
 * The keys that encrypt the session tickets of a server: the current key, and the previous key, which still decrypts.
 */
#ifndef KTLS_TICKETS_H
#define KTLS_TICKETS_H

#include "ktls_openssl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define KTLS_TICKET_NAME 16
#define KTLS_TICKET_SECRET 32

/* Return values of the ticket key callback. */
enum
{
    KTLS_TICKET_ERROR = -1,
    KTLS_TICKET_UNKNOWN = 0, /* a full handshake follows */
    KTLS_TICKET_VALID = 1,
    KTLS_TICKET_RENEW = 2 /* valid; the server sends a new ticket */
};

typedef struct KtlsTicketKey
{
    uint8_t name[KTLS_TICKET_NAME]; /* appears in the ticket unencrypted (RFC 5077, 4) */
    uint8_t cipher[KTLS_TICKET_SECRET];
    uint8_t mac[KTLS_TICKET_SECRET];
} KtlsTicketKey;

typedef struct KtlsTicketKeys
{
    pthread_mutex_t lock; /* the handshakes of one context run on any thread */
    KtlsTicketKey current;
    KtlsTicketKey previous; /* all zero until the first rotation, which no random name is */
} KtlsTicketKeys;

/* Creates the first key. Returns 0, or an errno if no random bytes are available. */
int32_t KtlsTickets_Create(KtlsTicketKeys* keys);
/* Makes the current key the previous one and creates a new current key. Returns as KtlsTickets_Create. */
int32_t KtlsTickets_Rotate(KtlsTicketKeys* keys);
/* Wipes the keys. keys may be all zero. */
void KtlsTickets_Free(KtlsTicketKeys* keys);

/* Sets up the cipher and the MAC for a ticket, as SSL_CTX_set_tlsext_ticket_key_evp_cb requires. To encrypt, writes
 * name and iv. To decrypt, finds the key with that name. Returns a KTLS_TICKET_* value. */
int KtlsTickets_SetupCipher(
    const KtlsOpenSsl* api, KtlsTicketKeys* keys, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
    EVP_MAC_CTX* mac, bool encrypts);

#endif

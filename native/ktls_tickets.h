/* SPDX-License-Identifier: MIT
 *
 * The keys that seal a server's session tickets: a current one, and the one before, which still opens.
 */
#ifndef KTLS_TICKETS_H
#define KTLS_TICKETS_H

#include "ktls_openssl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define KTLS_TICKET_NAME 16
#define KTLS_TICKET_SECRET 32

typedef struct KtlsTicketKey
{
    uint8_t name[KTLS_TICKET_NAME]; /* in the ticket, in the clear (RFC 5077, 4) */
    uint8_t cipher[KTLS_TICKET_SECRET];
    uint8_t mac[KTLS_TICKET_SECRET];
} KtlsTicketKey;

typedef struct KtlsTicketKeys
{
    pthread_mutex_t lock; /* connections of one context shake hands on any thread */
    KtlsTicketKey current;
    KtlsTicketKey previous; /* all zero while there is none: no random name is */
} KtlsTicketKeys;

/* Makes the first key. Returns 0, or the errno of having no random bytes. */
int32_t KtlsTickets_Create(KtlsTicketKeys* keys);
int32_t KtlsTickets_Rotate(KtlsTicketKeys* keys);
/* Wipes them. Also of a struct that is all zero. */
void KtlsTickets_Free(KtlsTicketKeys* keys);

/* SSL_CTX_set_tlsext_ticket_key_evp_cb of servers. */
int KtlsTickets_OnKey(
    SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypts);

#endif

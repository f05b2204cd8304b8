/* SPDX-License-Identifier: MIT
 *
 * KtlsConnection: what belongs to one SSL, and its life.
 */
#ifndef KTLS_CONNECTION_H
#define KTLS_CONNECTION_H

#include "ktls_export.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* How a handshake stands with a decision of the caller's:
 *   NONE -> WAITING   by OpenSSL's callback, within KtlsNative_Handshake
 *   WAITING -> MADE   by the caller (SwitchContext, AbortHandshake, UseCertificate)
 * MADE lasts: whatever asks again (HelloRetryRequest, renegotiation) goes by it, so no pause comes twice. */
typedef enum KtlsDecision
{
    KTLS_DECISION_NONE,
    KTLS_DECISION_WAITING,
    KTLS_DECISION_MADE
} KtlsDecision;

/* How far a server is with a request for a certificate after the handshake. */
typedef enum KtlsRequest
{
    KTLS_REQUEST_NONE,
    KTLS_REQUEST_QUEUED, /* in OpenSSL, not or not wholly written */
    KTLS_REQUEST_OUT     /* written; the answer is to come */
} KtlsRequest;

/* A Write that waits for room, to be finished within the pause of a client. */
typedef struct KtlsRetry
{
    const uint8_t* buffer;
    int32_t length;
    bool done;
    KtlsResult* result;
} KtlsRetry;

#define KTLS_FINISHED_MAX 64 /* EVP_MAX_MD_SIZE */

struct KtlsConnection
{
    uint32_t magic;
    int32_t socket;
    KtlsContext* context;      /* counted reference */
    KtlsContext* firstContext; /* counted: OpenSSL keeps this one's SSL_CTX for its ticket keys. NULL: not switched */
    SSL* ssl;
    bool inHandshake;          /* KtlsNative_Handshake is running */
    bool beforeHello;          /* nothing has been sent: not begun, or paused at the ClientHello */
    bool established;          /* the handshake has ended well */
    bool certificateRequested; /* client: the server has sent a CertificateRequest */
    bool sendOffloaded;        /* once established: the kernel encrypts. It never goes back on that. */
    bool closeSent;            /* close_notify is out */
    bool allowsTruncation;     /* OpenSSL takes a FIN for a close_notify */
    bool finSeen;              /* OpenSSL's reads have met the end of the TCP stream */
    int32_t receiveError;      /* of KtlsNative_ReceiveFailed, for OpenSSL's next read of the socket; 0: none */
    bool updateAsked;          /* the peer's KeyUpdate asked for one, which is not yet queued */
    bool updateStarted;        /* a KeyUpdate is queued in OpenSSL and not yet written */
    bool writeWaits;           /* OpenSSL holds the encrypted half of a Write that found no room */
    bool sockmap;              /* the socket was seen to be in a BPF sockmap: the kernel is not asked */
    int32_t messages;          /* handshake messages of the peer's since Read began */
    bool stapled;              /* OpenSSL holds an OCSP response for this connection */
    KtlsResult failure;        /* status other than OK: what ended this connection, repeated by every later call */
    KtlsVerifyCallback verify; /* set only while KtlsNative_Handshake or KtlsNative_RequestCertificate runs */
    intptr_t verifyState;
    KtlsDecision helloDecision;
    char* serverName;       /* owned; server: as the ClientHello had it, empty for none; NULL: no hello yet */
    KtlsClientHello* hello; /* owned; there while helloDecision is WAITING */
    int32_t abortAlert;     /* the decision is to end with this alert; 0: to go on */
    KtlsDecision certificateDecision;
    KtlsDecision answerDecision; /* on a request after the handshake: WAITING in its pause, MADE by the next Read */
    bool closeBegun;             /* client: set while Read hides from OpenSSL that close_notify is out or on its way */
    KtlsRetry* retry;            /* the Write within the pause; set only while it runs */
    KtlsRequest request;
    bool answerLost; /* none can come any more: the client's direction, or the connection, has ended */
    int verifyMode;  /* the one to be restored after the request */
    uint8_t peerFinished[KTLS_FINISHED_MAX]; /* as it was before the request; the end of the answer changes it */
    SSL_SESSION* session;                    /* owned: the newest that was not taken yet */
};

/* Checks what every I/O export checks, and zeroes the result. On 0, *api is the table. */
int32_t KtlsConnection_Enter(
    const KtlsConnection* connection, int32_t socket, KtlsResult* result, const KtlsOpenSsl** api);

bool KtlsConnection_IsValid(const KtlsConnection* connection);

/* The connection of an SSL within one of OpenSSL's callbacks; NULL where there is none. */
KtlsConnection* KtlsConnection_Of(const KtlsOpenSsl* api, const SSL* ssl);

/* Remembers a result after which OpenSSL can neither read nor write on this connection. Asked again it would fail
 * without an entry in its queue, which looks like an end of stream. */
void KtlsConnection_NoteFailure(const KtlsOpenSsl* api, KtlsConnection* connection, const KtlsResult* result);

#endif

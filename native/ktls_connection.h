/* SPDX-License-Identifier: MIT
 *
 * KtlsConnection: an SSL and its state, and the checks that all calls on a connection share.
 */
#ifndef KTLS_CONNECTION_H
#define KTLS_CONNECTION_H

#include "ktls_export.h"
#include "ktls_openssl.h"

#include <pthread.h>
#include <stdbool.h>

#define KTLS_CONNECTION_MAGIC 0x4B74636FU /* "Ktco" */

/* The state of a decision that the caller makes in a pause of the handshake:
 *   NONE -> WAITING   set by OpenSSL's callback during KtlsNative_Handshake
 *   WAITING -> MADE   set by the caller (SwitchContext, AbortHandshake, UseCertificate)
 * MADE is final: it also applies after a HelloRetryRequest or a renegotiation, so that each pause occurs only once.
 * Only postHandshakeDecision returns to NONE, because each post-handshake request pauses. */
typedef enum KtlsDecision
{
    KTLS_DECISION_NONE,
    KTLS_DECISION_WAITING,
    KTLS_DECISION_MADE
} KtlsDecision;

/* The state of a server's post-handshake CertificateRequest. */
typedef enum KtlsRequest
{
    KTLS_REQUEST_NONE,
    KTLS_REQUEST_QUEUED, /* passed to OpenSSL, not completely written */
    KTLS_REQUEST_SENT    /* written; the response is outstanding */
} KtlsRequest;

/* The bytes that the BIO of ktls_socketbio.h has received and OpenSSL has not read yet. */
typedef struct KtlsReadAhead
{
    uint8_t* data; /* owned; NULL: none */
    int32_t capacity;
    int32_t start; /* of the unread bytes in data */
    int32_t end;
    bool socketMayHaveMore; /* the last receive filled all the memory it was given */
    bool expectsLittle;     /* the last receive was small */
} KtlsReadAhead;

/* Returns whether bytes are held. The socket does not become readable for them. */
bool KtlsReadAhead_HoldsBytes(const KtlsReadAhead* ahead);

/* Returns whether a read may find more without waiting: bytes that are held, or that the last receive left. */
bool KtlsReadAhead_MayHaveMore(const KtlsReadAhead* ahead);

/* The records that KtlsNative_Write has encrypted and the BIO of ktls_socketbio.h has not sent. */
typedef struct KtlsHeldRecords
{
    pthread_mutex_t mutex; /* protects the other members, and keeps what is sent in order */
    uint8_t* data;         /* owned; NULL: none */
    size_t capacity;
    size_t start; /* of the unsent bytes in data */
    size_t end;
    int32_t sendError; /* errno of the send that failed and ended sending, which OpenSSL was not told; 0: none */
} KtlsHeldRecords;

#define KTLS_FINISHED_MAX 64 /* EVP_MAX_MD_SIZE */

struct KtlsConnection
{
    uint32_t magic; /* KTLS_CONNECTION_MAGIC once the connection is complete */
    int32_t socket;
    KtlsContext* context; /* counted reference */
    /* Counted reference to the context before SwitchContext, or NULL. OpenSSL uses its SSL_CTX for the ticket keys. */
    KtlsContext* firstContext;
    SSL* ssl;
    bool inHandshake; /* KtlsNative_Handshake is running */
    bool corked;      /* TCP_CORK is set until KtlsNative_Handshake returns */
    bool beforeHello; /* nothing has been sent: the handshake has not started or is paused at the ClientHello */
    bool established; /* the handshake has succeeded */
    bool certificateRequested; /* client: the server has sent a CertificateRequest */
    bool sendOffloaded;        /* once established: the kernel encrypts. It does not change afterwards. */
    bool closeNotifySent;
    bool mayHoldRecords;     /* kernel TLS may hold records that were sent before close_notify, or close_notify */
    bool finReceived;        /* OpenSSL has read the end of the TCP stream */
    bool readsByShim;        /* OpenSSL reads the socket through the BIO of ktls_socketbio.h */
    bool writesByShim;       /* OpenSSL writes to the socket through that BIO */
    KtlsReadAhead readAhead; /* used if readsByShim */
    KtlsHeldRecords held;    /* used if writesByShim */
    bool inWrite;            /* KtlsNative_Write is running: the BIO holds what OpenSSL writes */
    int32_t bioReadError;    /* errno of a receive of this call that failed, which OpenSSL was not told; 0: none */
    int32_t receiveError;    /* set by KtlsNative_ReceiveFailed for OpenSSL's next read of the socket; 0: none */
    bool keyUpdateRequested; /* the peer has requested a KeyUpdate, which is not queued yet */
    bool keyUpdateQueued;    /* a KeyUpdate is queued in OpenSSL and not written yet */
    bool inSockmap;          /* the socket was found in a BPF sockmap: kernel TLS stays disabled */
    int32_t messageCount;    /* handshake messages received since the call began */
    bool ocspResponseSet;    /* server: OpenSSL holds an OCSP response for this connection */
    bool stapleAnnounced;    /* client: the server has sent a status_request extension */
    bool verdictDue;         /* client: verify has returned KTLS_VERDICT_LATER and is called again */
    KtlsResult failure;      /* if its status is not OK: the result that ended the connection; later calls repeat it */
    KtlsVerifyCallback verify; /* set only while KtlsNative_Handshake or KtlsNative_RequestCertificate runs */
    intptr_t verifyState;
    KtlsDecision helloDecision;
    uint8_t* serverName; /* owned; server: the content of the ClientHello's server_name, or NULL */
    int32_t serverNameLength;
    KtlsClientHello* hello; /* owned; set while helloDecision is WAITING */
    int32_t abortAlert;     /* helloDecision is to abort with this alert; 0: to continue */
    KtlsDecision certificateDecision;
    KtlsDecision postHandshakeDecision; /* client: WAITING during the pause, MADE by the next Read */
    bool sentShutdownHidden;            /* client: Read hides SSL_SENT_SHUTDOWN from OpenSSL */
    KtlsRequest request;                /* server */
    bool responseLost;                  /* server: no response can arrive: the client or the connection has ended */
    int savedVerifyMode;                /* server: restored after the request */
    uint8_t savedPeerFinished[KTLS_FINISHED_MAX]; /* server: the client's Finished before the request */
    SSL_SESSION* session; /* owned; client: the newest session that TakeSession has not returned */
    X509* ticketIssuer;   /* owned; server: what KtlsTicketChain_GetIssuer returned last, or NULL */
};

bool KtlsConnection_IsValid(const KtlsConnection* connection);

/* Returns the connection of an SSL, for OpenSSL's callbacks, or NULL. */
KtlsConnection* KtlsConnection_FromSsl(const KtlsOpenSsl* api, const SSL* ssl);

/* Performs the checks that all I/O exports share, and zeroes the result. On 0, *api is the symbol table. */
int32_t KtlsConnection_Enter(
    const KtlsConnection* connection, int32_t socket, KtlsResult* result, const KtlsOpenSsl** api);

/* As KtlsConnection_Enter, for calls that require a completed handshake. If *ended is set, the connection has failed
 * before, and the result repeats that failure. */
int32_t KtlsConnection_EnterEstablished(
    const KtlsConnection* connection, int32_t socket, KtlsResult* result, const KtlsOpenSsl** api, bool* ended);

/* Completes the result of a call after KtlsConnection_EnterEstablished. Any of these calls may have written the queued
 * KeyUpdate, and any may have ended the connection. A FIN becomes EOF, or UNEXPECTED_EOF within a record. */
void KtlsConnection_Leave(const KtlsOpenSsl* api, KtlsConnection* connection, KtlsResult* result);

/* Returns whether the shim's BIO has failed to send. The result then has the errno, as after a call that has failed. */
bool KtlsConnection_ReportSendError(KtlsConnection* connection, KtlsResult* result);

/* Saves a result after which OpenSSL can neither read nor write on this connection. Otherwise a later call would fail
 * without an entry in the error queue, which looks like an end of stream. */
void KtlsConnection_SaveFailure(const KtlsOpenSsl* api, KtlsConnection* connection, const KtlsResult* result);

/* Return whether the kernel encrypts or decrypts; false if the SSL has no BIO. */
bool KtlsConnection_IsSendOffloaded(const KtlsOpenSsl* api, const KtlsConnection* connection);
bool KtlsConnection_IsReceiveOffloaded(const KtlsOpenSsl* api, const KtlsConnection* connection);

#endif

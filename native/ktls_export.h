/* SPDX-License-Identifier: MIT
 *
 * The ABI between KernelTls (managed) and its native shim.
 *
 * These rules apply to every function:
 *   - The return value is 0 if the call was performed. Otherwise it is an errno: EINVAL (an argument violates the
 *     contract of the function), ENOSYS (KtlsNative_Initialize has not succeeded, or this libssl lacks the symbol),
 *     ENOMEM, or the errno of a failed system call, read immediately after that call.
 *   - The KtlsResult holds the outcome of a TLS operation that was performed. It is zeroed first. The WANT_ statuses
 *     are results, not failures.
 *   - No call blocks, except KtlsNative_PollerWait. Calls are retried after EINTR.
 *   - Pointers are used during the call only, unless the function states that it takes a reference.
 *   - Once OpenSSL has ended a connection (TLS_ERROR with an alert sent or received, UNEXPECTED_EOF), every later call
 *     on the connection repeats that result. A failed system call (SYSCALL) is not repeated, because data that the peer
 *     sent earlier may still be readable.
 *   - Read, Write, Flush, SendFile, Shutdown, KeyUpdate and RequestCertificate return ENOTCONN until the handshake
 *     has succeeded. Write, SendFile and KeyUpdate return EPIPE after Shutdown.
 *   - A KtlsConnection is not thread-safe: the caller must serialise all calls on one connection (SendFile and
 *     Flush are exceptions). Different connections are independent. Connections on any threads may share a KtlsContext.
 *   - Each I/O call takes the socket. It must be the socket that the connection was created with. The caller must hold
 *     a reference to its SafeHandle during the call, so that the descriptor is not closed and reused.
 *   - The process must ignore SIGPIPE, as the .NET runtime does: OpenSSL uses write(2), and sendfile(2) has no flags.
 */
#ifndef KTLS_EXPORT_H
#define KTLS_EXPORT_H

#include <stdint.h>

#define KTLS_EXPORT __attribute__((visibility("default")))

typedef struct KtlsContext KtlsContext;
typedef struct KtlsConnection KtlsConnection;
typedef struct KtlsSession KtlsSession;

/* ---------------------------------------------------------------- library */

typedef struct KtlsLibraryInfo
{
    int64_t openSslVersion;    /* OpenSSL_version_num(): 0xMNN00PP0 */
    int32_t hasKtls;           /* 1: built with enable-ktls: BIO_CTRL_GET_KTLS_* and SSL_OP_ENABLE_KTLS */
    uint8_t versionText[128];  /* OpenSSL_version(0), NUL-terminated */
    uint8_t soName[64];        /* file name of the image, NUL-terminated */
    uint8_t missingSymbol[64]; /* after ENOSYS: first missing required symbol, otherwise empty */
} KtlsLibraryInfo;

/* Writes the identity of this file: the first 8 bytes of its SHA-256, as a number in big-endian order. The caller
 * compares it with that of the file that its own declarations mirror, before it calls anything else: a library of
 * another build may lack functions, and lay out structs differently. */
KTLS_EXPORT int32_t KtlsNative_GetInterface(uint64_t* hash);

/* Binds the symbol table to the libssl that .NET has loaded into this process: the image named libssl.so* whose
 * OpenSSL_version_num() is runtimeVersion, which is what .NET reports, or else the first such image; the caller
 * compares openSslVersion. Never loads a library. Returns ENOENT if there is no image, ENOTSUP if its major version is
 * neither 3 nor 4, and ENOSYS if it lacks a required symbol. Idempotent and thread-safe: later calls return the result
 * of the first call. */
KTLS_EXPORT int32_t KtlsNative_Initialize(int64_t runtimeVersion, KtlsLibraryInfo* info);

/* Writes the text of an OpenSSL error code (KtlsResult.openSslError), NUL-terminated and truncated to capacity bytes (1
 * to 4096). */
KTLS_EXPORT int32_t KtlsNative_ErrorText(int64_t openSslError, uint8_t* text, int32_t capacity);

/* ---------------------------------------------------------------- results */

#define KTLS_STATUS_OK 0
#define KTLS_STATUS_WANT_READ 1      /* needs bytes from the peer: wait until readable, call again */
#define KTLS_STATUS_WANT_WRITE 2     /* the send buffer is full: wait until writable, call again */
#define KTLS_STATUS_CLOSE_NOTIFY 3   /* the peer closed its sending direction (RFC 8446, 6.1) */
#define KTLS_STATUS_UNEXPECTED_EOF 4 /* FIN in the handshake, or within a record */
#define KTLS_STATUS_SYSCALL 5        /* a socket call failed: sysErrno */
#define KTLS_STATUS_TLS_ERROR 6      /* OpenSSL failed: openSslError; an alert may have been sent or received */
/* Returned by Handshake only. The handshake is paused, and Handshake returns the same status until the caller makes the
 * decision. Each pause occurs at most once per connection. */
#define KTLS_STATUS_WANT_CLIENT_HELLO 7 /* KTLS_FLAG_PAUSE_AT_CLIENT_HELLO: call SwitchContext or AbortHandshake */
#define KTLS_STATUS_WANT_CERTIFICATE 8  /* KTLS_FLAG_PAUSE_AT_CERTIFICATE: call UseCertificate */
/* Read and Write also return WANT_CERTIFICATE, under KTLS_FLAG_POST_HANDSHAKE_AUTH. */
#define KTLS_STATUS_DATA_WAITING 9 /* RequestCertificate only: application data must be read first */
#define KTLS_STATUS_EOF 10         /* FIN without close_notify between two records; sending continues */

typedef struct KtlsResult
{
    int32_t status;       /* KTLS_STATUS_* */
    int32_t sysErrno;     /* errno of the failed call, otherwise 0 */
    int64_t bytes;        /* bytes transferred by Read, Write and SendFile, otherwise 0 */
    int64_t openSslError; /* earliest code of the error queue, 0 if the queue was empty */
    int32_t reason;       /* ERR_GET_REASON(openSslError): SSL_R_*; 1000 + alert number for an alert from the peer */
    int32_t pending;      /* 1: a further Read may find more without waiting, because bytes are held or were left */
    int32_t keyUpdate;    /* 1: this end owes the peer a KeyUpdate that is not sent yet (RFC 8446, 4.6.3) */
    int32_t newSession;   /* 1: KtlsNative_TakeSession has a session; set by Read only */
    int32_t messages;     /* handshake messages that the call processed: KeyUpdates, tickets, ... */
    int32_t reserved;     /* 0 */
} KtlsResult;
_Static_assert(sizeof(KtlsResult) == 48, "mirrored by the managed side");

/* ---------------------------------------------------------------- contexts */

typedef struct KtlsBlob
{
    const uint8_t* data;
    int32_t length;
    int32_t reserved; /* 0 */
} KtlsBlob;

#define KTLS_ROLE_CLIENT 0
#define KTLS_ROLE_SERVER 1

/* Bits of KtlsContextOptions.flags */
#define KTLS_FLAG_ENABLE_KTLS 0x1            /* SSL_OP_ENABLE_KTLS: offer the kernel each new key */
#define KTLS_FLAG_SEND_ONLY 0x400            /* with ENABLE_KTLS: OpenSSL keeps the receiving keys */
#define KTLS_FLAG_RECEIVE_ONLY 0x800         /* with ENABLE_KTLS: OpenSSL keeps the sending keys */
#define KTLS_FLAG_NO_TICKETS 0x2             /* no session tickets, no session cache, no resumption */
#define KTLS_FLAG_ALLOW_RENEGOTIATION 0x4    /* otherwise SSL_OP_NO_RENEGOTIATION is set */
#define KTLS_FLAG_VERIFY_PEER 0x8            /* client: required; server: send CertificateRequest */
#define KTLS_FLAG_REQUIRE_PEER 0x10          /* server: VERIFY_PEER, and fail the handshake without a certificate */
#define KTLS_FLAG_RELEASE_BUFFERS 0x20       /* SSL_MODE_RELEASE_BUFFERS: idle connections hold no record buffer */
#define KTLS_FLAG_PAUSE_AT_CLIENT_HELLO 0x40 /* server: Handshake pauses before it answers the ClientHello */
#define KTLS_FLAG_PAUSE_AT_CERTIFICATE 0x80  /* client: Handshake pauses at a CertificateRequest */
#define KTLS_FLAG_CLIENT_SESSIONS 0x100      /* client: keep sessions for TakeSession; excludes NO_TICKETS */
#define KTLS_FLAG_POST_HANDSHAKE_AUTH 0x200  /* client: offer post-handshake authentication (TLS 1.3) */

/* Receives each secret of a connection as a line in the SSLKEYLOGFILE format, NUL-terminated and without a newline. The
 * line is valid during the call. It suffices to decrypt the connection. The callback must not call the shim. */
typedef void (*KtlsKeyLogCallback)(const char* line);

typedef struct KtlsContextOptions
{
    int32_t role;  /* KTLS_ROLE_* */
    int32_t flags; /* KTLS_FLAG_* */
    /* Each is 0 or 0x0301 to 0x0304; maxVersion must not be below minVersion. If both are 0, the library's defaults
     * apply, including openssl.cnf. Otherwise 0 means no limit. */
    int32_t minVersion;
    int32_t maxVersion;
    const char* cipherList;       /* TLS 1.2 and below, OpenSSL syntax; NULL: library default */
    const char* cipherSuites;     /* TLS 1.3, OpenSSL syntax; NULL: library default */
    const uint8_t* alpn;          /* ALPN protocol list in wire form (RFC 7301, 3.1); NULL with alpnLength 0: none */
    int32_t alpnLength;           /* at most 65535 */
    int32_t certificateCount;     /* number of blobs: 0, or the leaf and its intermediates */
    const KtlsBlob* certificates; /* DER */
    intptr_t privateKey;          /* EVP_PKEY* of the leaf; 0 iff certificateCount is 0. Takes a reference. */
    /* Server: SSL_CTX_set_session_id_context. A context with another ID does not resume the sessions and tickets of
     * this one. NULL with length 0 selects a common ID. Contexts that accept different peers must have different IDs.
     */
    const uint8_t* sessionIdContext;
    int32_t sessionIdContextLength;  /* 0 to 32 */
    int32_t clientCaCount;           /* 0 or more */
    const KtlsBlob* clientCas;       /* server: DER certificates; a CertificateRequest announces their subjects */
    const char* signatureAlgorithms; /* of both ends, OpenSSL syntax ("ECDSA+SHA256:..."); NULL: default */
    KtlsKeyLogCallback keyLog;       /* called during the handshakes of its connections; NULL: none */
} KtlsContextOptions;
_Static_assert(sizeof(KtlsContextOptions) == 104, "mirrored by the managed side");

/* Creates an SSL_CTX. On 0 with status OK the caller must pass *context to KtlsNative_ContextFree once. Otherwise it is
 * NULL. A server may have no certificate: a server that pauses gets it from the context that it switches to.
 * EINVAL is also returned for a client without KTLS_FLAG_VERIFY_PEER, for an unknown flag, for a flag or member of the
 * other role, and for KTLS_FLAG_SEND_ONLY together with KTLS_FLAG_RECEIVE_ONLY.
 * ENOSYS is also returned for KTLS_FLAG_PAUSE_AT_CLIENT_HELLO and KTLS_FLAG_POST_HANDSHAKE_AUTH if the loaded libssl
 * lacks the functions that they need.
 * The status is TLS_ERROR if OpenSSL rejected an option. openSslError identifies the option (bad cipher string, key
 * mismatch, ...). It is 0 if signatureAlgorithms was rejected. */
KTLS_EXPORT int32_t
KtlsNative_ContextCreate(const KtlsContextOptions* options, KtlsContext** context, KtlsResult* result);

/* Replaces the key that encrypts the session tickets of a server context. Tickets of the previous key still resume, and
 * are replaced. Older tickets do not resume. May run concurrently with connections of the context. Returns EINVAL for a
 * client context. */
KTLS_EXPORT int32_t KtlsNative_RotateTicketKeys(KtlsContext* context);

/* Writes the cipher suites for TLS 1.2 and below of an SSL_CTX that .NET created, in cipherList syntax: names in order
 * of preference, separated by colons, without a NUL. sslContext is an SSL_CTX* of the libssl that Initialize bound. The
 * caller must keep it alive and must not change it during the call. Returns EINVAL if it is NULL.
 * *length is set to the length of the list, which is 0 if there is no such suite. Returns ERANGE and writes nothing if
 * the length exceeds capacity (0 or more; buffer may be NULL if it is 0). */
KTLS_EXPORT int32_t KtlsNative_GetCipherList(intptr_t sslContext, uint8_t* buffer, int32_t capacity, int32_t* length);

/* Releases the caller's reference. Connections of the context hold references. NULL is allowed. */
KTLS_EXPORT void KtlsNative_ContextFree(KtlsContext* context);

/* ---------------------------------------------------------------- bystanders */

/* A bystander is an SSL* that is never connected and knows nothing but the certificate of a peer. .NET reads the
 * channel binding of an SslStream from an SSL*, and no other code may have that of a connection. */

/* Creates a bystander. sslContext is an SSL_CTX* that .NET created, as for GetCipherList; the bystander references it.
 * session is the DER form of an SSL_SESSION with the certificate (d2i_SSL_SESSION), and all of it must be used. It is
 * NULL and length is 0 for a bystander without a certificate. length is at most 65535. *ssl is the caller's reference,
 * for SSL_free. */
KTLS_EXPORT int32_t
KtlsNative_BystanderCreate(intptr_t sslContext, const uint8_t* session, int32_t length, intptr_t* ssl);

/* Takes one more reference to a bystander, for SSL_free. Thread-safe: nothing ever changes a bystander. */
KTLS_EXPORT int32_t KtlsNative_BystanderReference(intptr_t ssl);

/* ---------------------------------------------------------------- connections */

/* Creates an SSL on the socket (SSL_set_fd) in the role of the context. OpenSSL never closes the socket. The socket
 * must be a connected, non-blocking stream socket. Returns ENOTCONN if it is not connected, and EINVAL if it is
 * blocking or not SOCK_STREAM. serverName is the SNI to send, or NULL. Servers ignore it. */
KTLS_EXPORT int32_t KtlsNative_ConnectionCreate(
    KtlsContext* context, int32_t socket, const char* serverName, KtlsConnection** connection, KtlsResult* result);

/* Makes the connection use another descriptor of the same socket (KtlsNative_SocketDuplicate). Later calls must pass
 * that one, and return EBADF for the first, which may be closed. Returns EBADF if socket is not the connection's. */
KTLS_EXPORT int32_t KtlsNative_ConnectionMove(KtlsConnection* connection, int32_t socket, int32_t duplicate);

/* Frees the SSL without touching the socket. NULL is allowed. */
KTLS_EXPORT void KtlsNative_ConnectionFree(KtlsConnection* connection);

/* Validates the certificate chain of the peer during the handshake. chain[0] is the leaf, followed by the certificates
 * that the peer sent. Each is an X509*, valid during the call only: take a reference (X509_up_ref) to keep one.
 * Returns an X509_V_* code. 0 accepts the chain. Any other code ends the handshake with the alert that OpenSSL maps the
 * code to. The callback must not call the shim on this connection, except KtlsNative_GetConnectionInfo.
 * The shim does not use the socket while the callback runs, and there is no time limit. The caller may let the
 * descriptor be closed during that time if the callback then returns KTLS_VERDICT_SOCKET_CLOSED. This ends the
 * connection without an alert. Afterwards only KtlsNative_ConnectionFree may be called; other calls return EBADF.
 *
 * A client requests a stapled OCSP response (RFC 6066, 8), and staple says where it is. ssl is the SSL* that holds it
 * (SSL_get_tlsext_status_ocsp_resp). TLS 1.3 sends the response with the certificate, TLS 1.2 after it. A client's
 * callback can therefore return KTLS_VERDICT_LATER once. It is called again when the first flight of the server is
 * complete, before the client answers, if it returned KTLS_VERDICT_LATER or if there is a response by then. Both
 * results must accept the chain. The second refusal has the alert bad_certificate_status_response, whatever its code.
 * chain[0] is then the certificate of the session (SSL_get0_peer_certificate), the same X509* as before. */
enum
{
    KTLS_VERDICT_SOCKET_CLOSED = -1,
    KTLS_VERDICT_LATER = -2
};
#define KTLS_STAPLE_NONE 0     /* no response, or this is a server */
#define KTLS_STAPLE_RECEIVED 1 /* ssl holds a response */
#define KTLS_STAPLE_EXPECTED 2 /* TLS 1.2: the server has announced a response, which may follow the certificate */
typedef int32_t (*KtlsVerifyCallback)(
    intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl);

/* Performs one handshake step. OK means that the handshake is complete. verify may be NULL only if the context does not
 * verify peers (EINVAL otherwise). verify and state are not used after the call returns. A certificate that arrives
 * later (renegotiation, under KTLS_FLAG_ALLOW_RENEGOTIATION) has no callback and is rejected, except during
 * KtlsNative_RequestCertificate. verify is not called if the session is resumed. */
KTLS_EXPORT int32_t KtlsNative_Handshake(
    KtlsConnection* connection, int32_t socket, KtlsVerifyCallback verify, intptr_t state, KtlsResult* result);

/* ---------------------------------------------------------------- pauses of the handshake */

/* The calls that make a decision return EBUSY unless the handshake is paused at the matching place. */

#define KTLS_SERVER_NAME_MAX 260 /* server_name with the longest name, 255 bytes */

/* The parts of a ClientHello by which a server chooses its settings, as received. The caller parses them. An extension
 * that is longer than any valid one is reported with length 0. */
typedef struct KtlsClientHello
{
    int32_t legacyVersion;
    int32_t versionsLength;                   /* -1: no supported_versions */
    int32_t serverNameLength;                 /* 0: no server_name, or an empty one */
    uint8_t versions[256];                    /* the content of supported_versions (RFC 8446, 4.2.1) */
    uint8_t serverName[KTLS_SERVER_NAME_MAX]; /* the content of server_name (RFC 6066, 3) */
} KtlsClientHello;
_Static_assert(sizeof(KtlsClientHello) == 528, "mirrored by the managed side");

/* Gets what the client offers. Nothing of it is authenticated yet. Returns EBUSY unless paused at the ClientHello. */
KTLS_EXPORT int32_t KtlsNative_GetClientHello(KtlsConnection* connection, KtlsClientHello* clientHello);

/* Ends the pause at the ClientHello: the next KtlsNative_Handshake continues as if the connection had been created from
 * newContext, which may be the current context. Takes a reference to newContext. Only the session tickets are still
 * encrypted with the keys of the first context (see sessionIdContext), and the kernel is offered keys only if both
 * contexts have ENABLE_KTLS. Returns EINVAL for a client context. The status is TLS_ERROR if OpenSSL is out of memory;
 * the handshake stays paused. */
KTLS_EXPORT int32_t KtlsNative_SwitchContext(KtlsConnection* connection, KtlsContext* newContext, KtlsResult* result);

/* Ends the pause at the ClientHello by sending a fatal alert, which ends the connection (status TLS_ERROR, repeated by
 * every later call). alert must be 10, 20, 22, 40, 42 to 51, 70, 71, 80, 86, 110, 112, 113, 115 or 120 (RFC 8446, 6.2),
 * otherwise EINVAL is returned. */
KTLS_EXPORT int32_t
KtlsNative_AbortHandshake(KtlsConnection* connection, int32_t socket, int32_t alert, KtlsResult* result);

/* Sets the OCSP response that a server staples to its certificate if the client requests it (RFC 6066, 8). data is an
 * OCSPResponse in DER, and is copied. OpenSSL 3.6 staples nothing if it cannot parse the response. length is 1 to
 * 16000, because OpenSSL's TLS 1.2 clients accept one record. A later call replaces the response. Returns EINVAL on a
 * client, and EBUSY once the handshake has started, except between a pause at the ClientHello and the next
 * KtlsNative_Handshake. */
KTLS_EXPORT int32_t KtlsNative_SetOcspResponse(KtlsConnection* connection, const uint8_t* data, int32_t length);

/* Gets the DER of a distinguished name that the peer announced as an acceptable issuer. index follows the order of the
 * peer. *length and ERANGE are as for KtlsNative_GetFinished. Returns ENODATA if there is no such index. The
 * certificate of the server has been validated before this pause. */
KTLS_EXPORT int32_t KtlsNative_GetAcceptableIssuer(
    KtlsConnection* connection, int32_t index, uint8_t* buffer, int32_t capacity, int32_t* length);

/* Ends the pause at the CertificateRequest: the client sends this chain (leaf, then intermediates, DER) instead of the
 * chain of the context. With count 0 and privateKey 0 it sends no certificate. privateKey is an EVP_PKEY*; takes a
 * reference. The status is TLS_ERROR if OpenSSL rejects the chain; the chain is removed and the handshake stays paused.
 * The same chain answers later requests, unless a pause of Read (KTLS_FLAG_POST_HANDSHAKE_AUTH) selects another one. */
KTLS_EXPORT int32_t KtlsNative_UseCertificate(
    KtlsConnection* connection, const KtlsBlob* certificates, int32_t count, intptr_t privateKey, KtlsResult* result);

/* ---------------------------------------------------------------- established connections */

/* Reads application data (SSL_read). A control record is processed, and Read returns WANT_READ with messages above 0.
 * More data may be available already; the caller decides whether to call again. capacity is 0 to INT32_MAX. With
 * capacity 0 nothing is consumed: OK means that at least one byte is ready, which pending confirms. Returns EBUSY if
 * KtlsNative_RequestCertificate must be called instead (see there).
 *
 * Under KTLS_FLAG_POST_HANDSHAKE_AUTH Read pauses once at each post-handshake CertificateRequest and returns
 * WANT_CERTIFICATE. Nothing has been sent at this point. The next Read sends the response and continues. The response
 * contains the chain that KtlsNative_UseCertificate selected, in this pause or earlier, otherwise the chain of the
 * context. KTLS_FLAG_PAUSE_AT_CERTIFICATE has no influence. Read returns WANT_WRITE if the response does not fit in the
 * send buffer: call Read again when the socket is writable. From the pause until Read returns any other status:
 *   - send(2) must not be used: OpenSSL writes, and nothing may come between the records of the response (RFC 8446,
 *     4.6.2).
 *   - Write also returns WANT_CERTIFICATE, and has no effect: call Read first.
 *   - KeyUpdate returns WANT_READ and Shutdown returns TLS_ERROR (SSL_R_SHUTDOWN_WHILE_IN_INIT). Neither has an effect.
 * A CertificateRequest that arrives after Shutdown ends the connection (SSL_R_CALLBACK_FAILED), because no response can
 * be sent. */
KTLS_EXPORT int32_t
KtlsNative_Read(KtlsConnection* connection, int32_t socket, uint8_t* buffer, int32_t capacity, KtlsResult* result);

/* Encrypts application data (SSL_write) into one record, which KtlsNative_Flush sends. length is 1 to INT32_MAX.
 * result->bytes is the number of bytes in the record. Returns WANT_WRITE, and has no effect, if many records are not
 * sent yet, or if sending has ended: call Flush first. Returns EPERM if the kernel encrypts: use send(2) instead. */
KTLS_EXPORT int32_t
KtlsNative_Write(KtlsConnection* connection, int32_t socket, const uint8_t* buffer, int32_t length, KtlsResult* result);

/* Sends the records of KtlsNative_Write. Returns WANT_WRITE if the socket has no room for all of them. A failed send
 * ends sending. Other calls that make OpenSSL send do the same first, so that records leave in order.
 *
 * Unlike other calls it uses no SSL, and may run at the same time as another call on the connection, except Free. The
 * caller needs no lock, and should hold none. */
KTLS_EXPORT int32_t KtlsNative_Flush(KtlsConnection* connection, int32_t socket, KtlsResult* result);

/* Passes to OpenSSL the error of a receive by the caller on a socket whose records the kernel decrypts. Has no effect
 * if the kernel does not decrypt. The kernel reports a bad record only once; later receives report that no data is
 * available. Therefore the next read of the socket by OpenSSL, in any later call, fails with this error, and OpenSSL
 * sends the alert:
 *   EBADMSG   the record is too short or cannot be decrypted: bad_record_mac
 *   EMSGSIZE  the record is too long: record_overflow
 *   EINVAL    the record has another version: protocol_version
 *   EIO       stands for EIO (the next record is not data), EBADMSG and EKEYEXPIRED: OpenSSL reads the socket, and
 *             treats an empty socket as EBADMSG
 *
 * The first of EBADMSG, EMSGSIZE and EINVAL counts. A send that meets the error takes it from the socket, and the
 * kernel then stores EBADMSG there, which a read on another thread receives (tls_sw.c, tls_tx_records).
 *
 * Returns EINVAL for any other error. The alert is sent only if it fits in the send buffer, and only once per
 * connection. */
KTLS_EXPORT int32_t KtlsNative_ReceiveFailed(KtlsConnection* connection, int32_t socket, int32_t error);

/* KtlsNative_SocketReceive and KtlsNative_SocketSend transfer data that the kernel decrypts or encrypts. They do not
 * use OpenSSL or a KtlsConnection, and never block. */

/* Calls recv(2) once. The data may come from several records. Returns 0 with *received 0 on FIN. Returns EAGAIN if no
 * data is available. Returns EIO if the next record is not data; the record stays for KtlsNative_Read. Returns EBADMSG,
 * EMSGSIZE or EINVAL if the kernel rejects the next record; the kernel's parser reports this only once. After each of
 * these four errors, call KtlsNative_ReceiveFailed before KtlsNative_Read. */
KTLS_EXPORT int32_t KtlsNative_SocketReceive(int32_t socket, uint8_t* buffer, int32_t capacity, int32_t* received);

/* Calls recv(2) once with MSG_PEEK, without waiting, whatever the mode of the descriptor. Before the handshake only.
 * Returns 0 with *received 0 on FIN, and EAGAIN if nothing has arrived. */
KTLS_EXPORT int32_t KtlsNative_SocketPeek(int32_t socket, uint8_t* buffer, int32_t capacity, int32_t* received);

/* Receives and discards what has arrived, without waiting: bytes, or records of any type if the kernel decrypts.
 * Returns 0 on FIN, EAGAIN if more may arrive, and EFBIG once limit bytes (1 or more) are discarded. Other errors are
 * those of recvmsg(2). *discarded is set in any case. */
KTLS_EXPORT int32_t KtlsNative_SocketDiscard(int32_t socket, int64_t limit, int64_t* discarded);

/* Duplicates the descriptor (F_DUPFD_CLOEXEC), so that the caller's can be closed without the end of the connection. */
KTLS_EXPORT int32_t KtlsNative_SocketDuplicate(int32_t socket, int32_t* duplicate);

/* Sends 1 to 64 segments with sendmsg(2), so that small segments share a record. More than one record is sent with two
 * calls, the first of them with MSG_MORE, so that records share TCP segments. *sent is less than the total if the send
 * buffer is full; the bytes sent are not delayed. Returns EAGAIN if nothing was sent. Does not raise SIGPIPE. */
KTLS_EXPORT int32_t KtlsNative_SocketSend(int32_t socket, const KtlsBlob* segments, int32_t count, int64_t* sent);

/* Sends up to count bytes (1 to INT32_MAX) of file, starting at offset (0 or more), with one sendfile(2). The kernel
 * must encrypt, otherwise EPERM is returned. The file position is neither used nor changed. Reading the file may block,
 * sending does not. If last is not 0, no more of the file follows, and its last records share TCP segments. The
 * status is:
 *   OK          bytes were sent: fewer than count if the send buffer is full or the file ends, 0 at the end of the file
 *   WANT_WRITE  nothing was sent
 *   SYSCALL     nothing was sent: ESPIPE (file cannot seek), EINVAL (the file system does not support it: read the file
 *               and use send(2)), an error of reading the file, or an error of the connection
 * Does not use OpenSSL. Unlike all other calls, it may run concurrently with Read or GetConnectionInfo on another
 * thread. For Shutdown, KeyUpdate and RequestCertificate it counts as send(2). */
KTLS_EXPORT int32_t KtlsNative_SendFile(
    KtlsConnection* connection, int32_t socket, int32_t file, int64_t offset, int32_t count, int32_t last,
    KtlsResult* result);

/* Requests a certificate from the client of an established TLS 1.3 connection (RFC 8446, 4.6.2), and processes the
 * response. Call it until it returns OK. It sends the request once. On WANT_WRITE, call it again when the socket is
 * writable; send(2) must not be used while the call runs and until it returns another status. It then reads. On
 * WANT_READ, call it again: at once if messages is above 0 and pending is set, otherwise when the socket is readable;
 * data may be sent in between. verify is as for
 * KtlsNative_Handshake, but never NULL. The status is:
 *   OK            verify has accepted the chain, and KtlsNative_GetPeerCertificate returns it; or the client sent no
 *                 certificate, and KtlsNative_GetPeerCertificate returns ENODATA, even under KTLS_FLAG_REQUIRE_PEER.
 *                 The next call starts a new request.
 *   DATA_WAITING  application data arrived first: call Read at least once, then call this again.
 *   CLOSE_NOTIFY, EOF, UNEXPECTED_EOF
 *                 the client closed its direction without a response.
 *   TLS_ERROR     the connection has ended (verify rejected the chain, the client sent an alert, ...). In two cases it
 *                 is unchanged and nothing was sent: the client did not offer post-handshake authentication
 *                 (SSL_R_EXTENSION_NOT_RECEIVED), or OpenSSL could not create the request.
 *
 * While a response is outstanding, Read returns the data that DATA_WAITING announced, and otherwise EBUSY, because only
 * this function has the verify callback. No ticket follows the response: a resumed session has the certificate of the
 * handshake, or none.
 *
 * Returns EINVAL on a client; EPIPE if Shutdown preceded the first call; ENOTSUP without TLS 1.3 or without the
 * functions of OpenSSL; EBUSY, with nothing sent, while a KeyUpdate is due or a Write waits for send buffer
 * space: complete it first. */
KTLS_EXPORT int32_t KtlsNative_RequestCertificate(
    KtlsConnection* connection, int32_t socket, KtlsVerifyCallback verify, intptr_t state, KtlsResult* result);

/* Sends close_notify (the first half of SSL_shutdown). OK means that it has been sent, by this call or earlier. */
KTLS_EXPORT int32_t KtlsNative_Shutdown(KtlsConnection* connection, int32_t socket, KtlsResult* result);

/* Does the same as Shutdown, and then closes the sending half of the socket (shutdown(2), SHUT_WR). close_notify and
 * the FIN share a segment. WANT_WRITE means that the send buffer has no space for close_notify, or that kernel TLS
 * holds records that TCP has no space for, which a FIN now would cut off. The sending half is open then, without
 * TCP_CORK, and bytes is the number of bytes that the peer has acknowledged so far: call it again, at intervals, until
 * TCP has taken all. */
KTLS_EXPORT int32_t KtlsNative_CloseSending(KtlsConnection* connection, int32_t socket, KtlsResult* result);

/* Sends a KeyUpdate (TLS 1.3). It also answers a pending request of the peer. requestPeer 1 requests an update from the
 * peer as well. send(2) must not run concurrently. Call it again with the same arguments after WANT_WRITE. Returns
 * ENOTSUP, with nothing sent, without TLS 1.3 or if this libssl cannot give the kernel a new sending key (before 3.2).
 */
KTLS_EXPORT int32_t
KtlsNative_KeyUpdate(KtlsConnection* connection, int32_t socket, int32_t requestPeer, KtlsResult* result);

typedef struct KtlsConnectionInfo
{
    int32_t protocolVersion; /* 0x0303, 0x0304, ...; 0 until the hellos are exchanged */
    int32_t cipherSuite;     /* IANA number; 0 until the hellos are exchanged */
    int32_t ktlsSend;        /* BIO_get_ktls_send on SSL_get_wbio: 1 or 0; 0 if unknown */
    int32_t ktlsReceive;     /* BIO_get_ktls_recv on SSL_get_rbio: 1 or 0; 0 if unknown */
    int32_t resumed;         /* SSL_session_reused */
    int32_t pending;         /* SSL_has_pending */
    int32_t alpnLength;      /* 0: none negotiated */
    uint8_t alpn[256];
    uint8_t serverName[KTLS_SERVER_NAME_MAX]; /* server: the content of server_name as received (KtlsClientHello) */
    int32_t serverNameLength;                 /* 0: none */
    int32_t certificateRequested;             /* client: 1 if the server requested a certificate */
    int32_t shortRecords;                     /* 1: max_fragment_length was negotiated (RFC 6066, 4) */
    int32_t sockmap; /* server: 1 if kernel TLS was not enabled because the socket is in a BPF sockmap */
} KtlsConnectionInfo;

KTLS_EXPORT int32_t KtlsNative_GetConnectionInfo(KtlsConnection* connection, KtlsConnectionInfo* info);

/* Gets a certificate of the peer, an X509*. Index 0 is the leaf, followed by the chain as sent, in a resumed session by
 * the connection before. The connection owns it. It is valid until the next call on the connection: take a reference
 * (X509_up_ref) to keep it. Returns ENODATA if there is no such index. */
KTLS_EXPORT int32_t KtlsNative_GetPeerCertificate(KtlsConnection* connection, int32_t index, intptr_t* certificate);

/* Gets the Finished message that this end (peer 0) or the peer (peer 1) sent. tls-unique (RFC 5929, 3.1) uses them,
 * below TLS 1.3 only. *length is set to the size. Returns ERANGE and copies nothing if capacity is too small. Returns
 * ENODATA until the handshake has succeeded. */
KTLS_EXPORT int32_t
KtlsNative_GetFinished(KtlsConnection* connection, int32_t peer, uint8_t* buffer, int32_t capacity, int32_t* length);

/* ---------------------------------------------------------------- client sessions */

/* A resumed session authenticates the peer without a certificate, and no verify callback runs. Use a session only for
 * the server name, the trust settings and the options under which it was established. */

typedef struct KtlsSessionInfo
{
    int32_t protocolVersion;       /* 0x0303, 0x0304, ... */
    int32_t resumable;             /* 0: a full handshake follows. The first use of a TLS 1.3 session clears it. */
    int64_t createdSeconds;        /* Unix time of the full handshake or of the TLS 1.3 ticket */
    int64_t timeoutSeconds;        /* lifetime limit of OpenSSL, counted from createdSeconds */
    int64_t ticketLifetimeSeconds; /* lifetime limit of the server; 0: not stated */
} KtlsSessionInfo;
_Static_assert(sizeof(KtlsSessionInfo) == 32, "mirrored by the managed side");

/* Under KTLS_FLAG_CLIENT_SESSIONS, gets the newest session since the last call, or NULL. The caller must pass it to
 * KtlsNative_SessionFree once. TLS 1.2 provides a session after the full handshake, TLS 1.3 after a Read that processed
 * a ticket. A fatal alert on its connection makes a session not resumable. A connection that ends without close_notify
 * does not. */
KTLS_EXPORT int32_t KtlsNative_TakeSession(KtlsConnection* connection, KtlsSession** session);

/* Offers the session in the handshake of this client. KtlsConnectionInfo.resumed indicates whether the server accepted
 * it. The caller keeps ownership of the session, and may use it on several connections at once (for TLS 1.3, RFC 8446,
 * C.4 advises against it). Returns EBUSY after the first KtlsNative_Handshake, and ENOMEM if OpenSSL could not store
 * it. */
KTLS_EXPORT int32_t KtlsNative_UseSession(KtlsConnection* connection, KtlsSession* session);

KTLS_EXPORT int32_t KtlsNative_SessionInfo(KtlsSession* session, KtlsSessionInfo* info);

/* Releases the caller's reference. Connections hold their own references. NULL is allowed. */
KTLS_EXPORT void KtlsNative_SessionFree(KtlsSession* session);

/* ---------------------------------------------------------------- kernel state of a socket */

#define KTLS_CONF_NONE 0     /* the kernel has no keys for this direction */
#define KTLS_CONF_UNKNOWN 1  /* the kernel has keys; sock_diag cannot say whether software or a device uses them */
#define KTLS_CONF_SOFTWARE 2 /* TLS_SW */
#define KTLS_CONF_DEVICE 3   /* TLS_HW */

typedef struct KtlsSocketInfo
{
    int32_t sendConf;    /* KTLS_CONF_* */
    int32_t receiveConf; /* KTLS_CONF_* */
    int32_t version;     /* 0x0303 or 0x0304, 0 unknown */
    int32_t cipher;      /* TLS_CIPHER_*: 51 GCM128, 52 GCM256, 53 CCM128, 54 ChaCha20; 0 unknown */
} KtlsSocketInfo;

/* Reads TCP_ULP, TLS_TX and TLS_RX with getsockopt (without key material), and TLS_INFO with sock_diag if permitted. */
KTLS_EXPORT int32_t KtlsNative_GetSocketInfo(int32_t socket, KtlsSocketInfo* info);

#define KTLS_LAYER_NONE 0
#define KTLS_LAYER_ULP 1     /* an upper layer protocol (TCP_ULP), "tls" or another one */
#define KTLS_LAYER_MPTCP 2   /* the TCP connection is a subflow of an MPTCP connection */
#define KTLS_LAYER_SOCKMAP 3 /* a BPF sockmap or sockhash has replaced the proto operations of the socket */
#define KTLS_LAYER_TLS 4     /* the upper layer protocol "tls", with a key in at least one direction */

/* Gets the layer that is attached to a TCP socket. Returns NONE for a socket in a sockmap while unread data is queued,
 * because the sockmap is not detectable then. A server checks again after the ClientHello (KtlsConnectionInfo.sockmap).
 * Consumes no data. */
KTLS_EXPORT int32_t KtlsNative_GetLayer(int32_t socket, int32_t* layer);

/* ---------------------------------------------------------------- probe */

#define KTLS_PROBE_CIPHERS 4  /* order: AES-128-GCM, AES-256-GCM, AES-128-CCM, ChaCha20-Poly1305 */
#define KTLS_PROBE_VERSIONS 2 /* order: TLS 1.2, TLS 1.3 */

typedef struct KtlsProbe
{
    int32_t ulpErrno;                                         /* 0: "tls" can be attached; ENOENT: no module; ... */
    int32_t send[KTLS_PROBE_VERSIONS][KTLS_PROBE_CIPHERS];    /* 0: keys accepted; otherwise the errno */
    int32_t receive[KTLS_PROBE_VERSIONS][KTLS_PROBE_CIPHERS]; /* 0: keys accepted; otherwise the errno */
    int32_t rekeySendErrno;    /* 0: a second TLS 1.3 sending key is accepted (Linux 6.14) */
    int32_t rekeyReceiveErrno; /* 0: a second TLS 1.3 receiving key is accepted (Linux 6.14) */
    int32_t noPadErrno;        /* 0: TLS_RX_EXPECT_NO_PAD is supported; EBADMSG: it corrupts records */
    int32_t zeroCopyErrno;     /* 0: TLS_TX_ZEROCOPY_RO is supported (Linux 5.19) */
} KtlsProbe;

/* Detects the features of this kernel on connected loopback TCP socket pairs, with random keys. Closes all sockets.
 * Returns 0, or the errno of creating a pair (no loopback in the network namespace, EMFILE). */
KTLS_EXPORT int32_t KtlsNative_ProbeKernel(KtlsProbe* probe);

/* ---------------------------------------------------------------- readiness */

/* An epoll instance for events that .NET's Socket does not provide without one thread per wait: writability, at least
 * SO_RCVLOWAT bytes of received data, and shutdown by the peer without receiving. */
typedef enum
{
    KTLS_WAIT_WRITABLE = 1,
    KTLS_WAIT_READABLE = 2, /* or the peer has shut down its sending direction */
} KtlsWait;

/* Creates a poller. *poller is a file descriptor, which the caller closes with close(2). */
KTLS_EXPORT int32_t KtlsNative_PollerCreate(int32_t* poller);

/* Arms a socket: KtlsNative_PollerWait reports token once when the socket is ready for one of the KtlsWait flags in
 * wait, or has failed. The token must not be negative. If the socket is already armed, its previous token is replaced
 * and not reported. The caller must keep the descriptor open until it has called KtlsNative_PollerDisarm, after the
 * report or to cancel: a descriptor that is closed earlier is never reported, and its number may be reused for another
 * socket. */
KTLS_EXPORT int32_t KtlsNative_PollerArm(int32_t poller, int32_t socket, int32_t wait, int64_t token);
KTLS_EXPORT int32_t KtlsNative_PollerDisarm(int32_t poller, int32_t socket);

/* Reports token when the peer has shut down its sending direction (FIN) or reset the connection, and again if it resets
 * the connection after a FIN. Ignores data, and errors that leave the connection open, such as that of a record that
 * the kernel has refused. The token must not be negative. The watch ends when the last descriptor of the socket is
 * closed, or by KtlsNative_PollerDisarm. A second call for the same socket returns EEXIST. */
KTLS_EXPORT int32_t KtlsNative_PollerWatchPeer(int32_t poller, int32_t socket, int64_t token);

/* Blocks until at least one token is reported. *count is set to the number of tokens, 1 to capacity (1 to 256).
 * Closing the poller does not wake it: to end a waiting thread, arm a writable socket. */
KTLS_EXPORT int32_t KtlsNative_PollerWait(int32_t poller, int64_t* tokens, int32_t capacity, int32_t* count);

#endif

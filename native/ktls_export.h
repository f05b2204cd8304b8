/* SPDX-License-Identifier: MIT
 *
 * The whole ABI between KernelTls (managed) and its native shim.
 *
 * Rules that hold for every function here:
 *   - The return value is 0 when the call was performed, or an errno that says why it was not:
 *     EINVAL (an argument breaks the contract stated at the function), ENOSYS (KtlsNative_Initialize has not
 *     succeeded, or this libssl lacks the symbol), ENOMEM, or the errno of a failing system call, read right
 *     after that call.
 *   - What a performed TLS operation came to is in the KtlsResult, zeroed first. The WANT_ statuses are results, not
 *     failures. No call blocks, except KtlsNative_PollerWait; EINTR is retried.
 *   - Pointers passed in are used during the call only, unless the function says it takes a reference.
 *   - Once OpenSSL has ended a connection (TLS_ERROR with an alert sent or received, UNEXPECTED_EOF), every later call
 *     on it repeats that result. A failed system call (SYSCALL) is not repeated: what the peer sent before it may
 *     still be read.
 *   - Read, Write, SendFile, Shutdown, KeyUpdate and RequestCertificate answer ENOTCONN before the handshake has ended
 *     well; Write, SendFile and KeyUpdate answer EPIPE after Shutdown.
 *   - A KtlsConnection is not thread-safe: the caller serialises all calls on one connection (SendFile knows an
 *     exception). Different connections are independent. A KtlsContext may be shared by connections on any thread once
 * created.
 *   - The caller names the socket in each I/O call. It must be the one the connection was created with; holding
 *     a reference on its SafeHandle during the call is what keeps the descriptor from being reused.
 *   - The process must ignore SIGPIPE (the .NET runtime does): OpenSSL writes with write(2),
 *     and sendfile(2) has no flags.
 */
#ifndef KTLS_EXPORT_H
#define KTLS_EXPORT_H

#include <stdint.h>

#define KTLS_EXPORT __attribute__((visibility("default")))

typedef struct KtlsContext KtlsContext;
typedef struct KtlsConnection KtlsConnection;
typedef struct KtlsSession KtlsSession;

/* ---------------------------------------------------------------- library: which libssl, and what it can do */

/* Bits of KtlsLibraryInfo.capabilities. Absent bit: the symbol or feature is not in the loaded libssl. */
#define KTLS_CAP_KTLS 0x1            /* built with enable-ktls: BIO_CTRL_GET_KTLS_* answer and the option is known */
#define KTLS_CAP_KEY_UPDATE 0x2      /* SSL_key_update and SSL_get_key_update_type */
#define KTLS_CAP_SENDFILE 0x4        /* SSL_sendfile */
#define KTLS_CAP_CLIENT_HELLO_CB 0x8 /* SSL_CTX_set_client_hello_cb and what reads the hello */
#define KTLS_CAP_POST_HANDSHAKE_AUTH 0x10 /* SSL_verify_client_post_handshake and what goes with it */

typedef struct KtlsLibraryInfo
{
    int64_t openSslVersion;    /* OpenSSL_version_num(): 0xMNN00PP0 */
    int32_t capabilities;      /* KTLS_CAP_* */
    int32_t fromProcess;       /* 1: the image was already loaded by .NET; 0: this call loaded it */
    uint8_t versionText[128];  /* OpenSSL_version(0), NUL-terminated */
    uint8_t soName[64];        /* name it was opened by, NUL-terminated */
    uint8_t missingSymbol[64]; /* with ENOSYS: the first required symbol that was not found, else empty */
} KtlsLibraryInfo;

/* Binds the symbol table to the libssl that .NET uses: libssl.so.<versionOverride> when that is not NULL or empty
 * and can be opened, else libssl.so.3; an image already in the process is preferred over a new one.
 * 0; ENOENT: no libssl can be opened; ENOSYS: it is not OpenSSL 3.x or lacks a required symbol. Idempotent and
 * thread-safe: later calls return the first call's answer. */
KTLS_EXPORT int32_t KtlsNative_Initialize(const char* versionOverride, KtlsLibraryInfo* info);

/* Text of an OpenSSL error code (KtlsResult.openSslError), NUL-terminated, truncated to capacity (1 to 4096). */
KTLS_EXPORT int32_t KtlsNative_ErrorText(int64_t openSslError, uint8_t* text, int32_t capacity);

/* ---------------------------------------------------------------- results */

#define KTLS_STATUS_OK 0
#define KTLS_STATUS_WANT_READ 1      /* needs bytes from the peer: wait for readability, call again */
#define KTLS_STATUS_WANT_WRITE 2     /* the socket's send buffer is full: wait for writability, call again */
#define KTLS_STATUS_CLOSE_NOTIFY 3   /* the peer ended its direction (RFC 8446, 6.1) */
#define KTLS_STATUS_UNEXPECTED_EOF 4 /* FIN without close_notify: a truncation (see KtlsNative_AllowTruncation) */
#define KTLS_STATUS_SYSCALL 5        /* a socket call failed: sysErrno */
#define KTLS_STATUS_TLS_ERROR 6      /* OpenSSL failed: openSslError; an alert may have been sent or received */
/* From Handshake only: it waits for the caller, says the same again until then, and pauses at most once at each. */
#define KTLS_STATUS_WANT_CLIENT_HELLO 7 /* KTLS_FLAG_PAUSE_AT_CLIENT_HELLO: SwitchContext or AbortHandshake is due */
#define KTLS_STATUS_WANT_CERTIFICATE 8  /* KTLS_FLAG_PAUSE_AT_CERTIFICATE: UseCertificate is due */
/* From Read, WANT_CERTIFICATE is the other pause: KTLS_FLAG_POST_HANDSHAKE_AUTH. */
#define KTLS_STATUS_DATA_WAITING 9 /* from RequestCertificate only: data is there, and to be read first */

typedef struct KtlsResult
{
    int32_t status;       /* KTLS_STATUS_* */
    int32_t sysErrno;     /* errno at the failing call; 0 when it plays no part */
    int64_t bytes;        /* bytes read or written by Read, Write and SendFile, else 0 */
    int64_t openSslError; /* earliest code of the error queue, 0 when the queue was empty */
    int32_t reason;       /* ERR_GET_REASON(openSslError): SSL_R_*; 1000 + alert number for a peer's alert */
    int32_t pending;      /* 1: OpenSSL holds bytes received but not handed out (SSL_has_pending) */
    int32_t keyUpdate;    /* 1: a KeyUpdate of ours is due and not yet sent (RFC 8446, 4.6.3) */
    int32_t newSession;   /* 1: KtlsNative_TakeSession has a session to hand out; set by Read alone */
    int32_t messages;     /* handshake messages of the peer's that this Read took: KeyUpdates, tickets, ... */
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
#define KTLS_FLAG_ENABLE_KTLS 0x1         /* SSL_OP_ENABLE_KTLS: ask the kernel at each key change */
#define KTLS_FLAG_SEND_ONLY 0x400         /* with ENABLE_KTLS: the receiving keys stay with OpenSSL */
#define KTLS_FLAG_RECEIVE_ONLY 0x800      /* with ENABLE_KTLS: the sending keys stay with OpenSSL */
#define KTLS_FLAG_NO_TICKETS 0x2          /* no session tickets and no session cache: no resumption */
#define KTLS_FLAG_ALLOW_RENEGOTIATION 0x4 /* default: SSL_OP_NO_RENEGOTIATION */
#define KTLS_FLAG_VERIFY_PEER 0x8         /* client: always set by the caller; server: send CertificateRequest */
#define KTLS_FLAG_REQUIRE_PEER 0x10       /* server: VERIFY_PEER, and no certificate ends the handshake with an alert */
#define KTLS_FLAG_RELEASE_BUFFERS 0x20    /* SSL_MODE_RELEASE_BUFFERS: idle connections hold no record buffer */
#define KTLS_FLAG_PAUSE_AT_CLIENT_HELLO 0x40 /* server: Handshake stops once the ClientHello is in, unanswered */
#define KTLS_FLAG_PAUSE_AT_CERTIFICATE 0x80  /* client: Handshake stops where the server asks for a certificate */
#define KTLS_FLAG_CLIENT_SESSIONS 0x100      /* client: keep new sessions for TakeSession; not with NO_TICKETS */
#define KTLS_FLAG_POST_HANDSHAKE_AUTH 0x200  /* client: offers to be asked for its certificate later (TLS 1.3) */

/* Gets each secret of a connection as a line for SSLKEYLOGFILE, NUL-terminated, without a newline, valid during the
 * call: whoever has the line can decrypt the connection. Must not call back into the shim. */
typedef void (*KtlsKeyLogCallback)(const char* line);

typedef struct KtlsContextOptions
{
    int32_t role;  /* KTLS_ROLE_* */
    int32_t flags; /* KTLS_FLAG_* */
    /* 0, or 0x0301 to 0x0304, maxVersion not below minVersion. Both 0: the library's default, openssl.cnf included.
     * Otherwise 0 is no limit. */
    int32_t minVersion;
    int32_t maxVersion;
    const char* cipherList;       /* TLS 1.2 and below, OpenSSL syntax; NULL: library default */
    const char* cipherSuites;     /* TLS 1.3, OpenSSL syntax; NULL: library default */
    const uint8_t* alpn;          /* ALPN protocol list in wire form (RFC 7301, 3.1); NULL with alpnLength 0: none */
    int32_t alpnLength;           /* at most 65535 */
    int32_t certificateCount;     /* number of blobs: 0, or the leaf followed by its intermediates */
    const KtlsBlob* certificates; /* DER */
    intptr_t privateKey;          /* EVP_PKEY* of the leaf; 0 iff certificateCount is 0. A reference is taken. */
    /* Server: names what its sessions and tickets are good for; a context with another name does not resume them.
     * NULL with length 0: one name for all. Contexts that admit different peers must differ in it. */
    const uint8_t* sessionIdContext;
    int32_t sessionIdContextLength;  /* 0 to 32 */
    int32_t clientCaCount;           /* 0 or more */
    const KtlsBlob* clientCas;       /* server: DER certificates whose subjects a CertificateRequest announces */
    const char* signatureAlgorithms; /* OpenSSL syntax ("ECDSA+SHA256:..."), offered and accepted; NULL: default */
    KtlsKeyLogCallback keyLog;       /* called from the handshakes of its connections; NULL: none */
} KtlsContextOptions;
_Static_assert(sizeof(KtlsContextOptions) == 104, "mirrored by the managed side");

/* Creates an SSL_CTX. EINVAL also for a client without KTLS_FLAG_VERIFY_PEER, for an unknown flag, for a flag or member
 * of the other role, and for both of KTLS_FLAG_SEND_ONLY and KTLS_FLAG_RECEIVE_ONLY. A server may have no certificate:
 * one that pauses gets it with the context it is switched to. ENOSYS: KTLS_FLAG_PAUSE_AT_CLIENT_HELLO without
 * KTLS_CAP_CLIENT_HELLO_CB, KTLS_FLAG_POST_HANDSHAKE_AUTH without KTLS_CAP_POST_HANDSHAKE_AUTH. On 0 with status OK,
 * *context is to be given to KtlsNative_ContextFree once; otherwise it is NULL. status TLS_ERROR: OpenSSL refused an
 * option (openSslError says which: bad cipher string, key mismatch...; it is 0 where signatureAlgorithms are at fault).
 */
KTLS_EXPORT int32_t
KtlsNative_ContextCreate(const KtlsContextOptions* options, KtlsContext** context, KtlsResult* result);

/* Gives a server's context a new key for sealing its session tickets; those sealed with the key before still resume,
 * and are replaced, and older ones do not. Thread-safe beside connections of the context. EINVAL: not a server's
 * context. */
KTLS_EXPORT int32_t KtlsNative_RotateTicketKeys(KtlsContext* context);

/* Writes the suites for TLS 1.2 and below of an SSL_CTX that is not ours, .NET's own, as a cipherList: their names in
 * the order of preference, joined by colons, without a NUL. sslContext: an SSL_CTX* of the libssl that Initialize
 * bound, which the caller keeps alive and changes on no other thread during the call; EINVAL for NULL. *length is what
 * the list takes, 0 where there is no such suite; ERANGE: more than capacity (0 or more; buffer may then be NULL), and
 * nothing is written. */
KTLS_EXPORT int32_t KtlsNative_GetCipherList(intptr_t sslContext, uint8_t* buffer, int32_t capacity, int32_t* length);

/* Releases the caller's reference; connections made from it keep what they need. NULL is allowed. */
KTLS_EXPORT void KtlsNative_ContextFree(KtlsContext* context);

/* ---------------------------------------------------------------- connections */

/* Creates an SSL bound to the socket (SSL_set_fd, never closed by OpenSSL) in the context's role. socket must be a
 * connected, non-blocking stream socket: ENOTCONN, EINVAL (blocking, or not SOCK_STREAM) otherwise.
 * serverName: SNI to send, NULL for none; ignored by servers. */
KTLS_EXPORT int32_t KtlsNative_ConnectionCreate(
    KtlsContext* context, int32_t socket, const char* serverName, KtlsConnection** connection, KtlsResult* result);

/* Frees the SSL without touching the socket. NULL is allowed. */
KTLS_EXPORT void KtlsNative_ConnectionFree(KtlsConnection* connection);

/* Judges the peer's certificate chain while the handshake waits: chain[0] is the leaf, then what the peer sent, each an
 * X509*, valid during the call only: who keeps one takes a reference (X509_up_ref). Returns an X509_V_* code: 0
 * accepts, anything else ends the handshake with the alert that OpenSSL maps that code to. Must not call back into this
 * connection, except by KtlsNative_GetConnectionInfo. */
typedef int32_t (*KtlsVerifyCallback)(intptr_t state, const intptr_t* chain, int32_t count);

/* One handshake step. OK: done. verify may be NULL where the context does not verify peers (EINVAL elsewhere); it and
 * state are forgotten before the call returns. A certificate that comes later (renegotiation, under
 * KTLS_FLAG_ALLOW_RENEGOTIATION) meets no callback and is refused, unless by KtlsNative_RequestCertificate. A resumed
 * session brings no certificate to judge. */
KTLS_EXPORT int32_t KtlsNative_Handshake(
    KtlsConnection* connection, int32_t socket, KtlsVerifyCallback verify, intptr_t state, KtlsResult* result);

/* From now on a FIN without close_notify is CLOSE_NOTIFY, unless it comes within a record; for the caller who knows by
 * other means where the data ends. Both directions go on as after a close_notify. ENOTCONN before the handshake has
 * ended well. */
KTLS_EXPORT int32_t KtlsNative_AllowTruncation(KtlsConnection* connection);

/* ---------------------------------------------------------------- pauses of the handshake */

/* Each of the calls that decide answers EBUSY where the handshake is not paused at its place. */

/* Bits of KtlsClientHello.versions */
#define KTLS_OFFERS_SSL3 0x1
#define KTLS_OFFERS_TLS10 0x2
#define KTLS_OFFERS_TLS11 0x4
#define KTLS_OFFERS_TLS12 0x8
#define KTLS_OFFERS_TLS13 0x10

typedef struct KtlsClientHello
{
    int32_t versions;        /* KTLS_OFFERS_*: of supported_versions where it was sent, else the legacy version alone */
    int32_t alpnLength;      /* bytes in alpn; 0: no extension, or a malformed one */
    int32_t alpnTruncated;   /* 1: the offer is longer; alpn holds the names that fit, whole */
    int32_t reserved;        /* 0 */
    uint8_t serverName[256]; /* NUL-terminated, no control characters; empty: no server_name, or malformed */
    uint8_t alpn[1024];      /* wire form (RFC 7301, 3.1), without the list's own length */
} KtlsClientHello;
_Static_assert(sizeof(KtlsClientHello) == 1296, "mirrored by the managed side");

/* What the client offers; nothing of it is authenticated yet. EBUSY unless paused at the ClientHello. */
KTLS_EXPORT int32_t KtlsNative_GetClientHello(KtlsConnection* connection, KtlsClientHello* clientHello);

/* Decides the pause at the ClientHello: the handshake goes on, at the next KtlsNative_Handshake, as if the connection
 * had been made from newContext, which is referenced and may be the present one. EINVAL: not a server's context. Only
 * tickets are still sealed with the first context's keys: see sessionIdContext. status TLS_ERROR: OpenSSL could not
 * (memory); the pause lasts. */
KTLS_EXPORT int32_t KtlsNative_SwitchContext(KtlsConnection* connection, KtlsContext* newContext, KtlsResult* result);

/* Decides the pause at the ClientHello the other way: sends this fatal alert and ends the connection (status
 * TLS_ERROR, repeated by every later call). alert: 10, 20, 22, 40, 42 to 51, 70, 71, 80, 86, 110, 112, 113, 115 or
 * 120 (RFC 8446, 6.2), EINVAL otherwise. */
KTLS_EXPORT int32_t
KtlsNative_AbortHandshake(KtlsConnection* connection, int32_t socket, int32_t alert, KtlsResult* result);

/* Stapled where the client asked for it and a certificate is sent (RFC 6066, 8). data: OCSPResponse in DER, copied
 * (OpenSSL 3.6 staples nothing where it cannot parse it); length 1 to 16000 (OpenSSL's TLS 1.2 clients take one
 * record). A later call replaces it. EINVAL on a client; EBUSY once the handshake runs, except between a pause at the
 * ClientHello and the next KtlsNative_Handshake. */
KTLS_EXPORT int32_t KtlsNative_SetOcspResponse(KtlsConnection* connection, const uint8_t* data, int32_t length);

/* DER of a distinguished name that the peer announced as an acceptable issuer, by index, in the peer's order. *length,
 * ERANGE as with KtlsNative_GetFinished; ENODATA: none with this index. The server's certificate was judged before
 * this pause. */
KTLS_EXPORT int32_t KtlsNative_GetAcceptableIssuer(
    KtlsConnection* connection, int32_t index, uint8_t* buffer, int32_t capacity, int32_t* length);

/* Decides the pause at the CertificateRequest: this chain (leaf, then intermediates, DER) is sent in place of the
 * context's; count 0 with privateKey 0: none is. privateKey: EVP_PKEY*, a reference is taken. status TLS_ERROR: OpenSSL
 * refused it; nothing is left of it and the pause lasts. A later request is answered the same, unless another chain is
 * chosen in a pause of Read (KTLS_FLAG_POST_HANDSHAKE_AUTH). */
KTLS_EXPORT int32_t KtlsNative_UseCertificate(
    KtlsConnection* connection, const KtlsBlob* certificates, int32_t count, intptr_t privateKey, KtlsResult* result);

/* ---------------------------------------------------------------- established connections */

/* SSL_read: hands out application data. A control record on the way is taken, and answered by WANT_READ with messages
 * above 0: what follows may be there already, and whether to go on is the caller's decision. capacity 0 to INT32_MAX;
 * with capacity 0 nothing is consumed: OK means that at least one byte is ready, as pending then says. EBUSY:
 * KtlsNative_RequestCertificate is to be called, not this (see there).
 *
 * Under KTLS_FLAG_POST_HANDSHAKE_AUTH it pauses once at each request for a certificate, with WANT_CERTIFICATE; nothing
 * has been sent yet. The next Read sends the answer and goes on: the chain of KtlsNative_UseCertificate, where that was
 * called now or before, else the context's; KTLS_FLAG_PAUSE_AT_CERTIFICATE has no part in it. WANT_WRITE: the answer
 * waits for room, Read again when writable. From the pause until a Read says something else than these two
 *   - no data may be sent by send(2): OpenSSL writes, and nothing may come between its records (RFC 8446, 4.6.2);
 *   - Write answers EBUSY in the pause. But a Write that had said WANT_WRITE is to be finished in the pause, until then
 *     Read says WANT_CERTIFICATE again;
 *   - KeyUpdate says WANT_READ, Shutdown TLS_ERROR (SSL_R_SHUTDOWN_WHILE_IN_INIT), and neither does harm.
 * A request that comes after Shutdown ends the connection (SSL_R_CALLBACK_FAILED): there is nothing left to say. */
KTLS_EXPORT int32_t
KtlsNative_Read(KtlsConnection* connection, int32_t socket, uint8_t* buffer, int32_t capacity, KtlsResult* result);

/* SSL_write, partial writes enabled. length 1 to INT32_MAX. After WANT_WRITE the retry must offer the same bytes
 * (the buffer may have moved). EPERM where sending is in the kernel: data goes by send(2) there, and before 3.5.7
 * OpenSSL would keep the caller's pointer across WANT_WRITE. */
KTLS_EXPORT int32_t
KtlsNative_Write(KtlsConnection* connection, int32_t socket, const uint8_t* buffer, int32_t length, KtlsResult* result);

/* Tells OpenSSL what a receive of the caller's on the socket failed with, where receiving is in the kernel (elsewhere
 * it does nothing). The kernel tells once that it refuses a record, and from then on that nothing is there; so
 * OpenSSL's next read of the socket, by whatever call comes next, fails with this error, and the peer gets the alert:
 *   EBADMSG: too short, or cannot be decrypted: bad_record_mac
 *   EMSGSIZE: too long: record_overflow
 *   EINVAL: another version: protocol_version
 *   EIO: one of EIO (the next record is not data), EBADMSG and EKEYEXPIRED: the socket is read; nothing is EBADMSG
 * EINVAL for any other error. An alert is sent where the socket has room for it, and only one on a connection. */
KTLS_EXPORT int32_t KtlsNative_ReceiveFailed(KtlsConnection* connection, int32_t socket, int32_t error);

/* Data where a direction is in the kernel; OpenSSL has no part in it, and no connection is named. Neither waits. */

/* One recv(2) into buffer, from as many records as are there. 0 with *received 0: FIN. EAGAIN: nothing is there. EIO:
 * the next record is not data, and stays for KtlsNative_Read. EBADMSG, EMSGSIZE and EINVAL, of the kernel's parser told
 * once only: the next record is refused. KtlsNative_ReceiveFailed is to be told of all four before KtlsNative_Read. */
KTLS_EXPORT int32_t KtlsNative_SocketReceive(int32_t socket, uint8_t* buffer, int32_t capacity, int32_t* received);

/* sendmsg(2) of 1 to 64 segments, so that small ones share a record. More than a record is two calls, of which the
 * first has MSG_MORE: so records share TCP's segments. *sent may be less than was offered: the rest found no room, and
 * what was sent is on its way. EAGAIN: nothing found room. No SIGPIPE is raised. */
KTLS_EXPORT int32_t KtlsNative_SocketSend(int32_t socket, const KtlsBlob* segments, int32_t count, int64_t* sent);

/* sendfile(2), one step: sends up to count bytes (1 to INT32_MAX) of file from offset (0 or more) on, where sending is
 * in the kernel. file is borrowed for the call; its own position is neither used nor moved. Reading it may block,
 * sending does not. OK: bytes were sent, fewer than count where the socket is full or the file ends; 0: the file has
 * none at offset. WANT_WRITE: none were sent. SYSCALL, none were sent: ESPIPE (file cannot seek), EINVAL (its file
 * system cannot do this: read it and send(2)), a failure of reading file, or of the connection. EPERM: sending is not
 * in the kernel. Uses nothing of OpenSSL: beside a Read or GetConnectionInfo on another thread it is safe, unlike
 * anything else; to Shutdown, KeyUpdate and RequestCertificate it is data by send(2). */
KTLS_EXPORT int32_t KtlsNative_SendFile(
    KtlsConnection* connection, int32_t socket, int32_t file, int64_t offset, int32_t count, KtlsResult* result);

/* A server asks its client for a certificate on an established TLS 1.3 connection (RFC 8446, 4.6.2), and takes the
 * answer. Called again until it says OK: it sends the request once (WANT_WRITE: again when writable; no data by send(2)
 * while this call runs and until it says something else), then reads (WANT_READ: again when readable; data may be sent
 * meanwhile). verify is as in KtlsNative_Handshake, never NULL.
 *   OK: verify has accepted the answer, and KtlsNative_GetPeerCertificate has it; or the client sent no certificate,
 *     whatever KTLS_FLAG_REQUIRE_PEER says: ENODATA there. The next call is a new request.
 *   DATA_WAITING: data came first. Read hands it out, at least once; then call this again.
 *   CLOSE_NOTIFY, UNEXPECTED_EOF: the client ended without an answer.
 *   TLS_ERROR: the connection has ended (verify refused, the client's alert, ...), with two exceptions that leave it as
 *     it was, nothing sent: the client did not offer to be asked (SSL_R_EXTENSION_NOT_RECEIVED), or OpenSSL could not.
 * While the request is out, Read hands out the data that DATA_WAITING announced and answers EBUSY to all else: only
 * here the answer meets its judge. No ticket follows: resumed sessions show the certificate of the handshake, or none.
 * EINVAL also on a client; EPIPE: the first call comes after Shutdown; ENOTSUP: not TLS 1.3, or no
 * KTLS_CAP_POST_HANDSHAKE_AUTH; EBUSY, nothing sent: a KeyUpdate is due, or a Write waits for room: finish it first. */
KTLS_EXPORT int32_t KtlsNative_RequestCertificate(
    KtlsConnection* connection, int32_t socket, KtlsVerifyCallback verify, intptr_t state, KtlsResult* result);

/* SSL_shutdown's first half: sends close_notify once. OK: it is sent (now or before). */
KTLS_EXPORT int32_t KtlsNative_Shutdown(KtlsConnection* connection, int32_t socket, KtlsResult* result);

/* Sends a KeyUpdate (TLS 1.3), or the one that is due as the answer to the peer's. requestPeer: 1 asks the peer to
 * update as well. No data may be on its way through send(2) meanwhile. Call again with the same arguments after
 * WANT_WRITE. ENOTSUP, nothing sent: not TLS 1.3, or this libssl cannot hand the kernel a new sending key (< 3.2). */
KTLS_EXPORT int32_t
KtlsNative_KeyUpdate(KtlsConnection* connection, int32_t socket, int32_t requestPeer, KtlsResult* result);

typedef struct KtlsConnectionInfo
{
    int32_t protocolVersion; /* 0x0303, 0x0304, ...; 0 until the hellos are exchanged */
    int32_t cipherSuite;     /* IANA number; 0 until the hellos are exchanged */
    int32_t ktlsSend;        /* BIO_get_ktls_send on SSL_get_wbio: 1 or 0; 0 when unknown */
    int32_t ktlsReceive;     /* BIO_get_ktls_recv on SSL_get_rbio: 1 or 0; 0 when unknown */
    int32_t resumed;         /* SSL_session_reused */
    int32_t pending;         /* SSL_has_pending */
    int32_t alpnLength;      /* 0: none negotiated */
    uint8_t alpn[256];
    uint8_t serverName[256];      /* server: SNI received, NUL-terminated, empty for none */
    int32_t certificateRequested; /* client: 1 where the server asked for a certificate */
    int32_t shortRecords;         /* 1: max_fragment_length was negotiated (RFC 6066, 4) */
    int32_t sockmap; /* server: 1 where the kernel was not asked for, because the socket is in a BPF sockmap */
} KtlsConnectionInfo;

KTLS_EXPORT int32_t KtlsNative_GetConnectionInfo(KtlsConnection* connection, KtlsConnectionInfo* info);

/* The peer's certificate, an X509*: index 0 is the leaf, then the chain as sent. It belongs to the connection and is
 * good until the next call with it: who keeps it takes a reference (X509_up_ref). ENODATA: none with this index. */
KTLS_EXPORT int32_t
KtlsNative_GetPeerCertificate(const KtlsConnection* connection, int32_t index, intptr_t* certificate);

/* The Finished message of the handshake, ours (peer 0) or the peer's (peer 1): tls-unique (RFC 5929, 3.1) is made of
 * them, below TLS 1.3 only. *length is set to the size; the message is copied only where capacity suffices, ERANGE
 * otherwise; ENODATA before the handshake has ended well. */
KTLS_EXPORT int32_t
KtlsNative_GetFinished(KtlsConnection* connection, int32_t peer, uint8_t* buffer, int32_t capacity, int32_t* length);

/* ---------------------------------------------------------------- sessions of clients */

/* A session vouches for the peer in place of its certificate, which no callback sees again: use it only for the name,
 * the trust and the options it was made under. */

typedef struct KtlsSessionInfo
{
    int32_t protocolVersion;       /* 0x0303, 0x0304, ... */
    int32_t resumable;             /* 0: a full handshake would follow. TLS 1.3 sets that at the first use. */
    int64_t createdSeconds;        /* Unix time; of the full handshake, or of the TLS 1.3 ticket */
    int64_t timeoutSeconds;        /* OpenSSL's own limit, from then on */
    int64_t ticketLifetimeSeconds; /* the server's limit on its ticket; 0: not stated */
} KtlsSessionInfo;
_Static_assert(sizeof(KtlsSessionInfo) == 32, "mirrored by the managed side");

/* Under KTLS_FLAG_CLIENT_SESSIONS: hands out the newest session since the last call, NULL for none; to be given to
 * KtlsNative_SessionFree once. TLS 1.2 has one after the full handshake, TLS 1.3 after a Read that met a ticket. It
 * ceases to be resumable when its connection ends with a fatal alert, not when it ends without close_notify. */
KTLS_EXPORT int32_t KtlsNative_TakeSession(KtlsConnection* connection, KtlsSession** session);

/* Offers the session in this client's handshake; GetConnectionInfo's resumed says whether the server took it. EBUSY
 * after the first KtlsNative_Handshake. The session stays the caller's, and may be used on several connections at once
 * (TLS 1.3: RFC 8446, C.4 advises against it). ENOMEM: OpenSSL could not take it. */
KTLS_EXPORT int32_t KtlsNative_UseSession(KtlsConnection* connection, KtlsSession* session);

KTLS_EXPORT int32_t KtlsNative_SessionInfo(KtlsSession* session, KtlsSessionInfo* info);

/* Releases the caller's reference; connections keep what they use. NULL is allowed. */
KTLS_EXPORT void KtlsNative_SessionFree(KtlsSession* session);

/* ---------------------------------------------------------------- the kernel's own word */

#define KTLS_CONF_NONE 0     /* no keys in the kernel for this direction */
#define KTLS_CONF_UNKNOWN 1  /* keys are there; software or device is not known (sock_diag denied or absent) */
#define KTLS_CONF_SOFTWARE 2 /* TLS_SW */
#define KTLS_CONF_DEVICE 3   /* TLS_HW */

typedef struct KtlsSocketInfo
{
    int32_t ulp;         /* 1: the "tls" upper layer protocol is attached; 0: none; 2: another one */
    int32_t sendConf;    /* KTLS_CONF_* */
    int32_t receiveConf; /* KTLS_CONF_* */
    int32_t version;     /* 0x0303 or 0x0304, 0 unknown */
    int32_t cipher;      /* TLS_CIPHER_*: 51 GCM128, 52 GCM256, 53 CCM128, 54 ChaCha20; 0 unknown */
    int32_t maxSegment;  /* TCP_MAXSEG in bytes, 0 unknown */
    uint8_t ulpName[32]; /* NUL-terminated, empty for none */
} KtlsSocketInfo;

/* Reads TCP_ULP, TLS_TX, TLS_RX by getsockopt (no key material is read) and TLS_INFO by sock_diag where allowed. */
KTLS_EXPORT int32_t KtlsNative_GetSocketInfo(int32_t socket, KtlsSocketInfo* info);

#define KTLS_LAYER_NONE 0
#define KTLS_LAYER_ULP 1     /* an upper layer protocol (TCP_ULP), "tls" or another one */
#define KTLS_LAYER_MPTCP 2   /* the TCP connection is a part of an MPTCP one */
#define KTLS_LAYER_SOCKMAP 3 /* a BPF sockmap (or sockhash) has replaced the socket's functions */

/* What sits on a TCP socket already. NONE where data waits to be received on a socket in a sockmap: it does not show
 * then. A server looks again once it has the ClientHello (KtlsConnectionInfo.sockmap). Nothing is consumed. */
KTLS_EXPORT int32_t KtlsNative_GetLayer(int32_t socket, int32_t* layer);

/* ---------------------------------------------------------------- probe */

#define KTLS_PROBE_CIPHERS 4  /* order: AES-128-GCM, AES-256-GCM, AES-128-CCM, ChaCha20-Poly1305 */
#define KTLS_PROBE_VERSIONS 2 /* order: TLS 1.2, TLS 1.3 */

typedef struct KtlsProbe
{
    int32_t ulpErrno;                                         /* 0: "tls" can be attached; ENOENT: no module; ... */
    int32_t send[KTLS_PROBE_VERSIONS][KTLS_PROBE_CIPHERS];    /* 0: keys accepted; else the errno */
    int32_t receive[KTLS_PROBE_VERSIONS][KTLS_PROBE_CIPHERS]; /* 0: keys accepted; else the errno */
    int32_t rekeySendErrno;    /* 0: a second TLS 1.3 sending key is accepted (Linux 6.14) */
    int32_t rekeyReceiveErrno; /* 0: a second TLS 1.3 receiving key is accepted (Linux 6.14) */
    int32_t noPadErrno;        /* 0: TLS_RX_EXPECT_NO_PAD; EBADMSG: it garbles padded records */
    int32_t zeroCopyErrno;     /* 0: TLS_TX_ZEROCOPY_RO (Linux 5.19) */
} KtlsProbe;

/* Finds out what this kernel takes, by trying it on connected loopback TCP pairs of its own; all sockets are closed
 * again and the keys are throw-away. 0, or the errno of making such a pair (no network namespace loopback, EMFILE). */
KTLS_EXPORT int32_t KtlsNative_ProbeKernel(KtlsProbe* probe);

/* ---------------------------------------------------------------- readiness, and the peer's end */

/* An epoll set for what .NET's Socket does not offer without a thread per wait: waiting for writability, for more bytes
 * than are there already (as many as SO_RCVLOWAT says), and for the peer's end without receiving. */
typedef enum
{
    KTLS_WAIT_WRITABLE = 0,
    KTLS_WAIT_READABLE = 1, /* or the peer has sent its last byte */
} KtlsWait;

/* *poller is a file descriptor, to be closed by KtlsNative_PollerClose. */
KTLS_EXPORT int32_t KtlsNative_PollerCreate(int32_t* poller);
KTLS_EXPORT void KtlsNative_PollerClose(int32_t poller);

/* Arms one wait, a KtlsWait: the next KtlsNative_PollerWait after socket became ready (or failed) reports token, once.
 * The poller watches a duplicate of socket, returned in *watch, so that the caller may close socket at any time; the
 * caller gives *watch to KtlsNative_PollerDisarm exactly once, after the report or to give up. Until then the duplicate
 * keeps the connection open: closing socket sends the peer no FIN (shutdown does). */
KTLS_EXPORT int32_t KtlsNative_PollerArm(int32_t poller, int32_t socket, int32_t wait, int64_t token, int32_t* watch);
KTLS_EXPORT int32_t KtlsNative_PollerDisarm(int32_t poller, int32_t watch);

/* Reports token once, when the peer has ended its half of the connection (FIN), or reset it; data is not looked at.
 * There is nothing to give back: the watch ends with the last descriptor of socket. Once per socket (EEXIST). */
KTLS_EXPORT int32_t KtlsNative_PollerWatchPeer(int32_t poller, int32_t socket, int64_t token);

/* Blocks until something is reported. *count: 1 to capacity (1 to 256) tokens. KtlsNative_PollerClose does not wake
 * it: to end a waiting thread, arm a socket that is writable. */
KTLS_EXPORT int32_t KtlsNative_PollerWait(int32_t poller, int64_t* tokens, int32_t capacity, int32_t* count);

#endif

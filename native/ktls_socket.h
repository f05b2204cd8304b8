/* SPDX-License-Identifier: MIT
 *
 * The kernel's TLS interface (linux/tls.h). It is declared here because the cross and musl builds have no kernel
 * headers. Numbers and layouts are the ABI of the kernel and do not change.
 */
#ifndef KTLS_SOCKET_H
#define KTLS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KTLS_RECORD_SIZE 16384 /* maximum plaintext length (RFC 8446, section 5.1) */

enum
{
    TCP_ULP_OPTION = 31,
    SOL_TLS_LEVEL = 282,

    TLS_TX = 1,
    TLS_RX = 2,
    TLS_TX_ZEROCOPY_RO = 3,
    TLS_RX_EXPECT_NO_PAD = 4,
    TLS_SET_RECORD_TYPE = 1, /* control message */

    TLS_CIPHER_AES_GCM_128 = 51,
    TLS_CIPHER_AES_GCM_256 = 52,
    TLS_CIPHER_AES_CCM_128 = 53,
    TLS_CIPHER_CHACHA20_POLY1305 = 54,

    KERNEL_TLS_1_2 = 0x0303,
    KERNEL_TLS_1_3 = 0x0304
};

/* struct tls_crypto_info, which the key material of the cipher follows. */
typedef struct TlsCryptoInfo
{
    uint16_t version;
    uint16_t cipher;
} TlsCryptoInfo;

_Static_assert(sizeof(TlsCryptoInfo) == 4, "struct tls_crypto_info");

/* Returns whether a BPF sockmap has replaced the proto operations of this TCP socket. Also returns false while unread
 * data is queued, because the sockmap is not detectable then. Consumes no data. */
bool KtlsSocket_IsInSockmap(int32_t socket);

/* What TCP has done with the bytes of a connection. */
typedef struct KtlsTcpCounts
{
    uint64_t written;      /* bytes that TCP has taken, from any fixed number */
    uint64_t acknowledged; /* bytes that the peer has acknowledged, from another */
    bool closed;           /* the connection was reset, or both ends have closed: nothing is sent any more */
} KtlsTcpCounts;

/* Reads the counts. Returns false if the kernel does not have them (before Linux 4.19), or if this is not TCP. */
bool KtlsSocket_ReadCounts(int32_t socket, KtlsTcpCounts* counts);

/* Returns whether the peer has acknowledged all that TCP has taken. */
bool KtlsSocket_IsQueueEmpty(int32_t socket);

/* Sends a record of a type through kernel TLS. Returns 0 or an errno. */
int32_t KtlsSocket_SendRecord(int32_t socket, uint8_t type, const uint8_t* data, size_t length, int flags);

/* Returns whether the records of size bytes of data may wait for each other in the socket, so that they share segments:
 * there is more than one, and the send buffer has space for all of them and the overhead of TCP and TLS. If it became
 * full while they wait, the peer, which sees no PSH, would delay its acknowledgement: tens of milliseconds for every
 * buffer. */
bool KtlsSocket_MayShareSegments(int32_t socket, size_t size);

/* Sets TCP_CORK (tcp(7)), so that what is written next leaves in full segments, unless it is set. Returns whether this
 * call has set it. */
bool KtlsSocket_Cork(int32_t socket);

/* Sets or removes TCP_CORK. Removing it sends what it holds back. */
void KtlsSocket_SetCork(int32_t socket, bool corked);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The kernel's TLS interface (linux/tls.h), declared here because the cross and musl builds have no kernel headers.
 * The numbers and layouts are the kernel's ABI and do not change.
 */
#ifndef KTLS_SOCKET_H
#define KTLS_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

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

/* struct tls_crypto_info; the key material of each cipher follows it. */
typedef struct TlsCryptoInfo
{
    uint16_t version;
    uint16_t cipher;
} TlsCryptoInfo;

_Static_assert(sizeof(TlsCryptoInfo) == 4, "struct tls_crypto_info");

/* Whether a BPF sockmap has replaced this TCP socket's functions; false also while data waits to be received, where
 * that cannot be seen from here. Nothing is consumed. */
bool KtlsSocket_IsInSockmap(int32_t socket);

#endif

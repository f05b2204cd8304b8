/* SPDX-License-Identifier: MIT
 *
 * sock_diag, the only interface that reports whether the kernel or the network device encrypts.
 */
#ifndef KTLS_SOCKDIAG_H
#define KTLS_SOCKDIAG_H

#include "ktls_export.h"

/* Completes a KtlsSocketInfo from TLS_INFO. Does not change it if the kernel does not provide TLS_INFO: no tcp_diag
 * module, no CAP_NET_ADMIN (older kernels), or a sandbox without netlink. */
void KtlsSockDiag_ReadTlsInfo(int32_t socket, KtlsSocketInfo* info);

#endif

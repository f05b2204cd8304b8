/* SPDX-License-Identifier: MIT
 *
 * sock_diag: the only place where the kernel says whether software or the network card does the work.
 */
#ifndef KTLS_SOCKDIAG_H
#define KTLS_SOCKDIAG_H

#include "ktls_export.h"

/* Completes a KtlsSocketInfo from TLS_INFO. Leaves it as it is where the kernel does not answer: no tcp_diag, no
 * CAP_NET_ADMIN (older kernels), netlink closed by a sandbox. */
void KtlsSockDiag_Refine(int32_t socket, KtlsSocketInfo* info);

#endif

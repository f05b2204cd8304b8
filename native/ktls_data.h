/* SPDX-License-Identifier: MIT */
#ifndef KTLS_DATA_H
#define KTLS_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the send buffer has space for size bytes and the overhead of TCP and TLS. If the buffer became full
 * after a call with MSG_MORE, TCP would hold that data back, and the peer, which sees no PSH, would delay its
 * acknowledgement: tens of milliseconds for every buffer. */
bool KtlsData_HasSendSpace(int32_t socket, size_t size);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A connected loopback TCP pair of the probe's own.
 */
#ifndef KTLS_PAIR_H
#define KTLS_PAIR_H

#include "ktls_export.h"

typedef struct KtlsPair
{
    int client;
    int server;
} KtlsPair;

/* Connects a TCP pair over 127.0.0.1, or ::1 where there is no IPv4. 0 or an errno; ETIMEDOUT after a second. */
int32_t KtlsPair_Open(KtlsPair* pair);

/* Closes both ends by RST, so that no TIME_WAIT is left behind. */
void KtlsPair_Close(KtlsPair* pair);

#endif

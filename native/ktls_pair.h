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

/* Waits at most a second until the descriptor has one of poll(2)'s events. 0, ETIMEDOUT or another errno. */
int32_t KtlsPair_WaitFor(int descriptor, short events);

/* Connects a TCP pair over 127.0.0.1, or ::1 where there is no IPv4. 0 or an errno; ETIMEDOUT after a second. */
int32_t KtlsPair_Open(KtlsPair* pair);

/* Closes both ends by RST, so that no TIME_WAIT is left behind. */
void KtlsPair_Close(KtlsPair* pair);

#endif

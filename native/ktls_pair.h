/* SPDX-License-Identifier: MIT
 *
 * A connected pair of loopback TCP sockets for the probe.
 */
#ifndef KTLS_PAIR_H
#define KTLS_PAIR_H

#include "ktls_export.h"

typedef struct KtlsPair
{
    int client;
    int server;
} KtlsPair;

/* Waits up to one second for one of the poll(2) events. Returns 0, ETIMEDOUT or another errno. */
int32_t KtlsPair_WaitFor(int descriptor, short events);

/* Connects a pair over 127.0.0.1, or over ::1 without IPv4. Returns 0 or an errno, ETIMEDOUT after one second. */
int32_t KtlsPair_Open(KtlsPair* pair);

/* Closes both ends with RST, so that no socket remains in TIME_WAIT. */
void KtlsPair_Close(KtlsPair* pair);

#endif

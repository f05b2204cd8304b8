/* SPDX-License-Identifier: MIT
 *
 * Functions that the fuzz targets share. A target is LLVMFuzzerTestOneInput. CHECK aborts it if the shim violates its
 * contract. ASAN and UBSAN detect other errors.
 */
#ifndef KTLS_FUZZ_H
#define KTLS_FUZZ_H

#include "fixture.h"
#include "input.h"
#include "ktls_export.h"
#include "ktls_pair.h"
#include "test.h"

#include <stddef.h>
#include <stdint.h>

/* Opens a connected pair of non-blocking sockets, which is cheaper than TCP. */
KtlsPair Fuzz_Connect(void);
void Fuzz_Disconnect(const KtlsPair* pair);

/* Builds a ClientHello that OpenSSL accepts, with these extensions, each preceded by its type and length. */
typedef struct Hello
{
    uint8_t record[20000];
    size_t length;
} Hello;

void Hello_Begin(Hello* hello);
void Hello_AddExtension(Hello* hello, unsigned int type, const uint8_t* body, size_t length);
void Hello_End(Hello* hello);

/* Sends all bytes. */
void Fuzz_Send(int socket, const uint8_t* data, size_t length);

#endif

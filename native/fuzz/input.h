/* SPDX-License-Identifier: MIT
 *
 * An input and its parsing, without OpenSSL's headers: a target that includes ktls_openssl.h cannot include them.
 */
#ifndef KTLS_FUZZ_INPUT_H
#define KTLS_FUZZ_INPUT_H

#include "ktls_export.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

/* The unread part of an input. */
typedef struct Input
{
    const uint8_t* at;
    size_t left;
} Input;

/* Reads the next byte, or 0 at the end. */
uint8_t Input_TakeByte(Input* input);

/* Reads the next bytes into an allocation of exactly their size, so that ASAN detects an overrun. The caller frees it.
 * The first two bytes are the requested length. *length is at most that, the value of most, and the rest of the input.
 */
uint8_t* Input_TakeBlock(Input* input, size_t most, size_t* length);

/* Establishes a connection and returns both ends, which the caller may keep until the process exits. flags are
 * KTLS_FLAG_* for both ends. */
void Fuzz_Establish(int32_t version, int32_t flags, KtlsConnection** client, KtlsConnection** server);

#endif

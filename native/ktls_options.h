/* SPDX-License-Identifier: MIT
 *
 * What a KtlsContextOptions must look like, before OpenSSL sees any of it.
 */
#ifndef KTLS_OPTIONS_H
#define KTLS_OPTIONS_H

#include "ktls_export.h"

#include <stdbool.h>

bool KtlsOptions_AreValid(const KtlsContextOptions* options);

/* Non-empty names, each behind its length (RFC 7301, 3.1). */
bool KtlsOptions_IsAlpnWellFormed(const uint8_t* alpn, int32_t length);

/* A leaf with its intermediates and its key, or none of them. */
bool KtlsOptions_IsChainWellFormed(const KtlsBlob* certificates, int32_t count, intptr_t privateKey);

#endif

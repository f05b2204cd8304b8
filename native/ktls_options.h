/* SPDX-License-Identifier: MIT
 *
 * Validation of KtlsContextOptions before they are passed to OpenSSL.
 */
#ifndef KTLS_OPTIONS_H
#define KTLS_OPTIONS_H

#include "ktls_export.h"

#include <stdbool.h>

bool KtlsOptions_AreValid(const KtlsContextOptions* options);

/* Returns whether the list consists of non-empty names, each preceded by its length (RFC 7301, 3.1). */
bool KtlsOptions_IsAlpnWellFormed(const uint8_t* alpn, int32_t length);

/* Returns whether the chain and its key are both present or both absent. */
bool KtlsOptions_IsChainWellFormed(const KtlsBlob* certificates, int32_t count, intptr_t privateKey);

#endif

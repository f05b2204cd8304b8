/* SPDX-License-Identifier: MIT
 *
 * Converts the outcome of an OpenSSL call (return value, errno and the error queue of this thread) to a KtlsResult.
 */
#ifndef KTLS_RESULT_H
#define KTLS_RESULT_H

#include "ktls_export.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* Clears the result, the error queue and errno, because SSL_get_error uses entries that precede the call. */
void KtlsResult_Begin(const KtlsOpenSsl* api, KtlsResult* result);

/* Fills the result of a TLS call on ssl. error is errno, read immediately after the call. writes: the call only sends,
 * and cannot have reached the end of the stream. Returns true if the caller must repeat the call at once (EINTR). */
bool KtlsResult_Complete(const KtlsOpenSsl* api, SSL* ssl, int returned, int error, bool writes, KtlsResult* result);

/* Fills the result of a failed call that does no I/O. */
void KtlsResult_Fail(const KtlsOpenSsl* api, KtlsResult* result);

#endif

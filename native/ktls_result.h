/* SPDX-License-Identifier: MIT
 *
 * Turns what OpenSSL left behind (return value, errno, this thread's error queue) into a KtlsResult.
 */
#ifndef KTLS_RESULT_H
#define KTLS_RESULT_H

#include "ktls_export.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* Zeroes the result, the error queue and errno: SSL_get_error judges by all that was there before the call. */
void KtlsResult_Begin(const KtlsOpenSsl* api, KtlsResult* result);

/* Fills the result of a TLS call on ssl. error is errno, read right after the call. writes: the call was to send,
 * so no end of stream can have been met. Returns true where the call is to be repeated at once (EINTR). */
bool KtlsResult_Complete(const KtlsOpenSsl* api, SSL* ssl, int returned, int error, bool writes, KtlsResult* result);

/* Fills the result of a call that does no I/O and failed. */
void KtlsResult_Refused(const KtlsOpenSsl* api, KtlsResult* result);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A reading BIO that receives more than OpenSSL asks for. OpenSSL asks for a header and then for the rest of a record,
 * which is two receives a record, however small. SSL_set_read_ahead is no alternative: SSL_read then processes several
 * handshake messages in one call, and SSL_has_pending does not report all that OpenSSL holds.
 */
#ifndef KTLS_READAHEAD_H
#define KTLS_READAHEAD_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

/* Replaces the reading BIO of a connection for whose receiving direction OpenSSL does not use the kernel, and never
 * will: the new BIO refuses it. Returns false if there is no memory. */
bool KtlsReadAhead_Start(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Returns whether received bytes are left, for which no socket becomes readable. */
bool KtlsReadAhead_HoldsBytes(const KtlsConnection* connection);

/* Returns whether a read may find more without waiting: bytes that are held, or that the last receive left. */
bool KtlsReadAhead_MayHaveMore(const KtlsConnection* connection);

void KtlsReadAhead_Free(KtlsConnection* connection);

#endif

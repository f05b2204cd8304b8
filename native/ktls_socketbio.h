/* SPDX-License-Identifier: MIT
 *
 * The BIO that takes the place of OpenSSL's socket BIO after the handshake, in each direction that the kernel does not
 * take over.
 *
 * It receives more than OpenSSL asks for. OpenSSL asks for a header and then for the rest of a record, which is two
 * receives a record, however small. SSL_set_read_ahead is no alternative: SSL_read then processes several handshake
 * messages in one call, and SSL_has_pending does not report all that OpenSSL holds.
 *
 * It sends a record with MSG_MORE if the caller has more data. OpenSSL sends each record of a write by itself, and the
 * last may be a few bytes long.
 */
#ifndef KTLS_SOCKETBIO_H
#define KTLS_SOCKETBIO_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

/* Replaces the reading BIO. The new one refuses kernel TLS. Returns false if there is no memory. */
bool KtlsSocketBio_StartReading(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Replaces the writing BIO. The new one refuses kernel TLS. Returns false if there is no memory. */
bool KtlsSocketBio_StartWriting(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Returns whether a read may find more without waiting: bytes that are held, for which no socket becomes readable, or
 * that the last receive left. */
bool KtlsSocketBio_MayHaveMore(const KtlsConnection* connection);

void KtlsSocketBio_Free(KtlsConnection* connection);

#endif

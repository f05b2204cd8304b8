/* SPDX-License-Identifier: MIT
 *
 * The BIO that takes the place of OpenSSL's socket BIO in each direction that the kernel does not take over: from the
 * beginning if it never will, otherwise after the handshake.
 *
 * It receives more than OpenSSL asks for. OpenSSL asks for a header and then for the rest of a record, which is two
 * receives a record, however small. SSL_set_read_ahead is no alternative: SSL_read then processes several handshake
 * messages in one call, and SSL_has_pending does not report all that OpenSSL holds.
 *
 * It holds the records of KtlsNative_Write, which KtlsNative_Flush sends. The caller flushes outside the lock of its
 * calls on the SSL: a send takes longer than the encryption, and a concurrent read would wait for it. Several records
 * leave in one call; OpenSSL sends each by itself, and the last may be a few bytes long. Whatever else OpenSSL writes,
 * such as an alert, is sent at once, after the records that are held.
 */
#ifndef KTLS_SOCKETBIO_H
#define KTLS_SOCKETBIO_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

/* Initializes a new connection's part. Returns false if there is no memory. */
bool KtlsSocketBio_Init(KtlsConnection* connection);

/* Makes OpenSSL read through this BIO, which refuses kernel TLS. Returns false if there is no memory. */
bool KtlsSocketBio_StartReading(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Makes OpenSSL write through this BIO, which refuses kernel TLS. Returns false if there is no memory. */
bool KtlsSocketBio_StartWriting(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Returns whether no record may follow before a flush: many are held, or the flush reports that sending has ended. */
bool KtlsSocketBio_WantsFlush(KtlsConnection* connection);

/* Takes received bytes that are held, or receives from the socket. Returns their number, 0 at the end, or -1. */
int KtlsSocketBio_Take(KtlsConnection* connection, void* buffer, int length);

void KtlsSocketBio_Free(KtlsConnection* connection);

#endif

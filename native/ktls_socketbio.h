/* SPDX-License-Identifier: MIT
 *
 * The BIO that takes the place of OpenSSL's socket BIO in each direction that the kernel does not take over: from the
 * beginning if it never will, otherwise after the handshake.
 *
 * It receives more than OpenSSL asks for. OpenSSL asks for a header and then for the rest of a record, which is two
 * receives a record, however small. SSL_set_read_ahead is no alternative: SSL_read then processes several handshake
 * messages in one call, and SSL_has_pending does not report all that OpenSSL holds.
 *
 * It sends a record with MSG_MORE if the caller has more data, and room for it. OpenSSL sends each record of a write by
 * itself, and the last may be a few bytes long.
 */
#ifndef KTLS_SOCKETBIO_H
#define KTLS_SOCKETBIO_H

#include "ktls_connection.h"
#include "ktls_openssl.h"

/* Makes OpenSSL read through this BIO, which refuses kernel TLS. Returns false if there is no memory. */
bool KtlsSocketBio_StartReading(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Makes OpenSSL write through this BIO, which refuses kernel TLS. Returns false if there is no memory. */
bool KtlsSocketBio_StartWriting(const KtlsOpenSsl* api, KtlsConnection* connection);

/* Takes bytes that are held, or receives from the socket. Returns their number, 0 at the end, or -1. */
int KtlsSocketBio_Take(KtlsConnection* connection, void* buffer, int length);

void KtlsSocketBio_Free(KtlsConnection* connection);

#endif

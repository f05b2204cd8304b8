/* SPDX-License-Identifier: MIT */
#ifndef KTLS_KEYUPDATE_H
#define KTLS_KEYUPDATE_H

#include "ktls_connection.h"

#include <stddef.h>

/* Hides the peer's request for a KeyUpdate from OpenSSL. The message callback calls this for each handshake message
 * that is received after the handshake. */
void KtlsKeyUpdate_OnReceived(KtlsConnection* connection, const uint8_t* message, size_t length);

#endif

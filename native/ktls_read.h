/* SPDX-License-Identifier: MIT
 *
 * Reading on an established connection, and the handshake messages that a read processes.
 */
#ifndef KTLS_READ_H
#define KTLS_READ_H

#include "ktls_connection.h"

#include <stddef.h>

/* The message callback calls this for each handshake message that is received after the handshake. */
void KtlsRead_OnHandshakeMessage(KtlsConnection* connection, const uint8_t* message, size_t length);

#endif

/* SPDX-License-Identifier: MIT
 *
 * This file processes a KeyUpdate that requests a response (RFC 8446, 4.6.3) in two steps:
 *   1. SSL_read, in KtlsNative_Read, calls the message callback. KtlsRead_OnHandshakeMessage clears request_update in
 *      the message and sets keyUpdateRequested.
 *   2. SSL_read then updates the receiving key only. KtlsConnection_Leave reports the request in KtlsResult.keyUpdate,
 *      and the caller answers it with KtlsNative_KeyUpdate while no data is being sent.
 *
 * If OpenSSL saw the request, it would respond in its next write or while it reads the next message, and change the
 * sending key while another thread passes data to the kernel under the old key.
 */
#include "ktls_read.h"
#include "ktls_posthandshake.h"
#include "ktls_result.h"

#include <errno.h>
#include <string.h>

/* A KeyUpdate consists of the type, a length of 1 in three bytes, and request_update. The buffer belongs to the SSL,
 * and OpenSSL parses it after the callback. If a future libssl parses it earlier, SSL_get_key_update_type reports the
 * request, and KtlsResult_Complete sets KtlsResult.keyUpdate. */
static void ClearUpdateRequest(KtlsConnection* connection, const uint8_t* message, size_t length)
{
    enum
    {
        LENGTH = 5,
        REQUEST_UPDATE = 4
    };
    if (length == LENGTH && message[REQUEST_UPDATE] == SSL_KEY_UPDATE_REQUESTED)
    {
        connection->keyUpdateRequested = true;
        ((uint8_t*)(uintptr_t)message)[REQUEST_UPDATE] = SSL_KEY_UPDATE_NOT_REQUESTED;
    }
}

void KtlsRead_OnHandshakeMessage(KtlsConnection* connection, const uint8_t* message, size_t length)
{
    connection->messageCount++;
    if (message[0] == SSL3_MT_KEY_UPDATE)
    {
        ClearUpdateRequest(connection, message, length);
    }
}

int32_t KtlsNative_Read(
    KtlsConnection* connection, int32_t socket, uint8_t* buffer, int32_t capacity, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t checkError = KtlsConnection_EnterEstablished(connection, socket, result, &api, &ended);
    if (checkError != 0)
    {
        return checkError;
    }
    if (capacity < 0 || (capacity > 0 && buffer == NULL))
    {
        return EINVAL;
    }
    if (ended)
    {
        return 0;
    }
    if (!KtlsPostHandshake_BeginRead(api, connection))
    {
        return EBUSY;
    }

    int returned;
    int error;
    connection->messageCount = 0;
    do
    {
        uint8_t scratch = 0;
        KtlsResult_Begin(api, result);
        KtlsPostHandshake_HideSentShutdown(api, connection);
        /* Calls KtlsRead_OnHandshakeMessage for each handshake message. */
        returned = capacity > 0 ? api->SSL_read(connection->ssl, buffer, capacity)
                                : api->SSL_peek(connection->ssl, &scratch, sizeof(scratch));
        error = errno;
        KtlsPostHandshake_RestoreSentShutdown(api, connection);
        explicit_bzero(&scratch, sizeof(scratch));
    } while (KtlsResult_Complete(api, connection->ssl, returned, error, false, result));

    if (result->status == KTLS_STATUS_OK && capacity > 0)
    {
        result->bytes = returned;
    }
    result->pending |= KtlsReadAhead_MayHaveMore(&connection->readAhead);
    result->newSession = connection->session != NULL;
    result->messages = connection->messageCount;
    KtlsConnection_Leave(api, connection, result);
    return 0;
}

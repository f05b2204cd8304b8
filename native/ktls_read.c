/* SPDX-License-Identifier: MIT */
#include "ktls_connection.h"
#include "ktls_posthandshake.h"
#include "ktls_result.h"

#include <errno.h>
#include <string.h>

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
        /* Calls KtlsKeyUpdate_OnReceived for each handshake message. */
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
    KtlsConnection_Leave(api, connection, result); /* sets keyUpdate if the peer has requested one */
    return 0;
}

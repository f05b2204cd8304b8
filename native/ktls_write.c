/* SPDX-License-Identifier: MIT
 *
 * Encrypting data with OpenSSL on an established connection.
 */
#include "ktls_call.h"
#include "ktls_connection.h"
#include "ktls_socketbio.h"

#include <errno.h>

int32_t KtlsNative_Write(
    KtlsConnection* connection, int32_t socket, const uint8_t* buffer, int32_t length, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    bool ended = false;
    int32_t checkError = KtlsConnection_EnterEstablished(connection, socket, result, &api, &ended);
    if (checkError != 0)
    {
        return checkError;
    }
    if (length < 1 || buffer == NULL)
    {
        return EINVAL;
    }
    if (ended)
    {
        return 0;
    }
    if (connection->closeNotifySent)
    {
        return EPIPE;
    }
    if (KtlsConnection_IsSendOffloaded(api, connection))
    {
        return EPERM;
    }
    if (connection->postHandshakeDecision == KTLS_DECISION_WAITING)
    {
        /* OpenSSL would send the response first, before the caller has chosen the certificate. */
        result->status = KTLS_STATUS_WANT_CERTIFICATE;
        return 0;
    }
    if (KtlsSocketBio_WantsFlush(connection))
    {
        result->status = KTLS_STATUS_WANT_WRITE;
        return 0;
    }

    connection->inWrite = true;
    KtlsCall_Write(api, connection->ssl, buffer, length, result);
    connection->inWrite = false;
    KtlsConnection_Leave(api, connection, result);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Writing data with OpenSSL on an established connection.
 */
#include "ktls_call.h"
#include "ktls_connection.h"
#include "ktls_data.h"
#include "ktls_posthandshake.h"
#include "ktls_result.h"

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
    if (KtlsConnection_ReportSendError(connection, result))
    {
        return 0;
    }
    bool paused = connection->postHandshakeDecision == KTLS_DECISION_WAITING;
    if (paused && !connection->writePending)
    {
        /* OpenSSL would send the response first, before the caller has chosen the certificate. */
        result->status = KTLS_STATUS_WANT_CERTIFICATE;
        return 0;
    }

    if (paused)
    {
        KtlsPostHandshake_FinishWrite(api, connection, buffer, length, result);
    }
    else
    {
        /* SSL_write sends one record. */
        connection->moreFollows =
            length > SSL3_RT_MAX_PLAIN_LENGTH && KtlsData_HasSendSpace(connection->socket, (size_t)length);
        KtlsCall_Write(api, connection->ssl, buffer, length, result);
        connection->moreFollows = false;
    }
    (void)KtlsConnection_ReportSendError(connection, result);
    connection->writePending = result->status == KTLS_STATUS_WANT_WRITE;
    KtlsConnection_Leave(api, connection, result);
    return 0;
}

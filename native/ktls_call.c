/* SPDX-License-Identifier: MIT */
#include "ktls_call.h"
#include "ktls_result.h"

#include <errno.h>

void KtlsCall_DoHandshake(const KtlsOpenSsl* api, SSL* ssl, bool writes, KtlsResult* result)
{
    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_do_handshake(ssl);
        error = errno;
    } while (KtlsResult_Complete(api, ssl, returned, error, writes, result));
}

void KtlsCall_Write(const KtlsOpenSsl* api, SSL* ssl, const uint8_t* buffer, int32_t length, KtlsResult* result)
{
    int returned;
    int error;
    do
    {
        KtlsResult_Begin(api, result);
        returned = api->SSL_write(ssl, buffer, length);
        error = errno;
    } while (KtlsResult_Complete(api, ssl, returned, error, true, result));
    result->bytes = result->status == KTLS_STATUS_OK ? returned : 0;
}

/* SPDX-License-Identifier: MIT */
#include "ktls_result.h"

#include <errno.h>
#include <string.h>

#define SYSTEM_ERROR_FLAG 0x80000000UL

static bool IsSystemError(unsigned long code)
{
    return (code & SYSTEM_ERROR_FLAG) != 0;
}

static int GetLibrary(unsigned long code)
{
    return IsSystemError(code) ? ERR_LIB_SYS : (int)((code >> 23) & 0xFF);
}

static int32_t GetReason(unsigned long code)
{
    return (int32_t)(IsSystemError(code) ? code & 0x7FFFFFFFUL : code & 0x7FFFFFUL);
}

/* Moves the error queue to the result. Returns whether OpenSSL reached an unexpected end of the stream. */
static bool DrainErrors(const KtlsOpenSsl* api, KtlsResult* result)
{
    bool unexpectedEof = false;
    unsigned long code = api->ERR_get_error();
    if (code != 0)
    {
        result->openSslError = (int64_t)code;
        result->reason = GetReason(code);
    }
    for (; code != 0; code = api->ERR_get_error())
    {
        unexpectedEof |= GetLibrary(code) == ERR_LIB_SSL && GetReason(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    }
    return unexpectedEof;
}

/* Handles SSL_ERROR_SYSCALL: an error or the end of the socket, or an EAGAIN that OpenSSL did not recognise. */
static int32_t ClassifySystemError(const KtlsOpenSsl* api, SSL* ssl, int error, bool writes, KtlsResult* result)
{
    if (error == 0 && IsSystemError((unsigned long)result->openSslError))
    {
        error = result->reason;
    }
    if (error == EAGAIN)
    {
        return writes || api->SSL_want(ssl) == SSL_WRITING ? KTLS_STATUS_WANT_WRITE : KTLS_STATUS_WANT_READ;
    }
    if (error == 0 && !writes)
    {
        /* After a user_canceled alert, which JSSE sends before close_notify (RFC 8446, 6.1), OpenSSL processes a
         * close_notify without reporting it. An end of stream without close_notify does not set the flag. */
        bool closed = result->openSslError == 0 && (api->SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
        return closed ? KTLS_STATUS_CLOSE_NOTIFY : KTLS_STATUS_UNEXPECTED_EOF;
    }
    result->sysErrno = error;
    return KTLS_STATUS_SYSCALL;
}

void KtlsResult_Begin(const KtlsOpenSsl* api, KtlsResult* result)
{
    memset(result, 0, sizeof(*result));
    KtlsOpenSsl_ClearErrors(api);
    errno = 0;
}

bool KtlsResult_Complete(const KtlsOpenSsl* api, SSL* ssl, int returned, int error, bool writes, KtlsResult* result)
{
    if (returned <= 0)
    {
        /* Before OpenSSL 4.0, SSL_get_error depends on the error queue: call it before the queue is drained. */
        int sslError = api->SSL_get_error(ssl, returned);
        bool unexpectedEof = DrainErrors(api, result);
        switch (sslError)
        {
            case SSL_ERROR_WANT_READ:
                result->status = KTLS_STATUS_WANT_READ;
                break;
            case SSL_ERROR_WANT_WRITE:
                result->status = KTLS_STATUS_WANT_WRITE;
                break;
            case SSL_ERROR_ZERO_RETURN:
                result->status = KTLS_STATUS_CLOSE_NOTIFY;
                break;
            case SSL_ERROR_WANT_CLIENT_HELLO_CB:
                result->status = KTLS_STATUS_WANT_CLIENT_HELLO;
                break;
            case SSL_ERROR_WANT_X509_LOOKUP:
                result->status = KTLS_STATUS_WANT_CERTIFICATE;
                break;
            case SSL_ERROR_SYSCALL:
                result->status = ClassifySystemError(api, ssl, error, writes, result);
                break;
            default:
                if (result->openSslError == 0)
                {
                    /* OpenSSL 4 does not forget that an earlier call failed. Before, this was SSL_ERROR_SYSCALL. */
                    result->status = ClassifySystemError(api, ssl, error, writes, result);
                    break;
                }
                result->status = unexpectedEof ? KTLS_STATUS_UNEXPECTED_EOF : KTLS_STATUS_TLS_ERROR;
                break;
        }
        /* EINTR is not the cause of a TLS_ERROR. */
        if (error == EINTR && result->status < KTLS_STATUS_TLS_ERROR && result->status != KTLS_STATUS_CLOSE_NOTIFY)
        {
            return true;
        }
    }

    KtlsOpenSsl_ClearErrors(api);
    result->pending = api->SSL_has_pending(ssl) != 0;
    if (api->SSL_get_key_update_type != NULL)
    {
        result->keyUpdate = api->SSL_get_key_update_type(ssl) != SSL_KEY_UPDATE_NONE;
    }
    return false;
}

void KtlsResult_Fail(const KtlsOpenSsl* api, KtlsResult* result)
{
    result->status = KTLS_STATUS_TLS_ERROR;
    (void)DrainErrors(api, result);
}

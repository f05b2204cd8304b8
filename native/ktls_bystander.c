/* SPDX-License-Identifier: MIT
 *
 * SSL objects that are never connected, for the part of .NET that reads a certificate from one.
 */
#include "ktls_export.h"
#include "ktls_openssl.h"

#include <errno.h>
#include <stddef.h>

#define MAX_SESSION_LENGTH 65535

static SSL_SESSION* Decode(const KtlsOpenSsl* api, const uint8_t* bytes, int32_t length)
{
    const unsigned char* end = bytes;
    SSL_SESSION* session = api->d2i_SSL_SESSION(NULL, &end, length);
    if (session != NULL && end != bytes + length)
    {
        api->SSL_SESSION_free(session);
        session = NULL;
    }
    return session;
}

int32_t KtlsNative_BystanderCreate(intptr_t sslContext, const uint8_t* session, int32_t length, intptr_t* ssl)
{
    if (ssl == NULL)
    {
        return EINVAL;
    }
    *ssl = 0;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (sslContext == 0 || length < 0 || length > MAX_SESSION_LENGTH || (session == NULL) != (length == 0))
    {
        return EINVAL;
    }

    KtlsOpenSsl_ClearErrors(api);
    SSL_SESSION* decoded = length != 0 ? Decode(api, session, length) : NULL;
    int32_t error = length != 0 && decoded == NULL ? EINVAL : 0;
    if (error == 0)
    {
        SSL* created = api->SSL_new((SSL_CTX*)sslContext);
        if (created == NULL || (decoded != NULL && api->SSL_set_session(created, decoded) != 1))
        {
            api->SSL_free(created);
            error = ENOMEM;
        }
        else
        {
            *ssl = (intptr_t)created;
        }
    }
    api->SSL_SESSION_free(decoded);
    KtlsOpenSsl_ClearErrors(api);
    return error;
}

int32_t KtlsNative_BystanderReference(intptr_t ssl)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (ssl == 0)
    {
        return EINVAL;
    }
    return api->SSL_up_ref((SSL*)ssl) == 1 ? 0 : ENOMEM;
}

/* SPDX-License-Identifier: MIT
 *
 * The cipher suites of an SSL_CTX that .NET created, so that KtlsContext can use the same ones.
 */
#include "ktls_export.h"
#include "ktls_openssl.h"

#include <errno.h>
#include <string.h>

#define TLS13_SUITES 0x13 /* first byte of a TLS 1.3 suite (RFC 8446, B.4) */

/* Returns the name of the suite at an index, or NULL for a TLS 1.3 suite, which a cipher list cannot contain. */
static const char* GetSuiteName(const KtlsOpenSsl* api, const OPENSSL_STACK* suites, int index)
{
    const SSL_CIPHER* suite = api->OPENSSL_sk_value(suites, index);
    return suite == NULL || api->SSL_CIPHER_get_protocol_id(suite) >> 8 == TLS13_SUITES
               ? NULL
               : api->SSL_CIPHER_get_name(suite);
}

/* Returns the length of the list. Writes the list if target is not NULL. */
static size_t JoinNames(const KtlsOpenSsl* api, const OPENSSL_STACK* suites, uint8_t* target)
{
    size_t length = 0;
    int count = suites != NULL ? api->OPENSSL_sk_num(suites) : 0;
    for (int i = 0; i < count; i++)
    {
        const char* name = GetSuiteName(api, suites, i);
        if (name == NULL)
        {
            continue;
        }
        size_t separator = length != 0;
        size_t size = strlen(name);
        if (target != NULL)
        {
            memcpy(target + length, ":", separator);
            memcpy(target + length + separator, name, size);
        }
        length += separator + size;
    }
    return length;
}

int32_t KtlsNative_GetCipherList(intptr_t sslContext, uint8_t* buffer, int32_t capacity, int32_t* length)
{
    if (length == NULL)
    {
        return EINVAL;
    }
    *length = 0;
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    if (api == NULL)
    {
        return ENOSYS;
    }
    if (sslContext == 0 || capacity < 0 || (capacity > 0 && buffer == NULL))
    {
        return EINVAL;
    }

    const OPENSSL_STACK* suites = api->SSL_CTX_get_ciphers((const SSL_CTX*)sslContext);
    size_t size = JoinNames(api, suites, NULL);
    if (size > INT32_MAX)
    {
        return EOVERFLOW;
    }
    *length = (int32_t)size;
    if ((size_t)capacity < size)
    {
        return ERANGE;
    }
    (void)JoinNames(api, suites, buffer);
    return 0;
}

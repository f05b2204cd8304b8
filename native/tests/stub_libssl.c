/* SPDX-License-Identifier: MIT
 *
 * A stub libssl for the tests of the binding. With these definitions:
 *   STUB_VERSION only           it has only the version functions;
 *   STUB_VERSION and STUB_FULL  it has all symbols, which do nothing.
 */
#include "stub_libssl.h"
#include "ktls_openssl.h"

#define STUB_EXPORT __attribute__((visibility("default")))

STUB_EXPORT unsigned long OpenSSL_version_num(void);
STUB_EXPORT const char* OpenSSL_version(int type);

unsigned long OpenSSL_version_num(void)
{
    return STUB_VERSION;
}

const char* OpenSSL_version(int type)
{
    (void)type;
    return "stub";
}

#ifdef STUB_FULL
#define OpenSSL_version_num Stub_Unused1
#define OpenSSL_version Stub_Unused2
#define DEFINE_STUB(type, name, parameters) \
    STUB_EXPORT void* name(void);           \
    void* name(void)                        \
    {                                       \
        return NULL;                        \
    }
KTLS_OPENSSL_SYMBOLS(DEFINE_STUB, DEFINE_STUB)
#endif

/* SPDX-License-Identifier: MIT */
#include "ktls_export.h"

#include <errno.h>
#include <stddef.h>

int32_t KtlsNative_GetInterface(uint64_t* hash)
{
    if (hash == NULL)
    {
        return EINVAL;
    }
    *hash = KTLS_INTERFACE; /* CMakeLists.txt computes it */
    return 0;
}

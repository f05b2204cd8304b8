/* SPDX-License-Identifier: MIT
 *
 * What happens on an established connection: reading, writing, closing, key updates.
 */
#ifndef KTLS_IO_H
#define KTLS_IO_H

#include "ktls_export.h"
#include "ktls_openssl.h"

#include <stdbool.h>

/* Whether OpenSSL sends (receives) through the kernel; false where the BIO is absent. */
bool KtlsIo_IsSendOffloaded(const KtlsOpenSsl* api, const SSL* ssl);
bool KtlsIo_IsReceiveOffloaded(const KtlsOpenSsl* api, const SSL* ssl);

#endif

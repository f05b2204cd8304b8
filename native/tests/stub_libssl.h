/* SPDX-License-Identifier: MIT
 *
 * The versions of the stub libraries (CMakeLists.txt): what OpenSSL_version_num of libssl.so.97, .98 and .99 returns.
 */
#ifndef STUB_LIBSSL_H
#define STUB_LIBSSL_H

#define STUB_97_VERSION 0x30000970L
#define STUB_98_VERSION 0x50000980L
#define STUB_99_VERSION 0x40000990L

#endif

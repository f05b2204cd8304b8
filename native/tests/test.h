/* SPDX-License-Identifier: MIT
 *
 * A test runner that forks one child per test. Each test starts uninitialised. A crash or a leak fails only that test,
 * and so does a hang.
 */
#ifndef KTLS_TEST_H
#define KTLS_TEST_H

#include <stdbool.h>
#include <stdint.h>

/* A test has one of the functions. Those in the kernel are skipped without kernel TLS, or fail if KTLS_EXPECTED=1. */
typedef struct Test
{
    const char* name;
    void (*run)(void);
    void (*runInKernel)(void);
    void (*runBoth)(int32_t flags); /* runs with 0, and in the kernel with KTLS_FLAG_ENABLE_KTLS */
} Test;

/* Each array ends with an entry without a name. */
extern const Test g_libraryTests[];
extern const Test g_argumentTests[];
extern const Test g_directionTests[];
extern const Test g_paddingTests[];
extern const Test g_handshakeTests[];
extern const Test g_helloTests[];
extern const Test g_switchTests[];
extern const Test g_clientCertificateTests[];
extern const Test g_resumeTests[];
extern const Test g_serverOptionTests[];
extern const Test g_verifyTests[];
extern const Test g_stapleTests[];
extern const Test g_ioTests[];
extern const Test g_sendFileTests[];
extern const Test g_socketSendTests[];
extern const Test g_closeTests[];
extern const Test g_closeSendingTests[];
extern const Test g_detachTests[];
extern const Test g_keyUpdateTests[];
extern const Test g_sessionTests[];
extern const Test g_bystanderTests[];
extern const Test g_pollerTests[];
extern const Test g_postHandshakeTests[];
extern const Test g_postHandshakeFailureTests[];
extern const Test g_postHandshakeFullTests[];
extern const Test g_kernelTests[];
extern const Test g_threadTests[];
extern const Test g_ticketChainTests[];

_Noreturn void Test_Fail(const char* file, int line, const char* format, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void Test_Skip(const char* reason);

/* Prints a remark below the name of the test. */
void Test_Note(const char* format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition)                                     \
    do                                                       \
    {                                                        \
        if (!(condition))                                    \
        {                                                    \
            Test_Fail(__FILE__, __LINE__, "%s", #condition); \
        }                                                    \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                           \
    do                                                                                                       \
    {                                                                                                        \
        int64_t actualValue = (int64_t)(actual);                                                             \
        int64_t expectedValue = (int64_t)(expected);                                                         \
        if (actualValue != expectedValue)                                                                    \
        {                                                                                                    \
            Test_Fail(                                                                                       \
                __FILE__, __LINE__, "%s is %lld, not %s (%lld)", #actual, (long long)actualValue, #expected, \
                (long long)expectedValue);                                                                   \
        }                                                                                                    \
    } while (0)

#endif

/* SPDX-License-Identifier: MIT
 *
 * native-loader LIBRARY: loads the shim as .NET does, with the C library of the target, and calls the functions that
 * need no OpenSSL. Each stub library is tested in a separate process, because Initialize binds once per process.
 */
#include "ktls_export.h"
#include "stub_libssl.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void* s_library;
static int s_passed;
static int s_failed;

static void Check(const char* what, int condition)
{
    printf("%-8s%s\n", condition ? "passed" : "FAILED", what);
    s_passed += condition != 0;
    s_failed += condition == 0;
}

#define BIND(name) __typeof__(&name) name##_ = (__typeof__(&name))Find(#name)

static void* Find(const char* name)
{
    void* symbol = dlsym(s_library, name);
    if (symbol == NULL)
    {
        printf("%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    return symbol;
}

static void TryStub(const char* soName, int64_t version, int32_t expected)
{
    BIND(KtlsNative_Initialize);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0)
    {
        KtlsLibraryInfo info;
        int isLoaded = dlopen(soName, RTLD_LAZY) != NULL;
        int32_t answer = KtlsNative_Initialize_(version, &info);
        int isFound = strcmp((const char*)info.soName, soName) == 0 && info.openSslVersion == version;
        _exit(isLoaded && answer == expected && isFound ? 0 : 1);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    Check(soName, status == 0);
}

int main(int count, char** arguments)
{
    s_library = count > 1 ? dlopen(arguments[1], RTLD_LAZY) : NULL;
    if (s_library == NULL)
    {
        printf("%s\n", count > 1 ? dlerror() : "usage: native-loader LIBRARY");
        return EXIT_FAILURE;
    }
    BIND(KtlsNative_GetInterface);
    BIND(KtlsNative_Initialize);
    BIND(KtlsNative_ProbeKernel);
    BIND(KtlsNative_GetSocketInfo);
    BIND(KtlsNative_PollerCreate);
    BIND(KtlsNative_PollerArm);
    BIND(KtlsNative_PollerWait);
    BIND(KtlsNative_PollerDisarm);
    BIND(KtlsNative_ContextFree);

    uint64_t hash = 0;
    Check("GetInterface", KtlsNative_GetInterface_(&hash) == 0 && hash == KTLS_INTERFACE);

    TryStub("libssl.so.97", STUB_97_VERSION, 0);
    TryStub("libssl.so.98", STUB_98_VERSION, ENOTSUP);
    TryStub("libssl.so.99", STUB_99_VERSION, ENOSYS);

    KtlsLibraryInfo info;
    int32_t answer = KtlsNative_Initialize_(STUB_97_VERSION, &info);
    Check("Initialize: loads nothing", answer == ENOENT && info.soName[0] == 0);
    KtlsNative_ContextFree_(NULL);

    KtlsProbe probe;
    answer = KtlsNative_ProbeKernel_(&probe);
    printf("ProbeKernel: %d, tls %d, TLS 1.3 AES-128-GCM send %d\n", answer, probe.ulpErrno, probe.send[1][0]);
    Check("ProbeKernel", answer == 0);

    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    KtlsSocketInfo kernel;
    Check("GetSocketInfo", KtlsNative_GetSocketInfo_(tcp, &kernel) == 0 && kernel.sendConf == KTLS_CONF_NONE);
    Check("GetSocketInfo: EBADF", KtlsNative_GetSocketInfo_(-1, &kernel) == EBADF);

    int32_t poller = -1;
    int64_t token = 0;
    int32_t reported = 0;
    Check("PollerCreate", KtlsNative_PollerCreate_(&poller) == 0);
    int isArmed = KtlsNative_PollerArm_(poller, tcp, KTLS_WAIT_WRITABLE, 42) == 0;
    Check("PollerArm", isArmed);
    Check(
        "PollerWait",
        isArmed && KtlsNative_PollerWait_(poller, &token, 1, &reported) == 0 && reported == 1 && token == 42);
    Check("PollerDisarm", KtlsNative_PollerDisarm_(poller, tcp) == 0);
    (void)close(poller);
    (void)close(tcp);
    printf("%d passed, %d failed, 0 skipped\n", s_passed, s_failed);
    return s_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: MIT
 *
 * native-tests [NAME]: runs all tests, or those whose name contains NAME.
 */
#include "fixture.h"
#include "test.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum
{
    EXIT_SKIPPED = 77,
    /* Of a test. On an emulated machine whose host runs eight other programs the longest ones take 90 s. */
    LIMIT_SECONDS = 300
};

typedef struct Totals
{
    int passed;
    int failed;
    int skipped;
} Totals;

void Test_Fail(const char* file, int line, const char* format, ...)
{
    const char* name = strrchr(file, '/');
    va_list arguments;
    va_start(arguments, format);
    printf("    %s:%d: ", name != NULL ? name + 1 : file, line);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout);
    _exit(EXIT_FAILURE);
}

void Test_Skip(const char* reason)
{
    printf("    %s\n", reason);
    fflush(stdout);
    _exit(EXIT_SKIPPED);
}

void Test_Note(const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("    ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

static void Run(const Test* test, bool inKernel)
{
    if (test->runBoth != NULL)
    {
        test->runBoth(inKernel ? KTLS_FLAG_ENABLE_KTLS : 0);
        return;
    }
    (inKernel ? test->runInKernel : test->run)();
}

static int RunInChild(const Test* test, bool inKernel)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
    {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(LIMIT_SECONDS);
        int before = Fixture_CountDescriptors();
        Run(test, inKernel);
        CHECK_EQ(Fixture_CountDescriptors(), before);
        Fixture_Free(); /* so that the leak check at exit finds nothing */
        exit(EXIT_SUCCESS);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
    {
        return EXIT_FAILURE;
    }
    if (WIFSIGNALED(status))
    {
        if (WTERMSIG(status) == SIGALRM)
        {
            printf("    has not ended within %d s\n", LIMIT_SECONDS);
        }
        else
        {
            printf("    ended by signal %d\n", WTERMSIG(status));
        }
        return EXIT_FAILURE;
    }
    return WEXITSTATUS(status);
}

static void RunTest(const Test* test, bool inKernel, bool kernelTls, Totals* totals)
{
    bool expected = getenv("KTLS_EXPECTED") != NULL && strcmp(getenv("KTLS_EXPECTED"), "1") == 0;
    int code = inKernel && !kernelTls ? EXIT_SKIPPED : RunInChild(test, inKernel);
    if (code == EXIT_SKIPPED && inKernel && expected)
    {
        printf("    kernel TLS is expected here\n");
        code = EXIT_FAILURE;
    }
    const char* outcome = code == EXIT_SUCCESS ? "passed" : code == EXIT_SKIPPED ? "skipped" : "FAILED";
    printf("%-8s%s%s\n", outcome, test->name, inKernel && test->runBoth != NULL ? ", in the kernel" : "");
    totals->passed += code == EXIT_SUCCESS;
    totals->skipped += code == EXIT_SKIPPED;
    totals->failed += code != EXIT_SUCCESS && code != EXIT_SKIPPED;
}

int main(int count, char** arguments)
{
    static const Test* const s_suites[] = {
        g_libraryTests,
        g_argumentTests,
        g_handshakeTests,
        g_helloTests,
        g_switchTests,
        g_clientCertificateTests,
        g_resumeTests,
        g_serverOptionTests,
        g_verifyTests,
        g_stapleTests,
        g_ticketChainTests,
        g_ioTests,
        g_sendFileTests,
        g_socketSendTests,
        g_closeTests,
        g_closeSendingTests,
        g_detachTests,
        g_keyUpdateTests,
        g_sessionTests,
        g_bystanderTests,
        g_pollerTests,
        g_postHandshakeTests,
        g_postHandshakeFailureTests,
        g_postHandshakeFullTests,
        g_kernelTests,
        g_directionTests,
        g_paddingTests,
        g_threadTests};
    const char* filter = count > 1 ? arguments[1] : "";
    Totals totals = {0, 0, 0};
    struct timespec start;
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);

    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* keeps the output of a test that hangs */
    (void)signal(SIGPIPE, SIG_IGN);         /* as .NET does, and as the contract requires */
    bool kernelTls = Fixture_Create();
    for (size_t s = 0; s < sizeof(s_suites) / sizeof(s_suites[0]); s++)
    {
        for (const Test* test = s_suites[s]; test->name != NULL; test++)
        {
            for (int inKernel = 0; inKernel <= 1 && strstr(test->name, filter) != NULL; inKernel++)
            {
                if (test->runBoth != NULL || (inKernel ? test->runInKernel : test->run) != NULL)
                {
                    RunTest(test, inKernel != 0, kernelTls, &totals);
                }
            }
        }
    }
    Fixture_Free();

    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    printf("in %ld s\n", (long)(end.tv_sec - start.tv_sec));
    printf("%d passed, %d failed, %d skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed == 0 && totals.passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

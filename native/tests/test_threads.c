/* SPDX-License-Identifier: MIT
 *
 * Objects that connections on different threads share: contexts, their ticket keys and sessions. TSAN detects most
 * errors.
 */
#include "fixture.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

enum
{
    THREADS = 4,
    LINKS = 6,
    BYTES = 20000
};

/* The connections of one thread. */
typedef struct Work
{
    pthread_t thread;
    Link links[LINKS];
} Work;

/* The newest session of any thread, which all threads resume. */
static KtlsSession* s_session;

static void* ShakeHands(void* state)
{
    Work* work = state;
    for (int i = 0; i < LINKS; i++)
    {
        Link* link = &work->links[i];
        CHECK_EQ(KtlsNative_UseSession(link->client, s_session), 0);
        Link_Run(link);
        CHECK_EQ(link->clientResult.status, KTLS_STATUS_OK);
        CHECK_EQ(link->serverResult.status, KTLS_STATUS_OK);
        Link_TransferBothWays(link, BYTES);
        KtlsConnectionInfo info;
        CHECK_EQ(KtlsNative_GetConnectionInfo(link->server, &info), 0);
        Link_Free(link);
    }
    return NULL;
}

static atomic_bool s_over;

static void* RotateKeys(void* context)
{
    while (!atomic_load(&s_over))
    {
        CHECK_EQ(KtlsNative_RotateTicketKeys(context), 0);
    }
    return NULL;
}

static Link CreateLink(KtlsContext* client, KtlsContext* server)
{
    Link link = {.verify = Fixture_Accept};
    CHECK_EQ(KtlsPair_Open(&link.pair), 0);
    link.client = Fixture_CreateConnection(client, link.pair.client, "localhost");
    link.server = Fixture_CreateConnection(server, link.pair.server, NULL);
    return link;
}

/* Tickets arrive with the first data. */
static KtlsSession* ObtainSession(KtlsContext* client, KtlsContext* server)
{
    Link link = CreateLink(client, server);
    Link_Complete(&link);
    KtlsSession* session = NULL;
    CHECK_EQ(KtlsNative_TakeSession(link.client, &session), 0);
    CHECK(session != NULL);
    Link_Free(&link);
    return session;
}

static void RunOnThreads(int32_t version)
{
    Work works[THREADS];
    pthread_t rotator;
    KtlsContextOptions clientOptions = Fixture_ClientOptions(version);
    KtlsContextOptions serverOptions = Fixture_ServerOptions(version);
    clientOptions.flags |= KTLS_FLAG_CLIENT_SESSIONS;
    Fixture_Initialize();
    KtlsContext* client = Fixture_CreateContext(&clientOptions);
    KtlsContext* server = Fixture_CreateContext(&serverOptions);
    s_session = ObtainSession(client, server);
    for (int i = 0; i < THREADS; i++)
    {
        for (int j = 0; j < LINKS; j++)
        {
            works[i].links[j] = CreateLink(client, server);
        }
    }

    atomic_store(&s_over, false);
    CHECK_EQ(pthread_create(&rotator, NULL, RotateKeys, server), 0);
    for (int i = 0; i < THREADS; i++)
    {
        CHECK_EQ(pthread_create(&works[i].thread, NULL, ShakeHands, &works[i]), 0);
    }
    /* The last connection frees the client context, on any of the threads. */
    KtlsNative_ContextFree(client);
    for (int i = 0; i < THREADS; i++)
    {
        CHECK_EQ(pthread_join(works[i].thread, NULL), 0);
    }
    atomic_store(&s_over, true);
    CHECK_EQ(pthread_join(rotator, NULL), 0);
    KtlsNative_ContextFree(server);
    KtlsNative_SessionFree(s_session);
}

static void Connections_of_one_context_on_many_threads_tls13(void)
{
    RunOnThreads(0x0304);
}

static void Connections_of_one_context_on_many_threads_tls12(void)
{
    RunOnThreads(0x0303);
}

const Test g_threadTests[] = {
    {"threads: connections of one context, TLS 1.3", Connections_of_one_context_on_many_threads_tls13, false},
    {"threads: connections of one context, TLS 1.2", Connections_of_one_context_on_many_threads_tls12, false},
    {NULL, NULL, false}};

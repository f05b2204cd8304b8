/* SPDX-License-Identifier: MIT
 *
 * Objects that connections on different threads share: contexts, their ticket keys and sessions. TSAN detects most
 * errors.
 */
#include "fixture.h"
#include "test.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
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

/* Tickets arrive with the first data. */
static KtlsSession* ObtainSession(KtlsContext* client, KtlsContext* server)
{
    Link link = Link_CreateWith(client, server, "localhost");
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
            works[i].links[j] = Link_CreateWith(client, server, "localhost");
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

/* One end of a connection, on which a thread writes and another one reads. */
typedef struct End
{
    KtlsConnection* connection;
    int socket;
    bool updates; /* its reading thread also sends KeyUpdates, between a Write and its Flush of the other thread */
    pthread_mutex_t lock;
    pthread_t writer;
    pthread_t reader;
} End;

enum
{
    FLOW = 3000000,
    PIECE = 20000,
    UPDATES = 150
};

static void* WriteAll(void* state)
{
    End* end = state;
    uint8_t data[PIECE];
    for (size_t sent = 0; sent < FLOW;)
    {
        size_t length = FLOW - sent < PIECE ? FLOW - sent : PIECE;
        for (size_t i = 0; i < length; i++)
        {
            data[i] = Fixture_PatternAt(sent + i);
        }
        KtlsResult result;
        (void)pthread_mutex_lock(&end->lock);
        CHECK_EQ(KtlsNative_Write(end->connection, end->socket, data, (int32_t)length, &result), 0);
        (void)pthread_mutex_unlock(&end->lock);
        CHECK_EQ(result.status, KTLS_STATUS_OK);
        sent += (size_t)result.bytes;
        (void)sched_yield(); /* the other thread's turn */
        for (;;)
        {
            CHECK_EQ(KtlsNative_Flush(end->connection, end->socket, &result), 0);
            if (result.status == KTLS_STATUS_OK)
            {
                break;
            }
            CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
            Fixture_Wait(end->socket, POLLOUT);
        }
    }
    return NULL;
}

static void UpdateKey(End* end)
{
    KtlsResult result;
    for (;;)
    {
        CHECK_EQ(KtlsNative_KeyUpdate(end->connection, end->socket, 0, &result), 0);
        if (result.status == KTLS_STATUS_OK)
        {
            return;
        }
        CHECK_EQ(result.status, KTLS_STATUS_WANT_WRITE);
        Fixture_Wait(end->socket, POLLOUT);
    }
}

static void* ReadAll(void* state)
{
    End* end = state;
    uint8_t data[PIECE];
    size_t updates = 0;
    for (size_t received = 0; received < FLOW;)
    {
        KtlsResult result;
        (void)pthread_mutex_lock(&end->lock);
        if (end->updates && updates * (FLOW / UPDATES) < received)
        {
            updates++;
            UpdateKey(end);
        }
        CHECK_EQ(KtlsNative_Read(end->connection, end->socket, data, sizeof(data), &result), 0);
        (void)pthread_mutex_unlock(&end->lock);
        CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
        for (size_t i = 0; i < (size_t)result.bytes; i++)
        {
            CHECK_EQ(data[i], Fixture_PatternAt(received + i));
        }
        received += (size_t)result.bytes;
        if (result.status == KTLS_STATUS_WANT_READ && result.messages == 0)
        {
            Fixture_Wait(end->socket, POLLIN);
        }
    }
    return NULL;
}

static void Start(End* end)
{
    CHECK_EQ(pthread_mutex_init(&end->lock, NULL), 0);
    CHECK_EQ(pthread_create(&end->writer, NULL, WriteAll, end), 0);
    CHECK_EQ(pthread_create(&end->reader, NULL, ReadAll, end), 0);
}

static void Join(End* end)
{
    CHECK_EQ(pthread_join(end->writer, NULL), 0);
    CHECK_EQ(pthread_join(end->reader, NULL), 0);
    (void)pthread_mutex_destroy(&end->lock);
}

/* Records stay in order although they are sent without a lock. */
static void Flushes_beside_reads(void)
{
    Fixture_Initialize();
    Link link = Link_Establish(0x0304, 0);
    End client = {.connection = link.client, .socket = link.pair.client, .updates = true};
    End server = {.connection = link.server, .socket = link.pair.server};
    Start(&client);
    Start(&server);
    Join(&client);
    Join(&server);
    Link_Free(&link);
}

const Test g_threadTests[] = {
    {"threads: flushes beside reads", .run = Flushes_beside_reads},
    {"threads: connections of one context, TLS 1.3", .run = Connections_of_one_context_on_many_threads_tls13},
    {"threads: connections of one context, TLS 1.2", .run = Connections_of_one_context_on_many_threads_tls12},
    {.name = NULL}};

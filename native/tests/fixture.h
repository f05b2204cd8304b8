/* SPDX-License-Identifier: MIT
 *
 * What the tests share: certificates made in the process, connected sockets, and both ends of a connection driven by
 * one thread.
 */
#ifndef KTLS_FIXTURE_H
#define KTLS_FIXTURE_H

#include "ktls_export.h"
#include "ktls_pair.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

/* Root, intermediate and leaf for "localhost", EC P-256, made once before the tests are forked. */
typedef struct Fixture
{
    EVP_PKEY* key;      /* the leaf's */
    EVP_PKEY* otherKey; /* of no certificate */
    X509* leaf;
    X509* intermediate;
    KtlsBlob chain[2]; /* leaf, intermediate */
    KtlsProbe probe;
    KtlsLibraryInfo library; /* filled by Fixture_Initialize */
} Fixture;

extern Fixture g_fixture;

/* Prints what kernel this is. Returns whether it takes TLS keys. */
bool Fixture_Create(void);
void Fixture_Free(void);
int Fixture_CountDescriptors(void);

/* KtlsNative_Initialize, checked. */
void Fixture_Initialize(void);

KtlsContextOptions Fixture_ClientOptions(int32_t version);
KtlsContextOptions Fixture_ServerOptions(int32_t version);
KtlsContextOptions Fixture_PausingOptions(void); /* a server that has nothing but the pause at the ClientHello */
KtlsContext* Fixture_CreateContext(const KtlsContextOptions* options);
KtlsConnection* Fixture_CreateConnection(KtlsContext* context, int socket, const char* serverName);

/* Bounds the kernel's send buffer, so that a stalled reader soon stops the sender. */
void Fixture_ShrinkBuffers(const KtlsPair* pair);

/* Waits until the socket has one of the poll events; a test that waits in vain ends by the runner's limit. */
void Fixture_Wait(int socket, short events);

/* Accepts every chain; state may point to an int that counts the calls. */
int32_t Fixture_Accept(intptr_t state, const intptr_t* chain, int32_t count);

/* The peer of the connection has shown so many certificates of the fixture's chain, and no more. */
void Fixture_CheckPeerChain(const KtlsConnection* connection, int32_t count);

/* An X509* is the certificate at this place of the fixture's chain. */
bool Fixture_IsInChain(intptr_t certificate, int32_t index);

/* Steps the shim's side and a plain SSL until both have shaken hands. */
void Fixture_ShakeHands(KtlsConnection* shim, int socket, SSL* plain);

/* Both ends of a connection. */
typedef struct Link
{
    KtlsPair pair;
    KtlsConnection* client;
    KtlsConnection* server;
    KtlsVerifyCallback verify;
    intptr_t verifyState;
    KtlsResult clientResult; /* the last handshake step's */
    KtlsResult serverResult;
} Link;

/* Connections on a fresh pair, no handshake yet; each context's reference is given up at once. */
Link Link_Create(const KtlsContextOptions* client, const KtlsContextOptions* server);

/* Steps both handshakes until each has ended, well or not. */
void Link_Run(Link* link);

/* Steps both until one of them has this status, which is a pause. */
void Link_RunToPause(Link* link, int32_t status);

/* Link_Create, and the server has the ClientHello. */
Link Link_CreatePaused(const KtlsContextOptions* client, const KtlsContextOptions* server);

/* Decides that pause for a context with these options. */
void Link_Switch(Link* link, const KtlsContextOptions* options);

/* Link_Run to the good end of both, and data both ways. */
void Link_CompleteWell(Link* link);

/* Link_Create, Link_Run, and a check that both ended well. flags: KTLS_FLAG_ENABLE_KTLS or 0, for both. */
Link Link_Establish(int32_t version, int32_t flags);
void Link_Free(Link* link);

/* Sends by KtlsNative_Write, or by send(2) where that is refused. Returns the bytes taken, 0 when full. */
size_t Link_SendSome(KtlsConnection* from, int socket, const uint8_t* data, size_t length);

/* Sends size bytes of a pattern from one end to the other and checks them. */
void Link_Transfer(KtlsConnection* from, int fromSocket, KtlsConnection* to, int toSocket, size_t size);
void Link_TransferBothWays(Link* link, size_t size);

/* Reads until the status is another than WANT_READ, waiting in between. */
void Link_ReadOne(KtlsConnection* connection, int socket, uint8_t* buffer, int32_t capacity, KtlsResult* result);

uint8_t Fixture_PatternAt(size_t offset);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Functions that the tests share: generated certificates, connected sockets, and a connection whose two ends one
 * thread drives.
 */
#ifndef KTLS_FIXTURE_H
#define KTLS_FIXTURE_H

#include "ktls_export.h"
#include "ktls_pair.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* Root, intermediate and leaf for "localhost", EC P-256. They are created once, before the tests are forked. */
typedef struct Fixture
{
    EVP_PKEY* key;      /* of the leaf */
    EVP_PKEY* otherKey; /* of none of the certificates */
    X509* leaf;
    X509* intermediate;
    KtlsBlob chain[2]; /* leaf, intermediate */
    KtlsProbe probe;
    KtlsLibraryInfo library; /* filled by Fixture_Initialize */
} Fixture;

extern Fixture g_fixture;

/* Prints the kernel version and features. Returns whether the kernel accepts TLS keys. */
bool Fixture_Create(void);
void Fixture_Free(void);
int Fixture_CountDescriptors(void);

/* Calls KtlsNative_Initialize, which must succeed. */
void Fixture_Initialize(void);

KtlsContextOptions Fixture_ClientOptions(int32_t version);
KtlsContextOptions Fixture_ServerOptions(int32_t version);
KtlsContextOptions Fixture_PausingOptions(void); /* a server without certificate that pauses at the ClientHello */
KtlsContext* Fixture_CreateContext(const KtlsContextOptions* options);
KtlsConnection* Fixture_CreateConnection(KtlsContext* context, int socket, const char* serverName);

/* Opens a pair with TCP_NODELAY, as HTTP uses it, so that a test does not wait for delayed acknowledgements. */
void Fixture_OpenPair(KtlsPair* pair);

/* Shrinks the socket buffers, so that the send buffer is soon full if nothing is read. */
void Fixture_ShrinkBuffers(const KtlsPair* pair);

/* Sends zeros until the socket is full, and returns their number. There may be room again later: the peer's receive
 * buffer may still take some, and after 200 ms TCP sends the part of a segment that fits into the peer's window
 * (tcp_write_wakeup). */
size_t Fixture_Fill(int socket);

/* Receives the bytes of Fixture_Fill, and nothing behind them. */
void Fixture_Drain(int socket, size_t size);

/* Waits for one of the poll events. The test fails at this line if none occurs in time. */
#define Fixture_Wait(socket, events) \
    Fixture_WaitAt(__FILE__, __LINE__, #events " of " #socket, (struct pollfd[]){{socket, events, 0}}, 1)

/* The same for two sockets, of which one may be -1. */
#define Fixture_WaitForEither(waits) Fixture_WaitAt(__FILE__, __LINE__, "either socket", waits, 2)

void Fixture_WaitAt(const char* file, int line, const char* what, struct pollfd* waits, nfds_t count);

/* Accepts every chain. state may point to an int that counts the calls. */
int32_t Fixture_Accept(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl);

/* Returns state, which is the result of the verification. */
int32_t Fixture_Reject(intptr_t state, const intptr_t* chain, int32_t count, int32_t staple, intptr_t ssl);

/* Results of a verification, and the alerts that the peer gets for them. */
typedef struct Rejection
{
    int32_t code;
    int32_t alert;
} Rejection;

extern const Rejection g_rejections[7];

/* Checks that the peer sent exactly the first count certificates of the fixture's chain. */
void Fixture_CheckPeerChain(KtlsConnection* connection, int32_t count);

/* Returns whether an X509* is the certificate at this index of the fixture's chain. */
bool Fixture_IsInChain(intptr_t certificate, int32_t index);

/* Runs the handshake between the shim and a plain SSL. */
void Fixture_ShakeHands(KtlsConnection* shim, int socket, SSL* plain);

/* Both ends of a connection. */
typedef struct Link
{
    KtlsPair pair;
    KtlsConnection* client;
    KtlsConnection* server;
    KtlsVerifyCallback verify;
    intptr_t verifyState;
    KtlsResult clientResult; /* of the last handshake step */
    KtlsResult serverResult;
} Link;

/* Creates connections on a new pair, without a handshake. */
Link Link_CreateWith(KtlsContext* client, KtlsContext* server, const char* serverName);

/* Does the same with new contexts. Releases the references to the contexts. */
Link Link_Create(const KtlsContextOptions* client, const KtlsContextOptions* server);

/* Does the same with the options of Fixture_ClientOptions and Fixture_ServerOptions. */
Link Link_CreateDefault(int32_t version);

/* Runs both handshakes until each has succeeded or failed. */
void Link_Run(Link* link);

/* Runs both handshakes, which must succeed. */
void Link_Succeed(Link* link);

/* Runs both handshakes until one of them pauses with this status. */
void Link_RunToPause(Link* link, int32_t status);

/* Creates a link whose server is paused at the ClientHello. */
Link Link_CreatePaused(const KtlsContextOptions* client, const KtlsContextOptions* server);

/* Ends that pause by switching to a context with these options. */
void Link_Switch(Link* link, const KtlsContextOptions* options);

/* Runs both handshakes, which must succeed, and transfers data both ways. */
void Link_Complete(Link* link);

/* Creates a link and runs both handshakes, which must succeed. flags is KTLS_FLAG_ENABLE_KTLS or 0, for both ends. */
Link Link_Establish(int32_t version, int32_t flags);
void Link_Free(Link* link);

/* Sends with KtlsNative_Write and KtlsNative_Flush, or with send(2) if the kernel encrypts. Returns the number of bytes
 * that were taken, 0 if the socket has no room yet for the bytes before. With length 0 it only sends what is held. */
size_t Link_SendPart(KtlsConnection* from, int socket, const uint8_t* data, size_t length);

/* Sends size bytes of the pattern from one end to the other and checks them. */
void Link_Transfer(KtlsConnection* from, int fromSocket, KtlsConnection* to, int toSocket, size_t size);
void Link_TransferBothWays(Link* link, size_t size);

/* Reads until the status is not WANT_READ, and waits for data in between. */
void Link_ReadOne(KtlsConnection* connection, int socket, uint8_t* buffer, int32_t capacity, KtlsResult* result);

/* As Link_ReadOne, but also returns WANT_READ once a handshake message was processed. */
void Link_ReadNext(KtlsConnection* connection, int socket, uint8_t* buffer, int32_t capacity, KtlsResult* result);

uint8_t Fixture_PatternAt(size_t offset);

/* Creates a file in memory that contains size bytes of the pattern. */
int Fixture_OpenFile(size_t size);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What tests do with a request for the client's certificate after the handshake (TLS 1.3), step by step at either end.
 */
#ifndef KTLS_TEST_REQUEST_H
#define KTLS_TEST_REQUEST_H

#include "fixture.h"

/* Past the handshake and its tickets. own: the client's context has the chain. */
Link Request_Establish(int32_t flags, int32_t clientFlags, int32_t serverFlags, bool own);

/* One call of the server's; the error queue stays empty. */
KtlsResult Request_Judged(Link* link, KtlsVerifyCallback verify, intptr_t state);

/* As Request_Judged, accepting whatever comes. Returns the status. */
int32_t Request_Once(Link* link);

/* Reads behind tickets and KeyUpdates. Returns the status. */
int32_t Request_ReadSome(KtlsConnection* connection, int socket, int32_t* bytes);

/* The client's step where no data is to come. */
int32_t Request_ReadNothing(Link* link);

/* The client meets the request, and has sent nothing. */
void Request_Pause(Link* link);

/* The server asks, and the client meets it. */
void Request_StartAndPause(Link* link);

/* The client chooses so many of the fixture's chain, 0: none. */
void Request_Use(Link* link, int32_t count);

/* The answer is on its way: waits for the server's verdict. */
KtlsResult Request_Finish(Link* link, KtlsVerifyCallback verify, intptr_t state);

/* The client answers with this chain, -1: with what it has. */
void Request_Answer(Link* link, int32_t count);

/* The call is not performed, and answers this errno. */
void Request_CheckRefusal(KtlsConnection* connection, int socket, int32_t expected);

/* While the request is out. */
void Request_ServerMayNotRead(Link* link);

#endif

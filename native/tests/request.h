/* SPDX-License-Identifier: MIT
 *
 * Post-handshake authentication in tests (TLS 1.3), in single steps of either end.
 */
#ifndef KTLS_TEST_REQUEST_H
#define KTLS_TEST_REQUEST_H

#include "fixture.h"

/* Creates a link after the handshake and its tickets. own: the client's context has the fixture's chain. */
Link Request_Establish(int32_t flags, int32_t clientFlags, int32_t serverFlags, bool own);

/* Calls KtlsNative_RequestCertificate once and checks that the error queue is empty. */
KtlsResult Request_StepWith(Link* link, KtlsVerifyCallback verify, intptr_t state);

/* As Request_StepWith, but accepts every chain. Returns the status. */
int32_t Request_Step(Link* link);

/* Reads past tickets and KeyUpdates. Returns the status. */
int32_t Request_ReadSome(KtlsConnection* connection, int socket, int32_t* bytes);

/* Reads on the client and checks that no data arrives. Returns the status. */
int32_t Request_ReadNothing(Link* link);

/* Reads on the client until it pauses at the request. */
void Request_ReadToPause(Link* link);

/* Sends the request, and reads on the client until it pauses. */
void Request_StartAndReadToPause(Link* link);

/* Selects the first count certificates of the fixture's chain on the client; 0 selects none. */
void Request_UseCertificates(Link* link, int32_t count);

/* Waits until the server has processed the response. */
KtlsResult Request_Finish(Link* link, KtlsVerifyCallback verify, intptr_t state);

/* Sends the response of the client with the first count certificates; -1 keeps the earlier selection. */
void Request_Respond(Link* link, int32_t count);

/* Checks that KtlsNative_RequestCertificate returns this errno. */
void Request_CheckError(KtlsConnection* connection, int socket, int32_t expected);

/* Checks that Read returns EBUSY on the server while the response is outstanding. */
void Request_CheckReadIsBusy(Link* link);

#endif

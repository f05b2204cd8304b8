/* SPDX-License-Identifier: MIT
 *
 * TLS_RX_EXPECT_NO_PAD and a peer that pads, with several records in one receive.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum
{
    RECORDS = 8,
    RECORD_SIZE = 700,
    TOTAL = RECORDS * RECORD_SIZE
};

/* Receives after all records are queued. Returns the number of correct bytes. */
static int Transfer(bool expectNone, bool pads, int* receives)
{
    Fixture_Initialize();
    KtlsContextOptions options = Fixture_ServerOptions(TLS1_3_VERSION);
    options.flags |= KTLS_FLAG_ENABLE_KTLS;
    KtlsContext* server = Fixture_CreateContext(&options);
    KtlsPair pair;
    CHECK_EQ(KtlsPair_Open(&pair), 0);
    KtlsConnection* shim = Fixture_CreateConnection(server, pair.server, NULL);
    KtlsNative_ContextFree(server);
    SSL_CTX* client = SSL_CTX_new(TLS_client_method());
    CHECK(client != NULL && (!pads || SSL_CTX_set_block_padding(client, 512) == 1));
    SSL* plain = SSL_new(client);
    CHECK(plain != NULL && SSL_set_fd(plain, pair.client) == 1);
    SSL_set_connect_state(plain);
    Fixture_ShakeHands(shim, pair.server, plain);
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(shim, &info), 0);
    if (info.ktlsReceive == 0)
    {
        Test_Note("this OpenSSL does not receive TLS 1.3 in the kernel");
    }
    int on = 1;
    CHECK(!expectNone || info.ktlsReceive == 0 || setsockopt(pair.server, 282, 4, &on, sizeof(on)) == 0);

    uint8_t sent[TOTAL];
    uint8_t received[TOTAL + 65536] = {0};
    for (size_t i = 0; i < TOTAL; i++)
    {
        sent[i] = Fixture_PatternAt(i);
    }
    for (int i = 0; i < RECORDS; i++)
    {
        CHECK_EQ(SSL_write(plain, sent + i * RECORD_SIZE, RECORD_SIZE), RECORD_SIZE);
    }
    *receives = 0;
    for (int at = 0; at < TOTAL; (*receives)++)
    {
        KtlsResult result;
        ssize_t count;
        if (info.ktlsReceive != 0)
        {
            Fixture_Wait(pair.server, POLLIN);
            count = recv(pair.server, received + at, 65536, 0);
        }
        else
        {
            /* One receive of the shim may hold all records, so that only a read tells whether to wait. */
            Link_ReadOne(shim, pair.server, received + at, 65536, &result);
            count = (ssize_t)result.bytes;
        }
        CHECK(count > 0);
        at += (int)count;
    }
    int right = 0;
    while (right < TOTAL && received[right] == sent[right])
    {
        right++;
    }
    SSL_free(plain);
    SSL_CTX_free(client);
    KtlsNative_ConnectionFree(shim);
    KtlsPair_Close(&pair);
    return right;
}

static void Without_padding(void)
{
    int receives = 0;
    CHECK_EQ(Transfer(false, false, &receives), TOTAL);
    CHECK_EQ(Transfer(true, false, &receives), TOTAL);
    Test_Note("%d records in %d receives", RECORDS, receives);
}

static void With_padding_that_is_expected(void)
{
    int receives = 0;
    CHECK_EQ(Transfer(false, true, &receives), TOTAL);
}

/* If bytes are wrong, the kernel copied a record that it decrypted twice to the wrong offset. The probe must have
 * detected it. */
static void With_padding_that_is_not(void)
{
    int receives = 0;
    int right = Transfer(true, true, &receives);
    Test_Note("%d of %d bytes correct, in %d receives", right, TOTAL, receives);
    bool receives13 = g_fixture.library.openSslVersion >= 0x30200000;
    CHECK_EQ(right == TOTAL, g_fixture.probe.noPadErrno == 0 || !receives13);
    CHECK(g_fixture.probe.noPadErrno == 0 || g_fixture.probe.noPadErrno == EBADMSG);
}

const Test g_paddingTests[] = {
    {"padding: none sent", Without_padding, true},
    {"padding: sent and expected", With_padding_that_is_expected, true},
    {"padding: sent and not expected", With_padding_that_is_not, true},
    {NULL, NULL, false}};

/* SPDX-License-Identifier: MIT
 *
 * TLS_RX_EXPECT_NO_PAD and a peer that pads, with several records in one receive.
 */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum
{
    RECORDS = 8,
    RECORD_SIZE = 700,
    TOTAL = RECORDS * RECORD_SIZE
};

/* What the peer does with its records. */
typedef struct Peer
{
    bool pads;
    bool updates; /* sends a KeyUpdate after each record, which is a control record to the kernel */
    int piece;    /* sends this many bytes at a time, and the next record when one is received; 0: all at once */
} Peer;

/* One end is the shim, whose records the kernel decrypts if OpenSSL lets it. The other is OpenSSL in memory. */
typedef struct Transfer
{
    KtlsPair pair;
    KtlsConnection* shim;
    SSL_CTX* client;
    SSL* plain;
    bool kernel;
    int receives;
    int at;
    uint8_t sent[TOTAL];
    uint8_t received[TOTAL + 65536];
} Transfer;

static Transfer s_transfer;

static void Open(Transfer* transfer, bool expectNone, const Peer* peer)
{
    Fixture_Initialize();
    memset(transfer, 0, sizeof(*transfer));
    KtlsContextOptions options = Fixture_ServerOptions(TLS1_3_VERSION);
    options.flags |= KTLS_FLAG_ENABLE_KTLS;
    KtlsContext* server = Fixture_CreateContext(&options);
    CHECK_EQ(KtlsPair_Open(&transfer->pair), 0);
    transfer->shim = Fixture_CreateConnection(server, transfer->pair.server, NULL);
    KtlsNative_ContextFree(server);
    transfer->client = SSL_CTX_new(TLS_client_method());
    CHECK(transfer->client != NULL && (!peer->pads || SSL_CTX_set_block_padding(transfer->client, 512) == 1));
    transfer->plain = SSL_new(transfer->client);
    CHECK(transfer->plain != NULL && SSL_set_fd(transfer->plain, transfer->pair.client) == 1);
    SSL_set_connect_state(transfer->plain);
    Fixture_ShakeHands(transfer->shim, transfer->pair.server, transfer->plain);
    SSL_set0_wbio(transfer->plain, BIO_new(BIO_s_mem()));
    KtlsConnectionInfo info;
    CHECK_EQ(KtlsNative_GetConnectionInfo(transfer->shim, &info), 0);
    transfer->kernel = info.ktlsReceive != 0;
    if (!transfer->kernel)
    {
        Test_Note("this OpenSSL does not receive TLS 1.3 in the kernel");
    }
    int on = 1;
    CHECK(!expectNone || !transfer->kernel || setsockopt(transfer->pair.server, 282, 4, &on, sizeof(on)) == 0);
}

static void Close(Transfer* transfer)
{
    SSL_free(transfer->plain);
    SSL_CTX_free(transfer->client);
    KtlsNative_ConnectionFree(transfer->shim);
    KtlsPair_Close(&transfer->pair);
}

/* Receives once. Returns false if nothing more has arrived. */
static bool Receive(Transfer* transfer)
{
    uint8_t* to = transfer->received + transfer->at;
    ssize_t count = -1;
    int error = EIO; /* OpenSSL reads */
    if (transfer->kernel)
    {
        count = recv(transfer->pair.server, to, 65536, MSG_DONTWAIT);
        error = count < 0 ? errno : 0;
    }
    if (error == EIO)
    {
        KtlsResult result;
        CHECK_EQ(transfer->kernel ? KtlsNative_ReceiveFailed(transfer->shim, transfer->pair.server, EIO) : 0, 0);
        CHECK_EQ(KtlsNative_Read(transfer->shim, transfer->pair.server, to, 65536, &result), 0);
        CHECK(result.status == KTLS_STATUS_OK || result.status == KTLS_STATUS_WANT_READ);
        count = (ssize_t)result.bytes;
        error = result.status == KTLS_STATUS_OK || result.messages > 0 ? 0 : EAGAIN;
    }
    CHECK(error == 0 || error == EAGAIN);
    if (error == 0)
    {
        transfer->at += (int)count;
        transfer->receives++;
    }
    return error == 0;
}

/* Sends what the peer has written, and receives up to a total. */
static void Flush(Transfer* transfer, int piece, int total)
{
    uint8_t bytes[RECORDS * 2048];
    int count = BIO_read(SSL_get_wbio(transfer->plain), bytes, sizeof(bytes));
    for (int from = 0; from < count;)
    {
        int size = count - from < piece ? count - from : piece;
        CHECK_EQ(send(transfer->pair.client, bytes + from, (size_t)size, MSG_NOSIGNAL), size);
        from += size;
        if (Receive(transfer))
        {
            CHECK(transfer->at <= total);
        }
    }
    while (transfer->at < total)
    {
        if (!Receive(transfer))
        {
            Fixture_Wait(transfer->pair.server, POLLIN);
        }
    }
}

/* Returns the number of correct bytes. */
static int Run(bool expectNone, const Peer* peer, int* receives)
{
    Transfer* transfer = &s_transfer;
    Open(transfer, expectNone, peer);
    for (size_t i = 0; i < TOTAL; i++)
    {
        transfer->sent[i] = Fixture_PatternAt(i);
    }
    for (int i = 0; i < RECORDS; i++)
    {
        CHECK_EQ(SSL_write(transfer->plain, transfer->sent + i * RECORD_SIZE, RECORD_SIZE), RECORD_SIZE);
        CHECK(!peer->updates || SSL_key_update(transfer->plain, SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
        if (peer->piece != 0)
        {
            Flush(transfer, peer->piece, (i + 1) * RECORD_SIZE);
        }
    }
    Flush(transfer, INT_MAX, TOTAL);
    int right = 0;
    while (right < TOTAL && transfer->received[right] == transfer->sent[right])
    {
        right++;
    }
    *receives = transfer->receives;
    Close(transfer);
    return right;
}

static void Without_padding(void)
{
    int receives = 0;
    Peer peer = {false, false, 0};
    CHECK_EQ(Run(false, &peer, &receives), TOTAL);
    CHECK_EQ(Run(true, &peer, &receives), TOTAL);
    Test_Note("%d records in %d receives", RECORDS, receives);
}

static void With_padding_that_is_expected(void)
{
    int receives = 0;
    Peer peer = {true, false, 0};
    CHECK_EQ(Run(false, &peer, &receives), TOTAL);
}

/* If bytes are wrong, the kernel copied a record that it decrypted twice to the wrong offset. The probe must have
 * detected it. */
static void Check_padding_that_is_not_expected(const Peer* peer)
{
    int receives = 0;
    int right = Run(true, peer, &receives);
    Test_Note("%d of %d bytes correct, in %d receives", right, TOTAL, receives);
    bool receives13 = g_fixture.library.openSslVersion >= 0x30200000;
    CHECK_EQ(right == TOTAL, g_fixture.probe.noPadErrno == 0 || !receives13);
    CHECK(g_fixture.probe.noPadErrno == 0 || g_fixture.probe.noPadErrno == EBADMSG);
}

static void With_padding_that_is_not(void)
{
    Check_padding_that_is_not_expected(&(Peer){true, false, 0});
}

/* A record alone in its receive is right on every kernel. */
static void In_pieces(void)
{
    int receives = 0;
    Peer peer = {true, false, 333};
    CHECK_EQ(Run(true, &peer, &receives), TOTAL);
    CHECK(receives >= RECORDS);
}

/* Each record, of data or not, is decrypted twice. */
static void With_control_records_between(void)
{
    if (g_fixture.probe.rekeyReceiveErrno != 0)
    {
        Test_Note("this kernel does not take a second key");
        return;
    }
    for (int piece = 0; piece <= 333; piece += 333)
    {
        int receives = 0;
        Peer padded = {true, true, piece};
        CHECK_EQ(Run(true, &padded, &receives), TOTAL);
        Peer plain = {false, true, piece};
        CHECK_EQ(Run(true, &plain, &receives), TOTAL);
        Test_Note("%d records and as many KeyUpdates in %d receives", RECORDS, receives);
    }
}

const Test g_paddingTests[] = {
    {"padding: none sent", .runInKernel = Without_padding},
    {"padding: sent and expected", .runInKernel = With_padding_that_is_expected},
    {"padding: sent and not expected", .runInKernel = With_padding_that_is_not},
    {"padding: sent in pieces and not expected", .runInKernel = In_pieces},
    {"padding: control records between", .runInKernel = With_control_records_between},
    {.name = NULL}};

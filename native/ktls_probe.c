/* SPDX-License-Identifier: MIT */
#include "ktls_export.h"
#include "ktls_pair.h"
#include "ktls_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* In each struct tls12_crypto_info_*, IV, key, salt and sequence number directly follow the header. */
#define CRYPTO_MAX 56

typedef struct Cipher
{
    uint16_t id;
    uint8_t size; /* of its struct tls12_crypto_info_* */
} Cipher;

static const Cipher s_ciphers[KTLS_PROBE_CIPHERS] = {
    {TLS_CIPHER_AES_GCM_128, 4 + 8 + 16 + 4 + 8},
    {TLS_CIPHER_AES_GCM_256, 4 + 8 + 32 + 4 + 8},
    {TLS_CIPHER_AES_CCM_128, 4 + 8 + 16 + 4 + 8},
    {TLS_CIPHER_CHACHA20_POLY1305, 4 + 12 + 32 + 0 + 8},
};

static const uint16_t s_versions[KTLS_PROBE_VERSIONS] = {KERNEL_TLS_1_2, KERNEL_TLS_1_3};

static int32_t SetOption(int socket, int level, int name, const void* value, socklen_t length)
{
    return setsockopt(socket, level, name, value, length) == 0 ? 0 : errno;
}

static int32_t SetUlp(int socket)
{
    return SetOption(socket, IPPROTO_TCP, TCP_ULP_OPTION, "tls", sizeof("tls"));
}

static int32_t GenerateKey(uint8_t crypto[CRYPTO_MAX], uint16_t version, const Cipher* cipher)
{
    TlsCryptoInfo header = {version, cipher->id};
    if (getrandom(crypto, cipher->size, GRND_NONBLOCK) < 0)
    {
        return errno;
    }
    memcpy(crypto, &header, sizeof(header));
    return 0;
}

static int32_t SetKey(int socket, int direction, uint16_t version, const Cipher* cipher)
{
    uint8_t crypto[CRYPTO_MAX] = {0};
    int32_t error = GenerateKey(crypto, version, cipher);
    if (error == 0)
    {
        error = SetOption(socket, SOL_TLS_LEVEL, direction, crypto, cipher->size);
    }
    explicit_bzero(crypto, sizeof(crypto));
    return error;
}

/* A test of one feature on one end of a new pair: the key of a direction, and optionally one further call. */
typedef enum Extra
{
    EXTRA_NONE,
    EXTRA_SECOND_KEY,
    EXTRA_OPTION
} Extra;

typedef struct ProbeCase
{
    int direction;
    uint16_t version;
    const Cipher* cipher;
    Extra extra;
    int option;
} ProbeCase;

static int32_t RunOnSocket(int socket, const ProbeCase* probeCase)
{
    int32_t error = SetUlp(socket);
    if (error == 0)
    {
        error = SetKey(socket, probeCase->direction, probeCase->version, probeCase->cipher);
    }
    if (error == 0 && probeCase->extra == EXTRA_SECOND_KEY)
    {
        error = SetKey(socket, probeCase->direction, probeCase->version, probeCase->cipher);
    }
    if (error == 0 && probeCase->extra == EXTRA_OPTION)
    {
        int on = 1;
        error = SetOption(socket, SOL_TLS_LEVEL, probeCase->option, &on, sizeof(on));
    }
    return error;
}

/* Returns the errno of creating the pair. *outcome is set to the errno of the case. */
static int32_t RunCase(const ProbeCase* probeCase, int32_t* outcome)
{
    KtlsPair pair;
    int32_t error = KtlsPair_Open(&pair);
    if (error == 0)
    {
        *outcome = RunOnSocket(pair.client, probeCase);
        KtlsPair_Close(&pair);
    }
    return error;
}

static int32_t RunUlp(int32_t* outcome)
{
    KtlsPair pair;
    int32_t error = KtlsPair_Open(&pair);
    if (error == 0)
    {
        *outcome = SetUlp(pair.client);
        KtlsPair_Close(&pair);
    }
    return error;
}

static int32_t RunCiphers(KtlsProbe* probe)
{
    int32_t error = 0;
    for (int v = 0; v < KTLS_PROBE_VERSIONS && error == 0; v++)
    {
        for (int c = 0; c < KTLS_PROBE_CIPHERS && error == 0; c++)
        {
            ProbeCase send = {TLS_TX, s_versions[v], &s_ciphers[c], EXTRA_NONE, 0};
            ProbeCase receive = {TLS_RX, s_versions[v], &s_ciphers[c], EXTRA_NONE, 0};
            error = RunCase(&send, &probe->send[v][c]);
            error = error != 0 ? error : RunCase(&receive, &probe->receive[v][c]);
        }
    }
    return error;
}

enum
{
    PADDED_RECORDS = 8,
    PADDED_SIZE = 64,
    MESSAGE_SIZE = 5,
    HANDSHAKE_RECORD = 22,
    DATA_RECORD = 23
};

/* Sends a padded record. The kernel does not pad, but it appends the record type that the caller sets. If the data ends
 * with the type application_data and is sent with type 0, the record contains data and one zero of padding (RFC
 * 8446, 5.4). */
static int32_t SendPadded(int socket, uint8_t content)
{
    uint8_t data[PADDED_SIZE + 1];
    memset(data, content, PADDED_SIZE);
    data[PADDED_SIZE] = DATA_RECORD;
    return KtlsSocket_SendRecord(socket, 0, data, sizeof(data), 0);
}

/* Returns 0 if a receive returned several padded records correctly, EBADMSG if the data is wrong, and EAGAIN if no
 * receive returned more than one record. */
static int32_t ReceivePadded(int socket)
{
    uint8_t received[PADDED_RECORDS * PADDED_SIZE + 4096];
    bool together = false;
    size_t at = 0;
    while (at < (size_t)PADDED_RECORDS * PADDED_SIZE)
    {
        ssize_t count =
            KtlsPair_WaitFor(socket, POLLIN) == 0 ? recv(socket, received + at, sizeof(received) - at, 0) : 0;
        if (count <= 0)
        {
            return EAGAIN;
        }
        together |= count > PADDED_SIZE;
        at += (size_t)count;
    }
    for (size_t i = 0; i < (size_t)PADDED_RECORDS * PADDED_SIZE; i++)
    {
        if (received[i] != i / PADDED_SIZE)
        {
            return EBADMSG;
        }
    }
    return together ? 0 : EAGAIN;
}

static int32_t Send(int socket, uint8_t type, size_t size)
{
    uint8_t data[PADDED_SIZE];
    memset(data, type, sizeof(data));
    return KtlsSocket_SendRecord(socket, type, data, size, 0);
}

/* Returns 0 if a receive returned one record of the type and size correctly and wrote nothing behind its type, EBADMSG
 * if not, and EAGAIN if nothing arrived. If another record has arrived, the kernel may have written that one, too. */
static int32_t Receive(int socket, uint8_t type, size_t size, bool isAlone)
{
    uint8_t received[4096] = {0};
    struct iovec vector = {received, sizeof(received)};
    union
    {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(type))];
    } control;
    memset(&control, 0, sizeof(control));
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    ssize_t count = KtlsPair_WaitFor(socket, POLLIN) == 0 ? recvmsg(socket, &message, 0) : 0;
    if (count <= 0)
    {
        return EAGAIN;
    }
    bool isRight = count == (ssize_t)size && *CMSG_DATA(&control.header) == type;
    for (size_t i = 0; i < sizeof(received) && isRight; i++)
    {
        isRight = i < size ? received[i] == type : i == size || !isAlone || received[i] == 0;
    }
    return isRight ? 0 : EBADMSG;
}

/* Sends and receives control records, which the kernel must decrypt a second time, too: one alone, and one between
 * data. */
static int32_t TestControlRecords(const KtlsPair* pair)
{
    int32_t error = Send(pair->client, HANDSHAKE_RECORD, MESSAGE_SIZE);
    error = error != 0 ? error : Receive(pair->server, HANDSHAKE_RECORD, MESSAGE_SIZE, true);
    error = error != 0 ? error : Send(pair->client, DATA_RECORD, PADDED_SIZE);
    error = error != 0 ? error : Send(pair->client, HANDSHAKE_RECORD, MESSAGE_SIZE);
    error = error != 0 ? error : Send(pair->client, DATA_RECORD, PADDED_SIZE);
    error = error != 0 ? error : Receive(pair->server, DATA_RECORD, PADDED_SIZE, false);
    error = error != 0 ? error : Receive(pair->server, HANDSHAKE_RECORD, MESSAGE_SIZE, false);
    return error != 0 ? error : Receive(pair->server, DATA_RECORD, PADDED_SIZE, true);
}

/* Tests TLS_RX_EXPECT_NO_PAD with padded records, which the kernel must decrypt a second time. Kernels up to at least
 * 6.12.107 then copy the data to a wrong offset, so that the second and later of several such records in one receive
 * are corrupt. Such a kernel is treated as one without TLS_RX_EXPECT_NO_PAD. */
static int32_t TestPadded(const KtlsPair* pair)
{
    const Cipher* cipher = &s_ciphers[0];
    uint8_t crypto[CRYPTO_MAX] = {0};
    int on = 1;
    int32_t error = GenerateKey(crypto, KERNEL_TLS_1_3, cipher);
    error = error != 0 ? error : SetUlp(pair->client);
    error = error != 0 ? error : SetUlp(pair->server);
    error = error != 0 ? error : SetOption(pair->client, SOL_TLS_LEVEL, TLS_TX, crypto, cipher->size);
    error = error != 0 ? error : SetOption(pair->server, SOL_TLS_LEVEL, TLS_RX, crypto, cipher->size);
    error = error != 0 ? error : SetOption(pair->server, SOL_TLS_LEVEL, TLS_RX_EXPECT_NO_PAD, &on, sizeof(on));
    explicit_bzero(crypto, sizeof(crypto));
    for (uint8_t i = 0; i < PADDED_RECORDS && error == 0; i++)
    {
        error = SendPadded(pair->client, i);
    }
    error = error != 0 ? error : ReceivePadded(pair->server);
    return error != 0 ? error : TestControlRecords(pair);
}

static int32_t RunPadded(int32_t* outcome)
{
    KtlsPair pair;
    int32_t error = KtlsPair_Open(&pair);
    if (error == 0)
    {
        *outcome = TestPadded(&pair);
        KtlsPair_Close(&pair);
    }
    return error;
}

static int32_t RunExtras(KtlsProbe* probe)
{
    const Cipher* cipher = &s_ciphers[0];
    const struct
    {
        ProbeCase probeCase;
        int32_t* outcome;
    } extras[] = {
        {{TLS_TX, KERNEL_TLS_1_3, cipher, EXTRA_SECOND_KEY, 0}, &probe->rekeySendErrno},
        {{TLS_RX, KERNEL_TLS_1_3, cipher, EXTRA_SECOND_KEY, 0}, &probe->rekeyReceiveErrno},
        {{TLS_TX, KERNEL_TLS_1_3, cipher, EXTRA_OPTION, TLS_TX_ZEROCOPY_RO}, &probe->zeroCopyErrno},
    };
    int32_t error = 0;
    for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]) && error == 0; i++)
    {
        error = RunCase(&extras[i].probeCase, extras[i].outcome);
    }
    error = error != 0 ? error : RunPadded(&probe->noPadErrno);
    return error;
}

static void SetAllErrors(KtlsProbe* probe, int32_t error)
{
    probe->ulpErrno = error;
    for (int v = 0; v < KTLS_PROBE_VERSIONS; v++)
    {
        for (int c = 0; c < KTLS_PROBE_CIPHERS; c++)
        {
            probe->send[v][c] = error;
            probe->receive[v][c] = error;
        }
    }
    probe->rekeySendErrno = error;
    probe->rekeyReceiveErrno = error;
    probe->noPadErrno = error;
    probe->zeroCopyErrno = error;
}

int32_t KtlsNative_ProbeKernel(KtlsProbe* probe)
{
    if (probe == NULL)
    {
        return EINVAL;
    }
    memset(probe, 0, sizeof(*probe));
    int32_t error = RunUlp(&probe->ulpErrno);
    if (error == 0 && probe->ulpErrno == 0)
    {
        error = RunCiphers(probe);
        error = error != 0 ? error : RunExtras(probe);
    }
    else if (error == 0)
    {
        SetAllErrors(probe, probe->ulpErrno);
    }
    if (error != 0)
    {
        SetAllErrors(probe, error); /* 0 in an incomplete table would mean support */
    }
    return error;
}

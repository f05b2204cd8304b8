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

/* Key, salt, IV and sequence number follow the header at once in each struct tls12_crypto_info_*. */
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

static int32_t MakeKey(uint8_t crypto[CRYPTO_MAX], uint16_t version, const Cipher* cipher)
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
    int32_t error = MakeKey(crypto, version, cipher);
    if (error == 0)
    {
        error = SetOption(socket, SOL_TLS_LEVEL, direction, crypto, cipher->size);
    }
    explicit_bzero(crypto, sizeof(crypto));
    return error;
}

/* What is tried on one end of a fresh pair: the direction's key, then optionally one thing more. */
typedef enum Extra
{
    EXTRA_NONE,
    EXTRA_SECOND_KEY,
    EXTRA_OPTION
} Extra;

typedef struct Trial
{
    int direction;
    uint16_t version;
    const Cipher* cipher;
    Extra extra;
    int option;
} Trial;

static int32_t Attempt(int socket, const Trial* trial)
{
    int32_t error = SetUlp(socket);
    if (error == 0)
    {
        error = SetKey(socket, trial->direction, trial->version, trial->cipher);
    }
    if (error == 0 && trial->extra == EXTRA_SECOND_KEY)
    {
        error = SetKey(socket, trial->direction, trial->version, trial->cipher);
    }
    if (error == 0 && trial->extra == EXTRA_OPTION)
    {
        int on = 1;
        error = SetOption(socket, SOL_TLS_LEVEL, trial->option, &on, sizeof(on));
    }
    return error;
}

/* Returns the errno of making the pair; the trial's own outcome goes to *outcome. */
static int32_t Run(const Trial* trial, int32_t* outcome)
{
    KtlsPair pair;
    int32_t error = KtlsPair_Open(&pair);
    if (error == 0)
    {
        *outcome = Attempt(pair.client, trial);
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
            Trial send = {TLS_TX, s_versions[v], &s_ciphers[c], EXTRA_NONE, 0};
            Trial receive = {TLS_RX, s_versions[v], &s_ciphers[c], EXTRA_NONE, 0};
            error = Run(&send, &probe->send[v][c]);
            error = error != 0 ? error : Run(&receive, &probe->receive[v][c]);
        }
    }
    return error;
}

enum
{
    PADDED_RECORDS = 8,
    PADDED_SIZE = 64,
    DATA_RECORD = 23
};

/* The kernel sends no padding; but the record type, which it puts behind the data, is ours. Data that ends in the type
 * of data, sent as type 0, is a record of data padded with one zero (RFC 8446, 5.4). */
static int32_t SendPadded(int socket, uint8_t content)
{
    uint8_t data[PADDED_SIZE + 1];
    memset(data, content, PADDED_SIZE);
    data[PADDED_SIZE] = DATA_RECORD;
    struct iovec vector = {data, sizeof(data)};
    union
    {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(uint8_t))];
    } control;
    memset(&control, 0, sizeof(control));
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    control.header.cmsg_level = SOL_TLS_LEVEL;
    control.header.cmsg_type = TLS_SET_RECORD_TYPE;
    control.header.cmsg_len = CMSG_LEN(sizeof(uint8_t));
    return sendmsg(socket, &message, 0) == (ssize_t)sizeof(data) ? 0 : errno != 0 ? errno : EIO;
}

/* 0 where several padded records in one receive come out right; EBADMSG where not; EAGAIN where none came together. */
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

/* Decrypting a padded record again, kernels (6.12.107 still) copy the outcome behind the place of the first one: of
 * several such records in one receive the later ones are garbled. Such a kernel counts as one without
 * TLS_RX_EXPECT_NO_PAD. */
static int32_t TryPadded(const KtlsPair* pair)
{
    const Cipher* cipher = &s_ciphers[0];
    uint8_t crypto[CRYPTO_MAX] = {0};
    int on = 1;
    int32_t error = MakeKey(crypto, KERNEL_TLS_1_3, cipher);
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
    return error != 0 ? error : ReceivePadded(pair->server);
}

static int32_t RunPadded(int32_t* outcome)
{
    KtlsPair pair;
    int32_t error = KtlsPair_Open(&pair);
    if (error == 0)
    {
        *outcome = TryPadded(&pair);
        KtlsPair_Close(&pair);
    }
    return error;
}

static int32_t RunExtras(KtlsProbe* probe)
{
    const Cipher* cipher = &s_ciphers[0];
    const struct
    {
        Trial trial;
        int32_t* outcome;
    } extras[] = {
        {{TLS_TX, KERNEL_TLS_1_3, cipher, EXTRA_SECOND_KEY, 0}, &probe->rekeySendErrno},
        {{TLS_RX, KERNEL_TLS_1_3, cipher, EXTRA_SECOND_KEY, 0}, &probe->rekeyReceiveErrno},
        {{TLS_TX, KERNEL_TLS_1_3, cipher, EXTRA_OPTION, TLS_TX_ZEROCOPY_RO}, &probe->zeroCopyErrno},
    };
    int32_t error = 0;
    for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]) && error == 0; i++)
    {
        error = Run(&extras[i].trial, extras[i].outcome);
    }
    error = error != 0 ? error : RunPadded(&probe->noPadErrno);
    return error;
}

static void FillAll(KtlsProbe* probe, int32_t error)
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
        FillAll(probe, probe->ulpErrno);
    }
    if (error != 0)
    {
        FillAll(probe, error); /* a table half filled would read as support */
    }
    return error;
}

/* SPDX-License-Identifier: MIT */
#include "ktls_export.h"
#include "ktls_pair.h"
#include "ktls_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

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

static int32_t SetKey(int socket, int direction, uint16_t version, const Cipher* cipher)
{
    uint8_t crypto[CRYPTO_MAX] = {0};
    TlsCryptoInfo header = {version, cipher->id};
    int32_t error = 0;
    if (getrandom(crypto, cipher->size, GRND_NONBLOCK) < 0)
    {
        error = errno;
    }
    if (error == 0)
    {
        memcpy(crypto, &header, sizeof(header));
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
        {{TLS_RX, KERNEL_TLS_1_3, cipher, EXTRA_OPTION, TLS_RX_EXPECT_NO_PAD}, &probe->noPadErrno},
        {{TLS_TX, KERNEL_TLS_1_3, cipher, EXTRA_OPTION, TLS_TX_ZEROCOPY_RO}, &probe->zeroCopyErrno},
    };
    int32_t error = 0;
    for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]) && error == 0; i++)
    {
        error = Run(&extras[i].trial, extras[i].outcome);
    }
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

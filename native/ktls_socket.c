/* SPDX-License-Identifier: MIT */
#include "ktls_socket.h"
#include "ktls_export.h"
#include "ktls_sockdiag.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define ULP_NAME_MAX 16 /* TCP_ULP_NAME_MAX */

static int32_t ReadUlp(int32_t socket, KtlsSocketInfo* info)
{
    char name[ULP_NAME_MAX + 1] = {0};
    socklen_t length = ULP_NAME_MAX;
    if (getsockopt(socket, IPPROTO_TCP, TCP_ULP_OPTION, name, &length) != 0)
    {
        return errno == ENOPROTOOPT ? 0 : errno; /* kernel without upper layer protocols */
    }
    if (length == 0 || name[0] == '\0')
    {
        return 0;
    }
    memcpy(info->ulpName, name, ULP_NAME_MAX);
    info->ulp = strcmp(name, "tls") == 0 ? 1 : 2;
    return 0;
}

/* Reads version and cipher of a direction. With exactly this size the kernel copies the header but no key (tls_main.c,
 * do_tls_getsockopt_conf). A direction without keys returns EBUSY. */
static bool ReadDirection(int32_t socket, int direction, KtlsSocketInfo* info)
{
    TlsCryptoInfo crypto = {0, 0};
    socklen_t length = sizeof(crypto);
    if (getsockopt(socket, SOL_TLS_LEVEL, direction, &crypto, &length) != 0 || length != sizeof(crypto))
    {
        return false;
    }
    info->version = crypto.version;
    info->cipher = crypto.cipher;
    return true;
}

bool KtlsSocket_IsInSockmap(int32_t socket)
{
    /* Plain TCP without urgent data returns EINVAL (tcp.c, tcp_recv_urg). The recvmsg operation of a sockmap does not
     * support urgent data, and returns EAGAIN if the queue is empty (tcp_bpf.c, tcp_bpf_recvmsg). */
    uint8_t scratch;
    ssize_t received;
    do
    {
        received = recv(socket, &scratch, sizeof(scratch), MSG_OOB | MSG_PEEK | MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    return received < 0 && errno == EAGAIN;
}

bool KtlsSocket_Cork(int32_t socket)
{
    int corked = 0;
    socklen_t length = sizeof(corked);
    if (getsockopt(socket, IPPROTO_TCP, TCP_CORK, &corked, &length) != 0 || corked != 0)
    {
        return false;
    }
    corked = 1;
    return setsockopt(socket, IPPROTO_TCP, TCP_CORK, &corked, sizeof(corked)) == 0;
}

void KtlsSocket_Uncork(int32_t socket)
{
    int corked = 0;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_CORK, &corked, sizeof(corked));
}

int32_t KtlsNative_GetLayer(int32_t socket, int32_t* layer)
{
    if (layer == NULL)
    {
        return EINVAL;
    }
    *layer = KTLS_LAYER_NONE;
    KtlsSocketInfo info;
    memset(&info, 0, sizeof(info));
    int32_t error = ReadUlp(socket, &info);
    if (error != 0)
    {
        return error;
    }
    if (info.ulp != 0)
    {
        *layer = strcmp((const char*)info.ulpName, "mptcp") == 0 ? KTLS_LAYER_MPTCP : KTLS_LAYER_ULP;
    }
    else if (KtlsSocket_IsInSockmap(socket))
    {
        *layer = KTLS_LAYER_SOCKMAP;
    }
    return 0;
}

int32_t KtlsNative_GetSocketInfo(int32_t socket, KtlsSocketInfo* info)
{
    if (info == NULL)
    {
        return EINVAL;
    }
    memset(info, 0, sizeof(*info));
    int32_t error = ReadUlp(socket, info);
    if (error != 0)
    {
        return error;
    }

    int segment = 0;
    socklen_t length = sizeof(segment);
    if (getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &segment, &length) == 0)
    {
        info->maxSegment = segment;
    }
    if (info->ulp != 1)
    {
        return 0;
    }

    /* Old kernels have no getsockopt for TLS_RX. sock_diag, if permitted, overrides these values. */
    info->receiveConf = ReadDirection(socket, TLS_RX, info) ? KTLS_CONF_UNKNOWN : KTLS_CONF_NONE;
    info->sendConf = ReadDirection(socket, TLS_TX, info) ? KTLS_CONF_UNKNOWN : KTLS_CONF_NONE;
    KtlsSockDiag_ReadTlsInfo(socket, info);
    return 0;
}

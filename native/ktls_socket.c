/* SPDX-License-Identifier: MIT */
#include "ktls_socket.h"
#include "ktls_export.h"
#include "ktls_sockdiag.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define ULP_NAME_MAX 16 /* TCP_ULP_NAME_MAX */

/* From linux/sockios.h. */
#define SIOCOUTQ_REQUEST 0x5411

/* From linux/sock_diag.h, which some C libraries lack. */
#define SO_MEMINFO_OPTION 55 /* SO_MEMINFO */
enum
{
    MEMORY_SNDBUF = 3,
    MEMORY_WMEM_QUEUED = 5,
    MEMORY_COUNT
};

/* Offsets in struct tcp_info (linux/tcp.h), which is longer than the one of some C libraries. */
enum
{
    TCP_INFO_STATE = 0,
    TCP_INFO_BYTES_ACKED = 120,
    TCP_INFO_NOTSENT_BYTES = 144,
    TCP_INFO_BYTES_SENT = 200,
    TCP_INFO_BYTES_RETRANS = 208,
    TCP_INFO_SIZE = 216
};

/* Reads the name of the upper layer protocol: empty for none. */
static int32_t ReadUlp(int32_t socket, char name[static ULP_NAME_MAX + 1])
{
    memset(name, 0, ULP_NAME_MAX + 1);
    socklen_t length = ULP_NAME_MAX;
    if (getsockopt(socket, IPPROTO_TCP, TCP_ULP_OPTION, name, &length) != 0)
    {
        return errno == ENOPROTOOPT ? 0 : errno; /* kernel without upper layer protocols */
    }
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

bool KtlsSocket_ReadCounts(int32_t socket, KtlsTcpCounts* counts)
{
    uint8_t info[TCP_INFO_SIZE];
    socklen_t length = sizeof(info);
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, info, &length) != 0 || length < sizeof(info))
    {
        return false;
    }
    uint32_t notSent;
    uint64_t sent;
    uint64_t sentAgain;
    memcpy(&counts->acknowledged, info + TCP_INFO_BYTES_ACKED, sizeof(counts->acknowledged));
    memcpy(&notSent, info + TCP_INFO_NOTSENT_BYTES, sizeof(notSent));
    memcpy(&sent, info + TCP_INFO_BYTES_SENT, sizeof(sent));
    memcpy(&sentAgain, info + TCP_INFO_BYTES_RETRANS, sizeof(sentAgain));
    counts->written = sent - sentAgain + notSent;
    counts->closed = info[TCP_INFO_STATE] == TCP_CLOSE;
    return true;
}

bool KtlsSocket_IsQueueEmpty(int32_t socket)
{
    int queued;
    return ioctl(socket, SIOCOUTQ_REQUEST, &queued) != 0 || queued == 0;
}

int32_t KtlsSocket_SendRecord(int32_t socket, uint8_t type, const uint8_t* data, size_t length, int flags)
{
    struct iovec vector = {(void*)(uintptr_t)data, length};
    union
    {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(type))];
    } control;
    memset(&control, 0, sizeof(control));
    control.header.cmsg_level = SOL_TLS_LEVEL;
    control.header.cmsg_type = TLS_SET_RECORD_TYPE;
    control.header.cmsg_len = CMSG_LEN(sizeof(type));
    memcpy(CMSG_DATA(&control.header), &type, sizeof(type));
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    ssize_t sent;
    do
    {
        sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : sent == (ssize_t)length ? 0 : EIO;
}

bool KtlsSocket_MayShareSegments(int32_t socket, size_t size)
{
    uint32_t memory[MEMORY_COUNT];
    socklen_t length = sizeof(memory);
    return size > KTLS_RECORD_SIZE && getsockopt(socket, SOL_SOCKET, SO_MEMINFO_OPTION, memory, &length) == 0 &&
           length == sizeof(memory) &&
           (uint64_t)memory[MEMORY_WMEM_QUEUED] + size + size / 8 + KTLS_RECORD_SIZE < memory[MEMORY_SNDBUF];
}

bool KtlsSocket_Cork(int32_t socket)
{
    int corked = 0;
    socklen_t length = sizeof(corked);
    if (getsockopt(socket, IPPROTO_TCP, TCP_CORK, &corked, &length) != 0 || corked != 0)
    {
        return false;
    }
    KtlsSocket_SetCork(socket, true);
    return true;
}

void KtlsSocket_SetCork(int32_t socket, bool corked)
{
    int value = corked ? 1 : 0;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
}

int32_t KtlsNative_GetLayer(int32_t socket, int32_t* layer)
{
    if (layer == NULL)
    {
        return EINVAL;
    }
    *layer = KTLS_LAYER_NONE;
    char ulp[ULP_NAME_MAX + 1];
    int32_t error = ReadUlp(socket, ulp);
    if (error != 0)
    {
        return error;
    }
    if (ulp[0] != '\0')
    {
        KtlsSocketInfo info;
        bool hasKey =
            strcmp(ulp, "tls") == 0 && (ReadDirection(socket, TLS_TX, &info) || ReadDirection(socket, TLS_RX, &info));
        *layer = hasKey ? KTLS_LAYER_TLS : strcmp(ulp, "mptcp") == 0 ? KTLS_LAYER_MPTCP : KTLS_LAYER_ULP;
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
    char ulp[ULP_NAME_MAX + 1];
    int32_t error = ReadUlp(socket, ulp);
    if (error != 0 || strcmp(ulp, "tls") != 0)
    {
        return error;
    }

    /* Old kernels have no getsockopt for TLS_RX. sock_diag, if permitted, overrides these values. */
    info->receiveConf = ReadDirection(socket, TLS_RX, info) ? KTLS_CONF_UNKNOWN : KTLS_CONF_NONE;
    info->sendConf = ReadDirection(socket, TLS_TX, info) ? KTLS_CONF_UNKNOWN : KTLS_CONF_NONE;
    KtlsSockDiag_ReadTlsInfo(socket, info);
    return 0;
}

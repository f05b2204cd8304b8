/* SPDX-License-Identifier: MIT */
#include "ktls_sockdiag.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
    NETLINK_SOCK_DIAG_PROTOCOL = 4,
    SOCK_DIAG_BY_FAMILY = 20,
    NLM_REQUEST = 1,
    NLA_TYPE = 0x3FFF,
    INET_DIAG_INFO = 2,
    INET_DIAG_ULP_INFO = 19,
    INET_ULP_INFO_TLS = 2,
    TLS_INFO_VERSION = 1,
    TLS_INFO_CIPHER = 2,
    TLS_INFO_TXCONF = 3,
    TLS_INFO_RXCONF = 4,
    TLS_CONF_BASE = 1,
    TLS_CONF_SW = 2,
    TLS_CONF_HW = 3,
    TLS_CONF_HW_RECORD = 4,
    COOKIE_OPTION = 57,   /* SO_COOKIE */
    BIND_TO_IFINDEX = 62, /* SO_BINDTOIFINDEX */
    REPLY_CAPACITY = 8192
};

typedef struct NetlinkHeader /* struct nlmsghdr */
{
    uint32_t length;
    uint16_t type;
    uint16_t flags;
    uint32_t sequence;
    uint32_t port;
} NetlinkHeader;

typedef struct NetlinkAddress /* struct sockaddr_nl */
{
    uint16_t family;
    uint16_t padding;
    uint32_t port;
    uint32_t groups;
} NetlinkAddress;

typedef struct Attribute /* struct nlattr */
{
    uint16_t length;
    uint16_t type;
} Attribute;

typedef struct SocketId /* struct inet_diag_sockid */
{
    uint16_t sourcePort;
    uint16_t destinationPort;
    uint32_t source[4];
    uint32_t destination[4];
    uint32_t interface;
    uint32_t cookie[2];
} SocketId;

typedef struct Request /* struct nlmsghdr, struct inet_diag_req_v2 */
{
    NetlinkHeader header;
    uint8_t family;
    uint8_t protocol;
    uint8_t extensions;
    uint8_t padding;
    uint32_t states;
    SocketId id;
} Request;

enum
{
    DIAG_MESSAGE_SIZE = 72 /* struct inet_diag_msg */
};

_Static_assert(sizeof(NetlinkHeader) == 16, "struct nlmsghdr");
_Static_assert(sizeof(NetlinkAddress) == 12, "struct sockaddr_nl");
_Static_assert(sizeof(Attribute) == 4, "struct nlattr");
_Static_assert(sizeof(SocketId) == 48, "struct inet_diag_sockid");
_Static_assert(sizeof(Request) == 16 + 56, "struct inet_diag_req_v2");

static bool SetEndpoint(const struct sockaddr_storage* from, uint16_t* port, uint32_t* address)
{
    if (from->ss_family == AF_INET)
    {
        struct sockaddr_in v4;
        memcpy(&v4, from, sizeof(v4));
        *port = v4.sin_port;
        memcpy(address, &v4.sin_addr, sizeof(v4.sin_addr));
        return true;
    }
    if (from->ss_family == AF_INET6)
    {
        struct sockaddr_in6 v6;
        memcpy(&v6, from, sizeof(v6));
        *port = v6.sin6_port;
        memcpy(address, &v6.sin6_addr, sizeof(v6.sin6_addr));
        return true;
    }
    return false;
}

static bool BuildRequest(int32_t socket, Request* request)
{
    struct sockaddr_storage local;
    struct sockaddr_storage peer;
    socklen_t localLength = sizeof(local);
    socklen_t peerLength = sizeof(peer);
    memset(request, 0, sizeof(*request));
    memset(&local, 0, sizeof(local));
    memset(&peer, 0, sizeof(peer));
    if (getsockname(socket, (struct sockaddr*)&local, &localLength) != 0 ||
        getpeername(socket, (struct sockaddr*)&peer, &peerLength) != 0 || local.ss_family != peer.ss_family ||
        !SetEndpoint(&local, &request->id.sourcePort, request->id.source) ||
        !SetEndpoint(&peer, &request->id.destinationPort, request->id.destination))
    {
        return false;
    }

    /* The cookie identifies the socket, even if another network namespace uses the same addresses. */
    socklen_t length = sizeof(request->id.cookie);
    if (getsockopt(socket, SOL_SOCKET, COOKIE_OPTION, request->id.cookie, &length) != 0 ||
        length != sizeof(request->id.cookie))
    {
        return false;
    }
    int interface = 0;
    length = sizeof(interface);
    if (getsockopt(socket, SOL_SOCKET, BIND_TO_IFINDEX, &interface, &length) == 0)
    {
        request->id.interface = (uint32_t)interface;
    }

    request->header.length = sizeof(*request);
    request->header.type = SOCK_DIAG_BY_FAMILY;
    request->header.flags = NLM_REQUEST;
    request->header.sequence = 1;
    request->family = (uint8_t)local.ss_family;
    request->protocol = IPPROTO_TCP;
    /* The kernel adds the ULP attributes only together with struct tcp_info (inet_diag.c, inet_sk_diag_fill). */
    request->extensions = 1 << (INET_DIAG_INFO - 1);
    request->states = UINT32_MAX;
    return true;
}

/* Returns the number of bytes received, or 0. The kernel replies during the send, so that the receive need not wait. */
static size_t QueryKernel(const Request* request, uint8_t* reply, size_t capacity)
{
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG_PROTOCOL);
    if (netlink < 0)
    {
        return 0;
    }
    NetlinkAddress kernel = {AF_NETLINK, 0, 0, 0};
    NetlinkAddress from = {0, 0, UINT32_MAX, 0};
    socklen_t fromLength = sizeof(from);
    ssize_t received = 0;
    if (sendto(netlink, request, sizeof(*request), 0, (const struct sockaddr*)&kernel, sizeof(kernel)) ==
        (ssize_t)sizeof(*request))
    {
        received = recvfrom(netlink, reply, capacity, MSG_DONTWAIT, (struct sockaddr*)&from, &fromLength);
    }
    (void)close(netlink);
    return received > 0 && from.family == AF_NETLINK && from.port == 0 ? (size_t)received : 0;
}

/* Returns the payload of an attribute, or NULL if the attribute is absent or its length is invalid. */
static const uint8_t* FindAttribute(const uint8_t* data, size_t length, int type, size_t* payloadLength)
{
    while (length >= sizeof(Attribute))
    {
        Attribute attribute;
        memcpy(&attribute, data, sizeof(attribute));
        if (attribute.length < sizeof(attribute) || attribute.length > length)
        {
            return NULL;
        }
        if ((attribute.type & NLA_TYPE) == type)
        {
            *payloadLength = attribute.length - sizeof(attribute);
            return data + sizeof(attribute);
        }
        size_t step = (attribute.length + 3U) & ~(size_t)3U;
        if (step >= length)
        {
            return NULL;
        }
        data += step;
        length -= step;
    }
    return NULL;
}

static uint16_t ReadAttribute(const uint8_t* data, size_t length, int type)
{
    uint16_t number = 0;
    size_t size = 0;
    const uint8_t* payload = FindAttribute(data, length, type, &size);
    if (payload != NULL && size >= sizeof(number))
    {
        memcpy(&number, payload, sizeof(number));
    }
    return number;
}

static int32_t ToConf(uint16_t conf, int32_t known)
{
    switch (conf)
    {
        case TLS_CONF_BASE:
            return KTLS_CONF_NONE;
        case TLS_CONF_SW:
            return KTLS_CONF_SOFTWARE;
        case TLS_CONF_HW:
        case TLS_CONF_HW_RECORD:
            return KTLS_CONF_DEVICE;
        default:
            return known;
    }
}

void KtlsSockDiag_ReadTlsInfo(int32_t socket, KtlsSocketInfo* info)
{
    Request request;
    uint8_t reply[REPLY_CAPACITY];
    if (!BuildRequest(socket, &request))
    {
        return;
    }
    size_t received = QueryKernel(&request, reply, sizeof(reply));
    NetlinkHeader header;
    if (received < sizeof(header) + DIAG_MESSAGE_SIZE)
    {
        return;
    }
    memcpy(&header, reply, sizeof(header));
    if (header.type != SOCK_DIAG_BY_FAMILY || header.sequence != request.header.sequence || header.length > received ||
        header.length < sizeof(header) + DIAG_MESSAGE_SIZE)
    {
        return;
    }

    size_t offset = sizeof(header) + DIAG_MESSAGE_SIZE;
    size_t ulpLength = 0;
    const uint8_t* ulp = FindAttribute(reply + offset, header.length - offset, INET_DIAG_ULP_INFO, &ulpLength);
    size_t tlsLength = 0;
    const uint8_t* tls = ulp != NULL ? FindAttribute(ulp, ulpLength, INET_ULP_INFO_TLS, &tlsLength) : NULL;
    if (tls == NULL)
    {
        return;
    }
    uint16_t version = ReadAttribute(tls, tlsLength, TLS_INFO_VERSION);
    uint16_t cipher = ReadAttribute(tls, tlsLength, TLS_INFO_CIPHER);
    info->version = version != 0 ? version : info->version;
    info->cipher = cipher != 0 ? cipher : info->cipher;
    info->sendConf = ToConf(ReadAttribute(tls, tlsLength, TLS_INFO_TXCONF), info->sendConf);
    info->receiveConf = ToConf(ReadAttribute(tls, tlsLength, TLS_INFO_RXCONF), info->receiveConf);
}

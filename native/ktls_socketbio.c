/* SPDX-License-Identifier: MIT */
#include "ktls_socketbio.h"
#include "ktls_bio.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Since OpenSSL 4.0 any error of a BIO ends both directions. Before, what the peer had sent could be read after a
 * failed send, and a receive could be repeated. For an established connection, this BIO therefore tells OpenSSL that
 * data that cannot be sent was sent, and that data that cannot be received has not arrived. The errno is left in the
 * connection, and the export that was called reports it. Nothing is sent after a failed send: a record would be
 * missing. */

/* Two full records, or many small ones: as much as SslStream receives at a time. A peer that sends one small record at
 * a time needs less, and glibc keeps small blocks for each thread. */
#define CAPACITY 32768
#define SMALL_CAPACITY 1024

static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static BIO_METHOD* s_method;

static void Release(KtlsReadAhead* ahead)
{
    free(ahead->data);
    ahead->data = NULL;
    ahead->capacity = 0;
}

/* An idle connection holds no memory. */
static void ReleaseIfEmpty(KtlsReadAhead* ahead)
{
    if (!KtlsReadAhead_HoldsBytes(ahead) && !ahead->socketMayHaveMore)
    {
        Release(ahead);
    }
}

/* Without memory, the next receive takes only what OpenSSL asks for. */
static void Reserve(KtlsReadAhead* ahead)
{
    int32_t capacity = ahead->expectsLittle ? SMALL_CAPACITY : CAPACITY;
    if (ahead->capacity != capacity)
    {
        Release(ahead);
        ahead->data = malloc((size_t)capacity);
        ahead->capacity = ahead->data != NULL ? capacity : 0;
    }
}

static int TakeBytes(KtlsReadAhead* ahead, char* buffer, int length)
{
    int count = ahead->end - ahead->start < length ? ahead->end - ahead->start : length;
    memcpy(buffer, ahead->data + ahead->start, (size_t)count);
    ahead->start += count;
    ReleaseIfEmpty(ahead);
    return count;
}

/* Receives into OpenSSL's buffer first. */
static ssize_t Receive(const KtlsConnection* connection, KtlsReadAhead* ahead, char* buffer, int length)
{
    Reserve(ahead);
    struct iovec parts[] = {{buffer, (size_t)length}, {ahead->data, (size_t)ahead->capacity}};
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = parts;
    message.msg_iovlen = sizeof(parts) / sizeof(parts[0]);
    ssize_t received;
    do
    {
        received = recvmsg(connection->socket, &message, MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    ahead->socketMayHaveMore = received == (ssize_t)length + ahead->capacity;
    if (received >= 0)
    {
        ahead->expectsLittle = received < (ssize_t)length + SMALL_CAPACITY;
    }
    return received;
}

static int OnBioRead(BIO* bio, char* buffer, int length)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = api->BIO_get_data(bio);
    KtlsReadAhead* ahead = &connection->readAhead;
    api->BIO_clear_flags(bio, BIO_FLAGS_RETRY);
    if (buffer == NULL || length < 1)
    {
        errno = EINVAL;
        return -1;
    }
    if (KtlsReadAhead_HoldsBytes(ahead))
    {
        return TakeBytes(ahead, buffer, length);
    }

    ssize_t received = Receive(connection, ahead, buffer, length);
    int error = errno;
    int used = received < length ? (int)received : length;
    ahead->start = 0;
    ahead->end = received > length ? (int32_t)(received - length) : 0;
    ReleaseIfEmpty(ahead);
    if (received < 0 && (error == EAGAIN || connection->established))
    {
        api->BIO_set_flags(bio, BIO_FLAGS_RETRY_READ);
        connection->bioReadError = error == EAGAIN ? 0 : error;
    }
    errno = error;
    return used;
}

static int OnBioWrite(BIO* bio, const char* buffer, int length)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = api->BIO_get_data(bio);
    api->BIO_clear_flags(bio, BIO_FLAGS_RETRY);
    if (buffer == NULL || length < 1)
    {
        errno = EINVAL;
        return -1;
    }
    if (connection->bioSendError != 0)
    {
        return length;
    }

    int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (connection->moreFollows ? MSG_MORE : 0);
    ssize_t sent;
    do
    {
        sent = send(connection->socket, buffer, (size_t)length, flags);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN)
    {
        api->BIO_set_flags(bio, BIO_FLAGS_RETRY_WRITE);
    }
    else if (sent < 0 && connection->established)
    {
        connection->bioSendError = errno;
        return length;
    }
    return (int)sent;
}

/* Returns 0 for what it does not know, such as the commands of kernel TLS, which could not decrypt what is held here.
 */
static long OnBioControl(BIO* bio, int command, long argument, void* pointer)
{
    (void)argument;
    const KtlsConnection* connection = KtlsOpenSsl_Get()->BIO_get_data(bio);
    switch (command)
    {
        case BIO_CTRL_EOF:
            return connection->finReceived;
        case BIO_CTRL_FLUSH:
            return 1; /* nothing that was written is held */
        case BIO_CTRL_PENDING:
            return connection->readAhead.end - connection->readAhead.start;
        case BIO_C_GET_FD:
            if (pointer != NULL)
            {
                *(int*)pointer = connection->socket;
            }
            return connection->socket;
        default:
            return 0;
    }
}

static void CreateMethod(void)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    s_method = api->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "KernelTls socket");
    if (s_method != NULL)
    {
        (void)api->BIO_meth_set_read(s_method, OnBioRead);
        (void)api->BIO_meth_set_write(s_method, OnBioWrite);
        (void)api->BIO_meth_set_ctrl(s_method, OnBioControl);
    }
}

static BIO* Create(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    (void)pthread_once(&s_once, CreateMethod);
    BIO* bio = s_method != NULL ? api->BIO_new(s_method) : NULL;
    if (bio != NULL)
    {
        api->BIO_set_data(bio, connection);
        api->BIO_set_init(bio, 1);
    }
    return bio;
}

bool KtlsSocketBio_StartReading(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->readsByShim)
    {
        return true;
    }
    BIO* bio = Create(api, connection);
    if (bio == NULL)
    {
        return false;
    }
    connection->readsByShim = true;
    connection->readAhead.socketMayHaveMore = true;
    api->SSL_set0_rbio(connection->ssl, bio);
    KtlsBio_WatchReads(api, connection);
    return true;
}

bool KtlsSocketBio_StartWriting(const KtlsOpenSsl* api, KtlsConnection* connection)
{
    if (connection->writesByShim)
    {
        return true;
    }
    BIO* bio = Create(api, connection);
    if (bio == NULL)
    {
        return false;
    }
    connection->writesByShim = true;
    api->SSL_set0_wbio(connection->ssl, bio);
    return true;
}

int KtlsSocketBio_Take(KtlsConnection* connection, void* buffer, int length)
{
    return KtlsReadAhead_HoldsBytes(&connection->readAhead)
               ? TakeBytes(&connection->readAhead, buffer, length)
               : (int)recv(connection->socket, buffer, (size_t)length, MSG_DONTWAIT);
}

void KtlsSocketBio_Free(KtlsConnection* connection)
{
    Release(&connection->readAhead);
}

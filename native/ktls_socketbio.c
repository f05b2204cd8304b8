/* SPDX-License-Identifier: MIT */
#include "ktls_socketbio.h"
#include "ktls_bio.h"
#include "ktls_export.h"

#include <errno.h>
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

/* What one send takes: four full records. Many more would be encrypted before the peer gets the first. */
#define HELD_LIMIT 65536

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

static ssize_t Send(const KtlsConnection* connection, const void* data, size_t length)
{
    ssize_t sent;
    do
    {
        sent = send(connection->socket, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

static void ReleaseHeld(KtlsHeldRecords* held)
{
    free(held->data);
    held->data = NULL;
    held->capacity = held->start = held->end = 0;
}

/* Adds a record. The first one gets as much memory as it needs, because often it is the only one. */
static void Hold(KtlsHeldRecords* held, const char* record, size_t length)
{
    if (held->capacity - held->end < length)
    {
        size_t capacity = held->end == 0 ? length : held->end + length + HELD_LIMIT;
        uint8_t* data = realloc(held->data, capacity);
        if (data == NULL)
        {
            held->sendError = ENOMEM;
            return;
        }
        held->data = data;
        held->capacity = capacity;
    }
    memcpy(held->data + held->end, record, length);
    held->end += length;
}

/* Returns 0 once nothing is held, EAGAIN if there is no room, or the error that ended sending. */
static int32_t SendHeld(KtlsConnection* connection)
{
    KtlsHeldRecords* held = &connection->held;
    while (held->sendError == 0 && held->start < held->end)
    {
        ssize_t sent = Send(connection, held->data + held->start, held->end - held->start);
        if (sent >= 0)
        {
            held->start += (size_t)sent;
        }
        else if (errno == EAGAIN)
        {
            return EAGAIN;
        }
        else
        {
            held->sendError = errno;
        }
    }
    ReleaseHeld(held);
    return held->sendError;
}

/* Sends what is held, and then a record. Returns the number of the record's bytes that were sent, or -1 and errno. */
static ssize_t SendNow(KtlsConnection* connection, const char* record, size_t length)
{
    int32_t error = SendHeld(connection);
    if (error != 0)
    {
        errno = error;
        return -1;
    }
    return Send(connection, record, length);
}

static int OnBioWrite(BIO* bio, const char* buffer, int length)
{
    const KtlsOpenSsl* api = KtlsOpenSsl_Get();
    KtlsConnection* connection = api->BIO_get_data(bio);
    KtlsHeldRecords* held = &connection->held;
    api->BIO_clear_flags(bio, BIO_FLAGS_RETRY);
    if (buffer == NULL || length < 1)
    {
        errno = EINVAL;
        return -1;
    }

    ssize_t taken = length;
    int error = 0;
    (void)pthread_mutex_lock(&held->mutex);
    if (held->sendError == 0 && connection->inWrite)
    {
        Hold(held, buffer, (size_t)length);
    }
    else if (held->sendError == 0)
    {
        taken = SendNow(connection, buffer, (size_t)length);
        error = errno;
        if (taken < 0 && error != EAGAIN && connection->established)
        {
            held->sendError = error;
            taken = length;
        }
    }
    (void)pthread_mutex_unlock(&held->mutex);
    if (taken < 0 && error == EAGAIN)
    {
        api->BIO_set_flags(bio, BIO_FLAGS_RETRY_WRITE);
    }
    errno = error;
    return (int)taken;
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
            return 1; /* what is held was written by KtlsNative_Write, whose caller flushes it */
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

bool KtlsSocketBio_WantsFlush(KtlsConnection* connection)
{
    KtlsHeldRecords* held = &connection->held;
    (void)pthread_mutex_lock(&held->mutex);
    bool wanted = held->sendError != 0 || held->end - held->start >= HELD_LIMIT;
    (void)pthread_mutex_unlock(&held->mutex);
    return wanted;
}

int32_t KtlsNative_Flush(KtlsConnection* connection, int32_t socket, KtlsResult* result)
{
    const KtlsOpenSsl* api = NULL;
    int32_t checkError = KtlsConnection_Enter(connection, socket, result, &api);
    if (checkError != 0)
    {
        return checkError;
    }
    if (!connection->established)
    {
        return ENOTCONN;
    }
    (void)pthread_mutex_lock(&connection->held.mutex);
    int32_t error = SendHeld(connection);
    (void)pthread_mutex_unlock(&connection->held.mutex);
    if (error == EAGAIN)
    {
        result->status = KTLS_STATUS_WANT_WRITE;
    }
    else if (error != 0)
    {
        (void)KtlsConnection_ReportSendError(connection, result);
    }
    return 0;
}

bool KtlsSocketBio_Init(KtlsConnection* connection)
{
    return pthread_mutex_init(&connection->held.mutex, NULL) == 0;
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
    ReleaseHeld(&connection->held);
    (void)pthread_mutex_destroy(&connection->held.mutex);
}

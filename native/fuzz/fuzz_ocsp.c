/* SPDX-License-Identifier: MIT
 *
 * OCSP stapling (RFC 6066, 8). An input is the response. The client must receive it unchanged, or no response if
 * OpenSSL cannot parse it.
 */
#include "fuzz.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

enum
{
    RESPONSE_MAX = 16000,
    SIZE_MAX_TRIED = RESPONSE_MAX + 100
};

static SSL* CreateClient(int socket, int version)
{
    static SSL_CTX* s_context;
    if (s_context == NULL)
    {
        s_context = SSL_CTX_new(TLS_client_method());
        CHECK(s_context != NULL);
    }
    SSL* client = SSL_new(s_context);
    CHECK(client != NULL && SSL_set_fd(client, socket) == 1);
    CHECK(SSL_set_min_proto_version(client, version) == 1 && SSL_set_max_proto_version(client, version) == 1);
    CHECK(SSL_set_tlsext_status_type(client, TLSEXT_STATUSTYPE_ocsp) == 1);
    SSL_set_connect_state(client);
    return client;
}

static void CheckStaple(SSL* client, const uint8_t* response, size_t length)
{
    const unsigned char* stapled = NULL;
    long stapledLength = SSL_get_tlsext_status_ocsp_resp(client, &stapled);
    bool mayParse = OpenSSL_version_num() >= 0x30600000UL;
    if (stapledLength <= 0)
    {
        CHECK(mayParse || length == 0);
        return;
    }
    CHECK_EQ(stapledLength, length);
    CHECK(memcmp(stapled, response, length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static KtlsContext* s_server;
    if (s_server == NULL)
    {
        KtlsContextOptions options = Fixture_ServerOptions(0);
        s_server = Fixture_CreateContext(&options);
    }
    Input input = {data, size};
    int version = Input_TakeByte(&input) % 2 == 0 ? TLS1_3_VERSION : TLS1_2_VERSION;
    size_t length;
    uint8_t* response = Input_TakeBlock(&input, SIZE_MAX_TRIED, &length);

    KtlsPair pair = Fuzz_Connect();
    KtlsConnection* server = Fixture_CreateConnection(s_server, pair.server, NULL);
    int32_t error = KtlsNative_SetOcspResponse(server, response, (int32_t)length);
    CHECK_EQ(error, length >= 1 && length <= RESPONSE_MAX ? 0 : EINVAL);
    SSL* client = CreateClient(pair.client, version);
    Fixture_ShakeHands(server, pair.server, client);
    CheckStaple(client, response, error == 0 ? length : 0);
    CHECK_EQ(KtlsNative_SetOcspResponse(server, response, 1), EBUSY);
    SSL_free(client);
    KtlsNative_ConnectionFree(server);
    Fuzz_Disconnect(&pair);
    free(response);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Types, constants and the symbol table of OpenSSL 3 and 4. They are declared here because the shim is built without
 * OpenSSL's headers and binds at run time to the libssl that .NET uses. The table has no cleanup functions, because the
 * library belongs to the process.
 */
#ifndef KTLS_OPENSSL_H
#define KTLS_OPENSSL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct evp_cipher_st EVP_CIPHER;
typedef struct evp_cipher_ctx_st EVP_CIPHER_CTX;
typedef struct evp_mac_ctx_st EVP_MAC_CTX;
typedef struct evp_pkey_st EVP_PKEY;
typedef struct engine_st ENGINE;
typedef struct ssl_cipher_st SSL_CIPHER;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct ssl_session_st SSL_SESSION;
typedef struct ssl_st SSL;
typedef struct stack_st OPENSSL_STACK;
typedef struct x509_st X509;
typedef struct X509_name_st X509_NAME;
typedef struct x509_store_ctx_st X509_STORE_CTX;

typedef int (*KtlsAlpnSelectCallback)(
    SSL* ssl, const unsigned char** out, unsigned char* outLength, const unsigned char* in, unsigned int inLength,
    void* argument);
typedef int (*KtlsStoreVerifyCallback)(X509_STORE_CTX* store, void* argument);
typedef int (*KtlsPeerVerifyCallback)(int preverified, X509_STORE_CTX* store);
typedef int (*KtlsClientHelloCallback)(SSL* ssl, int* alert, void* argument);
typedef int (*KtlsCertificateCallback)(SSL* ssl, void* argument);
typedef void (*KtlsMessageCallback)(
    int written, int version, int contentType, const void* data, size_t length, SSL* ssl, void* argument);
typedef void (*KtlsKeyLogFunction)(const SSL* ssl, const char* line);
typedef int (*KtlsTicketKeyCallback)(
    SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypts);
typedef int (*KtlsNewSessionCallback)(SSL* ssl, SSL_SESSION* session);
typedef int (*KtlsGenerateTicketCallback)(SSL* ssl, void* argument);
typedef int (*KtlsDecryptTicketCallback)(
    SSL* ssl, SSL_SESSION* session, const unsigned char* name, size_t nameLength, int status, void* argument);
/* OSSL_PARAM (openssl/core.h). */
typedef struct KtlsParameter
{
    const char* key;
    unsigned int type;
    void* data;
    size_t size;
    size_t returned;
} KtlsParameter;

typedef void (*KtlsAnyCallback)(void); /* cast back by the ctrl function that receives it */

enum
{
    BIO_CTRL_GET_KTLS_SEND = 73,
    BIO_CTRL_GET_KTLS_RECV = 76,
    CRYPTO_EX_INDEX_SSL = 0,
    EVP_PKEY_NONE = 0,
    OSSL_PARAM_UTF8_STRING = 4,
    OSSL_PARAM_OCTET_STRING = 5,

    SSL_CTRL_MODE = 33,
    SSL_CTRL_SET_SESS_CACHE_MODE = 44,
    SSL_CTRL_SET_TLSEXT_HOSTNAME = 55,
    SSL_CTRL_SET_TLSEXT_DEBUG_CB = 56,
    SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB = 63,
    SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE = 65,
    SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP = 70,
    SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP = 71,
    SSL_CTRL_CLEAR_MODE = 78,
    SSL_CTRL_CHAIN_CERT = 89,
    SSL_CTRL_SET_SIGALGS_LIST = 98,
    SSL_CTRL_SET_CLIENT_SIGALGS_LIST = 102,
    SSL_CTRL_GET_PEER_TMP_KEY = 109,
    SSL_CTRL_SET_MIN_PROTO_VERSION = 123,
    SSL_CTRL_SET_MAX_PROTO_VERSION = 124,
    SSL_CTRL_GET_MIN_PROTO_VERSION = 130,
    SSL_CTRL_GET_MAX_PROTO_VERSION = 131,
    SSL_CTRL_GET_TMP_KEY = 133,

    SSL_MODE_ENABLE_PARTIAL_WRITE = 0x1,
    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 0x2,
    SSL_MODE_AUTO_RETRY = 0x4,
    SSL_MODE_NO_AUTO_CHAIN = 0x8,
    SSL_MODE_RELEASE_BUFFERS = 0x10,

    SSL_SESS_CACHE_OFF = 0,
    SSL_SESS_CACHE_CLIENT = 0x1,
    SSL_SESS_CACHE_NO_INTERNAL = 0x300,
    SSL_MAX_SID_CTX_LENGTH = 32,
    SSL_TICKET_SUCCESS = 5,
    SSL_TICKET_SUCCESS_RENEW = 6,
    SSL_TICKET_RETURN_IGNORE_RENEW = 2,
    SSL_TICKET_RETURN_USE = 3,
    SSL_TICKET_RETURN_USE_RENEW = 4,
    SSL_SENT_SHUTDOWN = 1,
    SSL_RECEIVED_SHUTDOWN = 2,

    TLSEXT_NAMETYPE_HOST_NAME = 0,
    TLSEXT_STATUSTYPE_OCSP = 1,
    TLSEXT_TYPE_SERVER_NAME = 0,
    TLSEXT_TYPE_STATUS_REQUEST = 5,
    TLSEXT_TYPE_ALPN = 16,
    TLSEXT_TYPE_SUPPORTED_VERSIONS = 43,

    SSL_CLIENT_HELLO_ERROR = 0,
    SSL_CLIENT_HELLO_SUCCESS = 1,
    SSL_CLIENT_HELLO_RETRY = -1,

    SSL_VERIFY_NONE = 0,
    SSL_VERIFY_PEER = 1,
    SSL_VERIFY_FAIL_IF_NO_PEER_CERT = 2,

    SSL_ERROR_NONE = 0,
    SSL_ERROR_SSL = 1,
    SSL_ERROR_WANT_READ = 2,
    SSL_ERROR_WANT_WRITE = 3,
    SSL_ERROR_WANT_X509_LOOKUP = 4,
    SSL_ERROR_SYSCALL = 5,
    SSL_ERROR_ZERO_RETURN = 6,
    SSL_ERROR_WANT_CLIENT_HELLO_CB = 11,

    SSL_WRITING = 2,

    SSL_KEY_UPDATE_NONE = -1,
    SSL_KEY_UPDATE_NOT_REQUESTED = 0,
    SSL_KEY_UPDATE_REQUESTED = 1,

    SSL_TLSEXT_ERR_OK = 0,
    SSL_TLSEXT_ERR_ALERT_FATAL = 2,
    SSL_TLSEXT_ERR_NOACK = 3,

    SSL3_RT_CHANGE_CIPHER_SPEC = 20,
    SSL3_RT_ALERT = 21,
    SSL3_RT_HANDSHAKE = 22,
    SSL3_MT_CLIENT_HELLO = 1,
    SSL3_MT_FINISHED = 20,
    SSL3_MT_KEY_UPDATE = 24,
    SSL3_AL_FATAL = 2,
    SSL_AD_INTERNAL_ERROR = 80,
    SSL_AD_REASON_OFFSET = 1000,

    SSL3_RT_MAX_PLAIN_LENGTH = 16384,

    BIO_TYPE_SOURCE_SINK = 0x400,
    BIO_CTRL_EOF = 2,
    BIO_CTRL_PENDING = 10,
    BIO_CTRL_FLUSH = 11,
    BIO_CB_READ = 0x02,
    BIO_CB_READ_RETURN = 0x82,
    BIO_FLAGS_RETRY = 0x0F, /* BIO_FLAGS_RWS, BIO_FLAGS_SHOULD_RETRY */
    BIO_FLAGS_RETRY_READ = 0x09,
    BIO_FLAGS_RETRY_WRITE = 0x0A,
    BIO_FLAGS_IN_EOF = 0x800,
    BIO_C_SET_FD = 104,
    BIO_C_GET_FD = 105,
    BIO_NOCLOSE = 0,

    SSL_R_UNEXPECTED_EOF_WHILE_READING = 294,
    SSL_R_SHUTDOWN_WHILE_IN_INIT = 407,

    ERR_LIB_SYS = 2,
    ERR_LIB_SSL = 20,

    X509_V_OK = 0,
    X509_V_ERR_OUT_OF_MEM = 17,
    X509_V_ERR_APPLICATION_VERIFICATION = 50,

    SSL3_VERSION = 0x0300,
    TLS1_VERSION = 0x0301,
    TLS1_1_VERSION = 0x0302,
    TLS1_2_VERSION = 0x0303,
    TLS1_3_VERSION = 0x0304
};

#define SSL_OP_ENABLE_KTLS ((uint64_t)1 << 3)
#define SSL_OP_IGNORE_UNEXPECTED_EOF ((uint64_t)1 << 7)
#define SSL_OP_NO_TICKET ((uint64_t)1 << 14)
#define SSL_OP_NO_COMPRESSION ((uint64_t)1 << 17)
#define SSL_OP_CIPHER_SERVER_PREFERENCE ((uint64_t)1 << 22)
#define SSL_OP_NO_SSLV3 ((uint64_t)1 << 25)
#define SSL_OP_NO_TLSV1 ((uint64_t)1 << 26)
#define SSL_OP_NO_TLSV1_2 ((uint64_t)1 << 27)
#define SSL_OP_NO_TLSV1_1 ((uint64_t)1 << 28)
#define SSL_OP_NO_TLSV1_3 ((uint64_t)1 << 29)
#define SSL_OP_NO_RENEGOTIATION ((uint64_t)1 << 30)

/* First release whose record layer can give the kernel a new key. */
#define KTLS_OPENSSL_3_2 0x30200000UL
#define KTLS_OPENSSL_4_0 0x40000000UL

/* clang-format off */
/* BIO_callback_fn_ex. */
typedef long (*KtlsBioCallback)(
    BIO* bio, int operation, const char* argument, size_t length, int integer, long number, int returned, size_t* processed);
typedef int (*KtlsBioRead)(BIO* bio, char* buffer, int length);
typedef int (*KtlsBioWrite)(BIO* bio, const char* buffer, int length);
typedef long (*KtlsBioControl)(BIO* bio, int command, long argument, void* pointer);

/* All symbols. REQUIRED symbols must exist. OPTIONAL symbols may be NULL in the table. */
#define KTLS_OPENSSL_SYMBOLS(REQUIRED, OPTIONAL)                                                                       \
    REQUIRED(unsigned long, OpenSSL_version_num, (void))                                                               \
    REQUIRED(const char*, OpenSSL_version, (int type))                                                                 \
    REQUIRED(void, ERR_clear_error, (void))                                                                            \
    REQUIRED(unsigned long, ERR_get_error, (void))                                                                     \
    REQUIRED(unsigned long, ERR_peek_error, (void))                                                                    \
    REQUIRED(void, ERR_error_string_n, (unsigned long error, char* text, size_t capacity))                             \
    REQUIRED(void*, CRYPTO_malloc, (size_t size, const char* file, int line))                                          \
    REQUIRED(void, CRYPTO_free, (void* block, const char* file, int line))                                             \
    REQUIRED(int, CRYPTO_get_ex_new_index,                                                                             \
        (int type, long argl, void* argp, void* newFunction, void* dupFunction, void* freeFunction))                   \
    REQUIRED(BIO*, BIO_new, (const BIO_METHOD* method))                                                                \
    REQUIRED(const BIO_METHOD*, BIO_s_socket, (void))                                                                  \
    REQUIRED(int, BIO_free, (BIO* bio))                                                                                \
    REQUIRED(BIO_METHOD*, BIO_meth_new, (int type, const char* name))                                                  \
    REQUIRED(int, BIO_meth_set_read, (BIO_METHOD* method, KtlsBioRead read))                                           \
    REQUIRED(int, BIO_meth_set_write, (BIO_METHOD* method, KtlsBioWrite write))                                        \
    REQUIRED(int, BIO_meth_set_ctrl, (BIO_METHOD* method, KtlsBioControl control))                                     \
    REQUIRED(void, BIO_set_data, (BIO* bio, void* data))                                                               \
    REQUIRED(void*, BIO_get_data, (BIO* bio))                                                                          \
    REQUIRED(void, BIO_set_init, (BIO* bio, int initialized))                                                          \
    REQUIRED(void, BIO_set_flags, (BIO* bio, int flags))                                                               \
    REQUIRED(void, BIO_clear_flags, (BIO* bio, int flags))                                                             \
    REQUIRED(long, BIO_ctrl, (BIO* bio, int command, long argument, void* pointer))                                    \
    REQUIRED(int, OPENSSL_sk_num, (const OPENSSL_STACK* stack))                                                        \
    REQUIRED(void*, OPENSSL_sk_value, (const OPENSSL_STACK* stack, int index))                                         \
    REQUIRED(const EVP_CIPHER*, EVP_aes_256_cbc, (void))                                                               \
    REQUIRED(int, EVP_EncryptInit_ex,                                                                                  \
        (EVP_CIPHER_CTX * context, const EVP_CIPHER* cipher, ENGINE* engine, const unsigned char* key,                 \
         const unsigned char* iv))                                                                                     \
    REQUIRED(int, EVP_DecryptInit_ex,                                                                                  \
        (EVP_CIPHER_CTX * context, const EVP_CIPHER* cipher, ENGINE* engine, const unsigned char* key,                 \
         const unsigned char* iv))                                                                                     \
    REQUIRED(int, EVP_MAC_CTX_set_params, (EVP_MAC_CTX * context, const KtlsParameter* parameters))                    \
    REQUIRED(int, EVP_PKEY_set_type, (EVP_PKEY* key, int type))                                                        \
    REQUIRED(void, EVP_PKEY_free, (EVP_PKEY* key))                                                                     \
    REQUIRED(X509*, d2i_X509, (X509** certificate, const unsigned char** in, long length))                             \
    REQUIRED(int, i2d_X509, (const X509* certificate, unsigned char** out))                                            \
    REQUIRED(void, X509_free, (X509* certificate))                                                                     \
    REQUIRED(int, i2d_X509_NAME, (const X509_NAME* name, unsigned char** out))                                         \
    REQUIRED(X509*, X509_STORE_CTX_get0_cert, (const X509_STORE_CTX* store))                                           \
    REQUIRED(OPENSSL_STACK*, X509_STORE_CTX_get0_untrusted, (const X509_STORE_CTX* store))                             \
    REQUIRED(void*, X509_STORE_CTX_get_ex_data, (const X509_STORE_CTX* store, int index))                              \
    REQUIRED(void, X509_STORE_CTX_set_error, (X509_STORE_CTX* store, int error))                                       \
    REQUIRED(const SSL_METHOD*, TLS_client_method, (void))                                                             \
    REQUIRED(const SSL_METHOD*, TLS_server_method, (void))                                                             \
    REQUIRED(SSL_CTX*, SSL_CTX_new, (const SSL_METHOD* method))                                                        \
    REQUIRED(void, SSL_CTX_free, (SSL_CTX* context))                                                                   \
    REQUIRED(long, SSL_CTX_ctrl, (SSL_CTX* context, int command, long argument, void* pointer))                        \
    REQUIRED(long, SSL_CTX_callback_ctrl, (SSL_CTX* context, int command, KtlsAnyCallback callback))                   \
    REQUIRED(uint64_t, SSL_CTX_get_options, (const SSL_CTX* context))                                                  \
    REQUIRED(uint64_t, SSL_CTX_set_options, (SSL_CTX* context, uint64_t options))                                      \
    REQUIRED(uint64_t, SSL_CTX_clear_options, (SSL_CTX* context, uint64_t options))                                    \
    REQUIRED(int, SSL_CTX_set_cipher_list, (SSL_CTX* context, const char* list))                                       \
    REQUIRED(int, SSL_CTX_set_ciphersuites, (SSL_CTX* context, const char* list))                                      \
    REQUIRED(int, SSL_CTX_use_certificate, (SSL_CTX* context, X509* certificate))                                      \
    REQUIRED(int, SSL_CTX_use_PrivateKey, (SSL_CTX* context, EVP_PKEY* key))                                           \
    REQUIRED(int, SSL_CTX_check_private_key, (const SSL_CTX* context))                                                 \
    REQUIRED(int, SSL_CTX_set_session_id_context, (SSL_CTX* context, const unsigned char* id, unsigned int length))    \
    REQUIRED(int, SSL_CTX_set_alpn_protos, (SSL_CTX* context, const unsigned char* protocols, unsigned int length))    \
    REQUIRED(void, SSL_CTX_set_alpn_select_cb, (SSL_CTX* context, KtlsAlpnSelectCallback callback, void* argument))    \
    REQUIRED(void, SSL_CTX_set_verify, (SSL_CTX* context, int mode, KtlsPeerVerifyCallback callback))                  \
    REQUIRED(void, SSL_CTX_set_cert_verify_callback,                                                                   \
        (SSL_CTX* context, KtlsStoreVerifyCallback callback, void* argument))                                          \
    REQUIRED(int, SSL_CTX_get_verify_mode, (const SSL_CTX* context))                                                   \
    REQUIRED(int, SSL_CTX_add_client_CA, (SSL_CTX* context, X509* authority))                                          \
    REQUIRED(int, SSL_CTX_set_tlsext_ticket_key_evp_cb, (SSL_CTX* context, KtlsTicketKeyCallback callback))           \
    REQUIRED(int, SSL_CTX_set_session_ticket_cb,                                                                       \
        (SSL_CTX* context, KtlsGenerateTicketCallback generate, KtlsDecryptTicketCallback decrypt, void* argument))    \
    REQUIRED(void, SSL_CTX_set_keylog_callback, (SSL_CTX* context, KtlsKeyLogFunction callback))                      \
    REQUIRED(void, SSL_CTX_set_cert_cb, (SSL_CTX* context, KtlsCertificateCallback callback, void* argument))          \
    REQUIRED(void, SSL_CTX_sess_set_new_cb, (SSL_CTX* context, KtlsNewSessionCallback callback))                       \
    OPTIONAL(int, SSL_CTX_set_num_tickets, (SSL_CTX* context, size_t count))                                           \
    OPTIONAL(size_t, SSL_CTX_get_num_tickets, (const SSL_CTX* context))                                                \
    OPTIONAL(int, SSL_set_num_tickets, (SSL* ssl, size_t count))                                                       \
    OPTIONAL(void, SSL_CTX_set_post_handshake_auth, (SSL_CTX* context, int allowed))                                   \
    OPTIONAL(int, SSL_verify_client_post_handshake, (SSL* ssl))                                                        \
    OPTIONAL(void, SSL_CTX_set_client_hello_cb,                                                                        \
        (SSL_CTX* context, KtlsClientHelloCallback callback, void* argument))                                          \
    OPTIONAL(unsigned int, SSL_client_hello_get0_legacy_version, (SSL* ssl))                                           \
    OPTIONAL(int, SSL_client_hello_get0_ext,                                                                           \
        (SSL* ssl, unsigned int type, const unsigned char** data, size_t* length))                                     \
    REQUIRED(SSL*, SSL_new, (SSL_CTX* context))                                                                        \
    REQUIRED(void, SSL_free, (SSL* ssl))                                                                               \
    REQUIRED(int, SSL_up_ref, (SSL* ssl))                                                                              \
    REQUIRED(int, SSL_set_fd, (SSL* ssl, int descriptor))                                                              \
    REQUIRED(void, SSL_set_connect_state, (SSL* ssl))                                                                  \
    REQUIRED(void, SSL_set_accept_state, (SSL* ssl))                                                                   \
    REQUIRED(long, SSL_ctrl, (SSL* ssl, int command, long argument, void* pointer))                                    \
    REQUIRED(long, SSL_callback_ctrl, (SSL* ssl, int command, KtlsAnyCallback callback))                               \
    REQUIRED(uint64_t, SSL_get_options, (const SSL* ssl))                                                              \
    REQUIRED(uint64_t, SSL_set_options, (SSL* ssl, uint64_t options))                                                  \
    REQUIRED(uint64_t, SSL_clear_options, (SSL* ssl, uint64_t options))                                                \
    REQUIRED(void, SSL_set_msg_callback, (SSL* ssl, KtlsMessageCallback callback))                                     \
    REQUIRED(void, SSL_set_verify, (SSL* ssl, int mode, KtlsPeerVerifyCallback callback))                              \
    REQUIRED(int, SSL_get_verify_mode, (const SSL* ssl))                                                               \
    REQUIRED(SSL_CTX*, SSL_set_SSL_CTX, (SSL* ssl, SSL_CTX* context))                                                  \
    REQUIRED(int, SSL_use_certificate, (SSL* ssl, X509* certificate))                                                  \
    REQUIRED(int, SSL_use_PrivateKey, (SSL* ssl, EVP_PKEY* key))                                                       \
    REQUIRED(int, SSL_check_private_key, (const SSL* ssl))                                                             \
    REQUIRED(void, SSL_certs_clear, (SSL* ssl))                                                                        \
    REQUIRED(int, SSL_set_ex_data, (SSL* ssl, int index, void* data))                                                  \
    REQUIRED(void*, SSL_get_ex_data, (const SSL* ssl, int index))                                                      \
    REQUIRED(int, SSL_get_ex_data_X509_STORE_CTX_idx, (void))                                                          \
    REQUIRED(int, SSL_do_handshake, (SSL* ssl))                                                                        \
    REQUIRED(int, SSL_is_init_finished, (const SSL* ssl))                                                              \
    REQUIRED(int, SSL_read, (SSL* ssl, void* buffer, int length))                                                      \
    REQUIRED(int, SSL_peek, (SSL* ssl, void* buffer, int length))                                                      \
    REQUIRED(int, SSL_write, (SSL* ssl, const void* buffer, int length))                                               \
    REQUIRED(int, SSL_shutdown, (SSL* ssl))                                                                            \
    REQUIRED(void, SSL_set_shutdown, (SSL* ssl, int mode))                                                             \
    REQUIRED(int, SSL_get_shutdown, (const SSL* ssl))                                                                  \
    REQUIRED(int, SSL_get_error, (const SSL* ssl, int returned))                                                       \
    REQUIRED(int, SSL_want, (const SSL* ssl))                                                                          \
    REQUIRED(const char*, SSL_rstate_string, (const SSL* ssl))                                                         \
    REQUIRED(int, SSL_has_pending, (const SSL* ssl))                                                                   \
    REQUIRED(int, SSL_pending, (const SSL* ssl))                                                                       \
    OPTIONAL(int, SSL_key_update, (SSL* ssl, int type))                                                                \
    OPTIONAL(int, SSL_get_key_update_type, (const SSL* ssl))                                                           \
    REQUIRED(void, BIO_set_callback_ex, (BIO * bio, KtlsBioCallback callback))                                         \
    REQUIRED(void, BIO_set_callback_arg, (BIO * bio, char* argument))                                                  \
    REQUIRED(char*, BIO_get_callback_arg, (const BIO* bio))                                                            \
    REQUIRED(BIO*, SSL_get_rbio, (const SSL* ssl))                                                                     \
    REQUIRED(BIO*, SSL_get_wbio, (const SSL* ssl))                                                                     \
    REQUIRED(void, SSL_set0_wbio, (SSL* ssl, BIO* bio))                                                                \
    REQUIRED(void, SSL_set0_rbio, (SSL* ssl, BIO* bio))                                                                \
    REQUIRED(int, SSL_version, (const SSL* ssl))                                                                       \
    REQUIRED(const SSL_CIPHER*, SSL_get_current_cipher, (const SSL* ssl))                                              \
    OPTIONAL(const SSL_CIPHER*, SSL_get_pending_cipher, (const SSL* ssl))                                              \
    REQUIRED(const OPENSSL_STACK*, SSL_CTX_get_ciphers, (const SSL_CTX* context))                                      \
    REQUIRED(const char*, SSL_CIPHER_get_name, (const SSL_CIPHER* cipher))                                             \
    REQUIRED(uint16_t, SSL_CIPHER_get_protocol_id, (const SSL_CIPHER* cipher))                                         \
    REQUIRED(int, SSL_session_reused, (const SSL* ssl))                                                                \
    REQUIRED(int, SSL_set_session, (SSL* ssl, SSL_SESSION* session))                                                   \
    REQUIRED(SSL_SESSION*, SSL_get_session, (const SSL* ssl))                                                          \
    REQUIRED(uint8_t, SSL_SESSION_get_max_fragment_length, (const SSL_SESSION* session))                               \
    REQUIRED(SSL_SESSION*, d2i_SSL_SESSION, (SSL_SESSION** session, const unsigned char** in, long length))            \
    REQUIRED(int, SSL_SESSION_set1_ticket_appdata, (SSL_SESSION* session, const void* data, size_t length))            \
    REQUIRED(int, SSL_SESSION_get0_ticket_appdata, (SSL_SESSION* session, void** data, size_t* length))                \
    REQUIRED(void, SSL_SESSION_free, (SSL_SESSION* session))                                                           \
    REQUIRED(int, SSL_SESSION_is_resumable, (const SSL_SESSION* session))                                              \
    REQUIRED(int, SSL_SESSION_get_protocol_version, (const SSL_SESSION* session))                                      \
    REQUIRED(long, SSL_SESSION_get_time, (const SSL_SESSION* session))                                                 \
    REQUIRED(long, SSL_SESSION_get_timeout, (const SSL_SESSION* session))                                              \
    REQUIRED(unsigned long, SSL_SESSION_get_ticket_lifetime_hint, (const SSL_SESSION* session))                        \
    REQUIRED(size_t, SSL_get_finished, (const SSL* ssl, void* buffer, size_t capacity))                                \
    REQUIRED(size_t, SSL_get_peer_finished, (const SSL* ssl, void* buffer, size_t capacity))                           \
    REQUIRED(void, SSL_get0_alpn_selected, (const SSL* ssl, const unsigned char** data, unsigned int* length))         \
    REQUIRED(X509*, SSL_get0_peer_certificate, (const SSL* ssl))                                                       \
    REQUIRED(OPENSSL_STACK*, SSL_get_peer_cert_chain, (const SSL* ssl))                                                \
    REQUIRED(const OPENSSL_STACK*, SSL_get0_peer_CA_list, (const SSL* ssl))
/* clang-format on */

typedef struct KtlsOpenSsl
{
#define KTLS_DECLARE_SYMBOL(type, name, parameters) type(*name) parameters;
    KTLS_OPENSSL_SYMBOLS(KTLS_DECLARE_SYMBOL, KTLS_DECLARE_SYMBOL)
#undef KTLS_DECLARE_SYMBOL
    unsigned long version; /* OpenSSL_version_num() */
    int connectionIndex;   /* SSL ex_data index of the KtlsConnection */
} KtlsOpenSsl;

/* Returns the bound table, or NULL until KtlsNative_Initialize has succeeded. The table never changes once it is set.
 */
const KtlsOpenSsl* KtlsOpenSsl_Get(void);

/* Clears the error queue of this thread, which .NET uses as well. */
void KtlsOpenSsl_ClearErrors(const KtlsOpenSsl* api);

/* Returns whether this libssl can pause a handshake at the ClientHello and read its extensions. */
bool KtlsOpenSsl_HasClientHelloCallback(const KtlsOpenSsl* api);

/* Returns whether this libssl supports post-handshake authentication at both ends, and without new tickets. */
bool KtlsOpenSsl_HasPostHandshakeAuth(const KtlsOpenSsl* api);

#endif

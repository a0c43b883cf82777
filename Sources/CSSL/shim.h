// The part of OpenSSL's libssl that is used, and what it has as macros only (ssl(7)).
#pragma once
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

typedef int (*cssl_servername_callback)(SSL *session, int *alert, void *argument);
typedef int (*cssl_ticket_callback)(SSL *session, unsigned char *name, unsigned char *iv,
                                    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_encrypting);

static inline int cssl_set_minimum_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

// No compression and no renegotiation. A client without AES hardware puts ChaCha20 first, and gets
// it; else our order decides. Players end with the connection and without a word; their requests are
// framed anyway. Idle sessions hold no record buffers.
static inline void cssl_set_options(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static inline void cssl_disable_session_cache(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline void cssl_on_servername(SSL_CTX *context, cssl_servername_callback callback) {
    SSL_CTX_set_tlsext_servername_callback(context, callback);
}

static inline void cssl_servername_argument(SSL_CTX *context, void *argument) {
    SSL_CTX_set_tlsext_servername_arg(context, argument);
}

static inline void cssl_on_ticket(SSL_CTX *context, cssl_ticket_callback callback) {
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, callback);
}

static inline int cssl_set_groups(SSL_CTX *context, const char *groups) {
    return (int)SSL_CTX_set1_groups_list(context, groups);
}

static inline int cssl_add_chain(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline const char *cssl_error_reason(unsigned long code) {
    return ERR_reason_error_string(code);
}

static inline int cssl_error_number(unsigned long code) { return ERR_GET_REASON(code); }

// Parameters keep pointers to their names, which have to outlive them.
static inline int cssl_start_hmac_sha256(EVP_MAC_CTX *mac, const unsigned char *key, size_t length) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, length),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, parameters);
}

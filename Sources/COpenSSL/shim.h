// The part of OpenSSL that is used: SHA-256, HMAC and certificates of libcrypto (EVP_Digest(3), HMAC(3),
// X509_sign(3)), sessions of libssl (ssl(7)), what libcurl does not say or set of its TLS, and what is
// there as macros only.
#pragma once
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <openssl/ssl.h>
#include <openssl/core_names.h>
#include <openssl/params.h>

/// SSL_CTX_set_info_callback(3): has a handshake that begins use a copy of the session it was given.
///
/// OpenSSL marks a TLS 1.3 session as used up once a handshake has resumed it, and libcurl keeps one for
/// each host.
static inline void sluice_ssl_copy_session(const SSL *ssl, int where, int result) {
    (void)result;
    if (!(where & SSL_CB_HANDSHAKE_START) || !SSL_in_before(ssl)) return;
    SSL_SESSION *given = SSL_get_session(ssl);
    SSL_SESSION *copy = given ? SSL_SESSION_dup(given) : NULL;
    if (!copy) return;
    // The callback is handed what it may change as a constant (OpenSSL's own do so too).
    SSL_set_session((SSL *)(uintptr_t)ssl, copy);
    SSL_SESSION_free(copy);
}

/// Lets several connections resume one session.
static inline void sluice_ssl_copy_sessions(SSL_CTX *context) {
    SSL_CTX_set_info_callback(context, sluice_ssl_copy_session);
}

/// Lets TLS 1.2 resume by tickets (RFC 5077), which libcurl switches off for the sake of servers of 2009.
static inline void sluice_ssl_allow_tickets(SSL_CTX *context) {
    SSL_CTX_clear_options(context, SSL_OP_NO_TICKET);
}

/// The version of the library, such as `3.0.19`.
static inline const char *sluice_openssl_version(void) {
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}

typedef int (*sluice_ssl_servername_callback)(SSL *session, int *alert, void *argument);
typedef int (*sluice_ssl_ticket_callback)(SSL *session, unsigned char *name, unsigned char *iv,
                                    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_encrypting);

static inline int sluice_ssl_set_minimum_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

// No compression and no renegotiation. A client without AES hardware puts ChaCha20 first, and gets
// it; else our order decides. Players end with the connection and without a word; their requests are
// framed anyway. Idle sessions hold no record buffers.
static inline void sluice_ssl_set_options(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static inline void sluice_ssl_disable_session_cache(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline void sluice_ssl_on_servername(SSL_CTX *context, sluice_ssl_servername_callback callback) {
    SSL_CTX_set_tlsext_servername_callback(context, callback);
}

static inline void sluice_ssl_servername_argument(SSL_CTX *context, void *argument) {
    SSL_CTX_set_tlsext_servername_arg(context, argument);
}

static inline void sluice_ssl_on_ticket(SSL_CTX *context, sluice_ssl_ticket_callback callback) {
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, callback);
}

static inline int sluice_ssl_set_groups(SSL_CTX *context, const char *groups) {
    return (int)SSL_CTX_set1_groups_list(context, groups);
}

static inline int sluice_ssl_add_chain(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline const char *sluice_ssl_error_reason(unsigned long code) {
    return ERR_reason_error_string(code);
}

static inline int sluice_ssl_error_number(unsigned long code) { return ERR_GET_REASON(code); }

// Parameters keep pointers to their names, which have to outlive them.
static inline int sluice_ssl_start_hmac_sha256(EVP_MAC_CTX *mac, const unsigned char *key, size_t length) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, length),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, parameters);
}

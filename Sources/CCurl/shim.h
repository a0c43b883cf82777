// libcurl, with one function for each argument type of its variadic calls, which Swift cannot make
// (curl_easy_setopt(3), curl_easy_getinfo(3), curl_multi_setopt(3)).
#pragma once
#define CURL_DISABLE_TYPECHECK 1
#include <curl/curl.h>
#include <stdbool.h>

#pragma clang assume_nonnull begin

// Options of one transfer.

static inline CURLcode sluice_curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode sluice_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

/// The string is copied by libcurl.
static inline CURLcode sluice_curl_set_string(CURL *easy, CURLoption option,
                                              const char *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode sluice_curl_set_pointer(CURL *easy, CURLoption option, void *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

/// The list must outlive the transfer.
static inline CURLcode sluice_curl_set_list(CURL *easy, CURLoption option,
                                            struct curl_slist *_Nullable list) {
    return curl_easy_setopt(easy, option, list);
}

/// CURLOPT_WRITEFUNCTION and CURLOPT_WRITEDATA.
static inline void sluice_curl_set_write(CURL *easy, curl_write_callback call, void *context) {
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, call);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
}

/// CURLOPT_HEADERFUNCTION and CURLOPT_HEADERDATA.
static inline void sluice_curl_set_header(CURL *easy, curl_write_callback call, void *context) {
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, call);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
}

/// CURLOPT_READFUNCTION and CURLOPT_READDATA.
static inline void sluice_curl_set_read(CURL *easy, curl_read_callback call, void *context) {
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, call);
    curl_easy_setopt(easy, CURLOPT_READDATA, context);
}

/// CURLOPT_OPENSOCKETFUNCTION and CURLOPT_OPENSOCKETDATA.
static inline void sluice_curl_set_open_socket(CURL *easy, curl_opensocket_callback call,
                                               void *context) {
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, call);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
}

/// CURLOPT_DEBUGFUNCTION and CURLOPT_DEBUGDATA.
static inline void sluice_curl_set_debug(CURL *easy, curl_debug_callback call, void *context) {
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, call);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, context);
}

/// The bit of CURLOPT_SSL_OPTIONS that lets the first request ride on the handshake (RFC 8446 section
/// 2.3); 0 where the libcurl at hand does not know it. libcurl has it since 8.11, for OpenSSL since 8.13.
static inline long sluice_curl_early_data(unsigned int version) {
    return version >= 0x080d00 ? 1L << 6 : 0;
}

static inline unsigned int sluice_curl_version(void) {
    return curl_version_info(CURLVERSION_NOW)->version_num;
}

/// CURLOPT_SSL_CTX_FUNCTION and CURLOPT_SSL_CTX_DATA.
static inline CURLcode sluice_curl_set_ssl_context(CURL *easy, curl_ssl_ctx_callback call,
                                                   void *_Nullable context) {
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, context);
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, call);
}

/// CURLOPT_PREREQFUNCTION and CURLOPT_PREREQDATA.
static inline void sluice_curl_set_prerequest(CURL *easy, curl_prereq_callback call, void *context) {
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, call);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
}

// Facts about one transfer; 0 or null where libcurl does not know.

static inline long sluice_curl_info_long(CURL *easy, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

static inline curl_off_t sluice_curl_info_offset(CURL *easy, CURLINFO info) {
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

static inline const char *_Nullable sluice_curl_info_string(CURL *easy, CURLINFO info) {
    const char *_Nullable value = NULL;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : NULL;
}

/// The SSL object of the connection that a transfer uses; null without TLS, or where libcurl does not
/// use OpenSSL for it.
static inline void *_Nullable sluice_curl_openssl(CURL *easy) {
    struct curl_tlssessioninfo *_Nullable found = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &found) != CURLE_OK || !found) return NULL;
    return found->backend == CURLSSLBACKEND_OPENSSL ? found->internals : NULL;
}

/// The library that libcurl uses for TLS, such as `OpenSSL/3.0.19`; null for none.
static inline const char *_Nullable sluice_curl_tls_library(void) {
    return curl_version_info(CURLVERSION_NOW)->ssl_version;
}

/// The version of libcurl, such as `7.88.1`.
static inline const char *_Nullable sluice_curl_version_text(void) {
    return curl_version_info(CURLVERSION_NOW)->version;
}

static inline bool sluice_curl_has_http2(void) {
    return curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2;
}

/// CURLSHOPT_SHARE: TLS sessions, and nothing else.
static inline CURLSHcode sluice_curl_share_sessions(CURLSH *share) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

// Options of a set of transfers.

static inline CURLMcode sluice_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

/// CURLMOPT_SOCKETFUNCTION and CURLMOPT_SOCKETDATA.
static inline void sluice_curl_multi_set_socket(CURLM *multi, curl_socket_callback call,
                                                void *context) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, call);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
}

/// CURLMOPT_TIMERFUNCTION and CURLMOPT_TIMERDATA.
static inline void sluice_curl_multi_set_timer(CURLM *multi, curl_multi_timer_callback call,
                                               void *context) {
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, call);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}

/// The result that a CURLMSG_DONE message carries.
static inline CURLcode sluice_curl_message_result(const CURLMsg *message) {
    return message->data.result;
}

#pragma clang assume_nonnull end

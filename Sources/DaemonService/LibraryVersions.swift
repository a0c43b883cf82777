import CCurl
import CNGHTTP2
import COpenSSL
import GRDBSQLite

/// The libraries that this program runs with, as they name themselves.
package struct LibraryVersions: Sendable {
    package let curl: String
    /// The library that libcurl uses for TLS; nil where it has none.
    package let curlTLS: String?
    package let curlHasHTTP2: Bool
    package let openSSL: String
    package let sqlite: String
    package let nghttp2: String

    package init() {
        curl = sluice_curl_version_text().map { String(cString: $0) } ?? "unknown"
        curlTLS = sluice_curl_tls_library().map { String(cString: $0) }
        curlHasHTTP2 = sluice_curl_has_http2()
        openSSL = OpenSSL_version(OPENSSL_VERSION).map { String(cString: $0) } ?? "unknown"
        sqlite = sqlite3_libversion().map { String(cString: $0) } ?? "unknown"
        let http2 = nghttp2_version(0)
        nghttp2 = http2?.pointee.version_str.map { String(cString: $0) } ?? "unknown"
    }
}

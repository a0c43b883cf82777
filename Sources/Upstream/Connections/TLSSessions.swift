import CCurl
import COpenSSL
import Numbers

/// TLS sessions that new connections resume, whichever handle first connected to the host.
///
/// By default libcurl keeps sessions with the handle that made the connection; a burst to a known
/// host then makes a full handshake on each handle that is new to it. One of libcurl's share
/// objects holds few sessions, hence several of them. Used on one thread, so no locks are set.
final class TLSSessions {
    /// A share object of libcurl (libcurl-share(3)); outlives the handles that use it.
    final class Shelf {
        let handle: UnsafeMutableRawPointer

        /// Nil if libcurl is out of memory or cannot share sessions.
        init?() {
            guard let made = curl_share_init() else { return nil }
            guard sluice_curl_share_sessions(made) == CURLSHE_OK else {
                curl_share_cleanup(made)
                return nil
            }
            handle = made
        }

        deinit { curl_share_cleanup(handle) }
    }

    /// libcurl 7.88 keeps eight sessions on each shelf.
    static let shelfCount = 16

    private var shelves = [Shelf?](repeating: nil, count: shelfCount)

    /// Returns the shelf of a host's sessions; nil if libcurl cannot make one.
    func shelf(for host: String) -> Shelf? {
        let index = Self.index(of: host)
        if let known = shelves[index] { return known }
        shelves[index] = Shelf()
        return shelves[index]
    }

    /// Returns the shelf's index, equal in each run.
    static func index(of host: String) -> Int { Int(stableHash(host) % UInt64(shelfCount)) }
}

extension CurlEasy {
    /// True if libcurl uses the same OpenSSL that this program is linked with: only then may
    /// objects be passed between them.
    private static let sharesOpenSSL: Bool = {
        guard let version = sluice_curl_tls_library() else { return false }
        return String(cString: version) == "OpenSSL/" + String(cString: sluice_openssl_version())
    }()

    /// True if the current connection resumed a TLS session; nil if unknown.
    ///
    /// Only while the connection belongs to the handle: CURLINFO_TLS_SSL_PTR(3).
    var isSessionResumed: Bool? { openSSL.map { SSL_session_reused($0) == 1 } }

    /// The TLS object of the current connection; nil if it is not from this program's OpenSSL.
    var openSSL: OpaquePointer? {
        guard Self.sharesOpenSSL else { return nil }
        return sluice_curl_openssl(handle).map { OpaquePointer($0) }
    }

    /// Makes new connections resume sessions in more cases than libcurl does by default.
    ///
    /// TLS 1.2 uses tickets, as browsers do, not only sessions that servers store. In TLS 1.3 the
    /// connections of a burst resume one session, although a ticket should be used once, lest
    /// observers link connections (RFC 8446 appendix C.4): here they have the same endpoints at the
    /// same moment anyway, and each handshake brings a ticket that replaces the former one.
    ///
    /// - Parameter transfer: one whose sessions are also kept across restarts; nil for none.
    func resumeWhereverPossible(keepingThoseOf transfer: Transfer? = nil) {
        guard Self.sharesOpenSSL else { return }
        let context = transfer.map { Unmanaged.passUnretained($0).toOpaque() }
        _ = sluice_curl_set_ssl_context(handle, tlsWillBegin, context)
    }
}

/// CURLOPT_SSL_CTX_FUNCTION: called for each new connection, before its handshake.
private func tlsWillBegin(
    _ easy: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
    _ data: UnsafeMutableRawPointer?
) -> CURLcode {
    guard let context else { return CURLE_OK }
    sluice_ssl_allow_tickets(OpaquePointer(context))
    sluice_ssl_copy_sessions(OpaquePointer(context))
    guard let data else { return CURLE_OK }
    let transfer = Unmanaged<Transfer>.fromOpaque(data).takeUnretainedValue()
    transfer.client?.keptSessions?.follow(OpaquePointer(context), to: transfer.origin)
    return CURLE_OK
}

import CCurl
import COpenSSL

/// TLS sessions that new connections resume, whichever handle first spoke to the host.
///
/// By itself libcurl keeps sessions with the handle that made the connection; a burst to a known host
/// then makes a full handshake on each handle that is new to it. One object of libcurl's holds few
/// sessions, hence several of them. Used on one thread, so that nothing is locked.
final class TLSSessions {
    /// One object of libcurl's (libcurl-share(3)); outlives the handles that use it.
    final class Shelf {
        let handle: UnsafeMutableRawPointer

        /// Nil when libcurl is out of memory or keeps no sessions.
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

    /// libcurl 7.88 keeps eight sessions in each.
    static let shelfCount = 16

    private var shelves = [Shelf?](repeating: nil, count: shelfCount)

    /// The place of a host's sessions; nil where libcurl can make none.
    func shelf(for host: String) -> Shelf? {
        let index = Self.index(of: host)
        if let known = shelves[index] { return known }
        shelves[index] = Shelf()
        return shelves[index]
    }

    /// The same in each run (FNV-1a).
    static func index(of host: String) -> Int {
        var hash: UInt32 = 2_166_136_261
        for byte in host.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        return Int((hash ^ hash >> 16) % UInt32(shelfCount))
    }
}

extension CurlEasy {
    /// Whether libcurl uses the very OpenSSL that this program is linked with: only then may its objects
    /// be handed from one to the other.
    private static let sharesOpenSSL: Bool = {
        guard let version = sluice_curl_tls_library() else { return false }
        return String(cString: version) == "OpenSSL/" + String(cString: sluice_openssl_version())
    }()

    /// Whether the connection in use resumed a TLS session; nil where that cannot be known.
    ///
    /// Only while the connection belongs to the handle: CURLINFO_TLS_SSL_PTR(3).
    var isSessionResumed: Bool? { openSSL.map { SSL_session_reused($0) == 1 } }

    /// The TLS of the connection in use; nil where it is not of the OpenSSL that this program has.
    var openSSL: OpaquePointer? {
        guard Self.sharesOpenSSL else { return nil }
        return sluice_curl_openssl(handle).map { OpaquePointer($0) }
    }

    /// Lets new connections resume sessions where libcurl by itself would not.
    ///
    /// TLS 1.2 uses tickets, as browsers do, and not only what servers remember themselves. In TLS 1.3 the
    /// connections of a burst resume one session, though a ticket should serve once, lest observers see
    /// that connections belong together (RFC 8446 appendix C.4): here these have the same two ends at the
    /// same moment anyway, and each answer brings a ticket that takes the place of the former.
    func resumeWhereverPossible() {
        guard Self.sharesOpenSSL else { return }
        _ = sluice_curl_set_ssl_context(handle, tlsWillBegin, nil)
    }

    /// The same, and keeps sessions with the transfer's origin over restarts.
    func resumeWhereverPossible(for transfer: Transfer) {
        guard Self.sharesOpenSSL else { return }
        let context = Unmanaged.passUnretained(transfer).toOpaque()
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

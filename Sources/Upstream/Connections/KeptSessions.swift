import COpenSSL
import Posix
package import Reactor
import URISyntax

/// TLS sessions with origins that outlive the daemon; used on the upstream loop.
///
/// libcurl 7.88 cannot export sessions (curl_easy_ssls_export(3) came with 8.12), but OpenSSL can:
/// the context of each connection reports tickets from the origin, and accepts one before the
/// handshake. A context stores the origin that it was made for, since a connection outlives the
/// transfer that opened it.
package final class KeptSessions {
    /// The data attached to the context of one connection.
    fileprivate final class Connection {
        let origin: Origin
        let kept: KeptSessions
        /// libcurl's own callback.
        let next: (@convention(c) (OpaquePointer?, OpaquePointer?) -> CInt)?

        init(
            _ origin: Origin, _ kept: KeptSessions,
            next: (@convention(c) (OpaquePointer?, OpaquePointer?) -> CInt)?
        ) {
            self.origin = origin
            self.kept = kept
            self.next = next
        }
    }

    /// The most bytes of the file.
    package static let mostText = 8 << 20

    /// True if the text had another format.
    package let isUnreadable: Bool
    private var file: SessionFile
    private let loop: EventLoop
    private let save: @Sendable (String) -> Void
    private var timer: TimerID?

    /// The delay between a new session and writing the file.
    private static let pause = Interval.seconds(2 as Int64)

    /// - Parameters:
    ///   - loop: the upstream loop.
    ///   - text: the text of the file; nil for none.
    ///   - trust: the file of trusted certificates; nil for the system's.
    ///   - save: replaces the file; must not block.
    package init(
        loop: EventLoop, text: String?, trust: String?, save: @escaping @Sendable (String) -> Void
    ) {
        self.loop = loop
        self.save = save
        let trust = trust ?? ""
        let read = text.flatMap { SessionFile($0, trust: trust, now: loop.wallNow.seconds) }
        isUnreadable = text != nil && read == nil
        file = read ?? SessionFile(trust: trust)
    }

    /// Writes pending changes; blocks on the disk as far as `save` does.
    func flush() {
        guard let timer else { return }
        loop.cancel(timer)
        self.timer = nil
        save(file.text(now: loop.wallNow.seconds))
    }

    fileprivate func keep(_ session: OpaquePointer, of origin: Origin) {
        guard SSL_SESSION_is_resumable(session) == 1 else { return }
        let count = i2d_SSL_SESSION(session, nil)
        guard count > 0, Int(count) <= SessionFile.mostBytes else { return }
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, filled in
            var place = buffer.baseAddress
            filled = max(0, Int(i2d_SSL_SESSION(session, &place)))
        }
        let end = Int64(SSL_SESSION_get_time(session)) + Int64(SSL_SESSION_get_timeout(session))
        file.keep(bytes, of: origin, until: end, now: loop.wallNow.seconds)
        guard timer == nil else { return }
        timer = loop.schedule(after: Self.pause) { [weak self] _ in
            guard let self else { return }
            timer = nil
            save(file.text(now: loop.wallNow.seconds))
        }
    }

    /// Returns the session of an origin; the caller frees it.
    fileprivate func session(of origin: Origin) -> OpaquePointer? {
        guard let bytes = file.session(of: origin, now: loop.wallNow.seconds) else { return nil }
        return bytes.withUnsafeBufferPointer { buffer in
            var place = buffer.baseAddress
            return d2i_SSL_SESSION(nil, &place, buffer.count)
        }
    }

    /// The index of a context's connection data; negative if OpenSSL has no room.
    fileprivate static let place = CRYPTO_get_ex_new_index(
        CRYPTO_EX_INDEX_SSL_CTX, 0, nil, nil, nil,
        { _, pointer, _, _, _, _ in
            if let pointer { Unmanaged<Connection>.fromOpaque(pointer).release() }
        })

    /// Makes a new connection offer the origin's session, and keeps new sessions of it.
    func follow(_ context: OpaquePointer, to origin: Origin) {
        guard Self.place >= 0 else { return }
        let next = SSL_CTX_sess_get_new_cb(context)
        let connection = Connection(origin, self, next: next)
        let pointer = Unmanaged.passRetained(connection)
        guard SSL_CTX_set_ex_data(context, Self.place, pointer.toOpaque()) == 1 else {
            return pointer.release()
        }
        SSL_CTX_sess_set_new_cb(context, sessionArrived)
        SSL_CTX_set_info_callback(context, handshakeChanged)
    }

    /// Returns the connection data of a TLS object.
    ///
    /// libcurl uses the same context setup for its requests to a DNS server, so callers must
    /// check `isTo`.
    fileprivate static func connection(of tls: OpaquePointer?) -> Connection? {
        guard let tls, let context = SSL_get_SSL_CTX(tls),
            let pointer = SSL_CTX_get_ex_data(context, place)
        else { return nil }
        return Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue()
    }

    fileprivate static func isTo(_ origin: Origin, _ tls: OpaquePointer) -> Bool {
        guard let name = SSL_get_servername(tls, CInt(TLSEXT_NAMETYPE_host_name)) else {
            return AddressPolicy.isAddress(origin.host)
        }
        return String(cString: name) == origin.host
    }
}

/// SSL_CTX_sess_set_new_cb(3).
private func sessionArrived(_ tls: OpaquePointer?, _ session: OpaquePointer?) -> CInt {
    guard let tls, let session, let connection = KeptSessions.connection(of: tls) else { return 0 }
    if KeptSessions.isTo(connection.origin, tls), SSL_get_verify_result(tls) == 0 {
        connection.kept.keep(session, of: connection.origin)
    }
    return connection.next?(tls, session) ?? 0
}

/// SSL_CTX_set_info_callback(3).
private func handshakeChanged(_ tls: OpaquePointer?, _ place: CInt, _ result: CInt) {
    guard let tls else { return }
    if place & SSL_CB_HANDSHAKE_START != 0, SSL_in_before(tls) == 1, SSL_get_session(tls) == nil,
        let connection = KeptSessions.connection(of: tls),
        KeptSessions.isTo(connection.origin, tls),
        let session = connection.kept.session(of: connection.origin)
    {
        SSL_set_session(tls, session)
        SSL_SESSION_free(session)
        return
    }
    sluice_ssl_copy_session(tls, place, result)
}

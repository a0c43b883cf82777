// The settings that the sessions of one loop are created from: certificates, protocols and ciphers.
import COpenSSL
import Posix

/// The settings of TLS sessions on one loop (SSL_CTX_new(3)).
///
/// Each loop has its own: OpenSSL's contexts are reference-counted and locked, so threads would
/// contend for a shared one. Sessions keep the context that they began with, so replacing it ends
/// none of them.
package final class TLSContext {
    private let keys: TicketKeys
    private let credentials: [TLSCredentials]
    /// One per certificate; every session starts with the first.
    private var contexts: [OpaquePointer] = []

    /// - Throws: `TLSConfigurationError` if OpenSSL rejects a certificate.
    package init(
        _ certificates: TLSCertificates, keys: TicketKeys
    ) throws(TLSConfigurationError) {
        self.keys = keys
        var credentials: [TLSCredentials] = []
        for identity in certificates.identities { credentials.append(try TLSCredentials(identity)) }
        self.credentials = credentials
        for (identity, own) in zip(certificates.identities, credentials) {
            contexts.append(try makeContext(own, path: identity.files.certificate))
        }
    }

    deinit {
        for context in contexts { SSL_CTX_free(context) }
    }

    /// Creates a session for one accepted connection; nil if memory is short.
    package func makeSession(output: TLSOutput) -> TLSSession? {
        TLSSession(self, contexts[0], output: output)
    }

    private func makeContext(
        _ own: TLSCredentials, path: String
    ) throws(TLSConfigurationError) -> OpaquePointer {
        ERR_clear_error()
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw refused(path) }
        guard Self.secure(context), SSL_CTX_use_certificate(context, own.certificate) == 1,
            SSL_CTX_use_PrivateKey(context, own.key) == 1,
            own.chain.allSatisfy({ sluice_ssl_add_chain(context, $0) == 1 })
        else {
            defer { SSL_CTX_free(context) }
            throw refused(path)
        }
        SSL_CTX_set_alpn_select_cb(context, chooseProtocol, nil)
        sluice_ssl_on_servername(context, chooseCertificate)
        sluice_ssl_servername_argument(context, Unmanaged.passUnretained(self).toOpaque())
        sluice_ssl_on_ticket(context, ticketCallback)
        return context
    }

    private func refused(_ path: String) -> TLSConfigurationError {
        .refused(path: path, reason: lastTLSError())
    }

    /// Tickets after a full handshake of TLS 1.3; OpenSSL's default is 2.
    ///
    /// Players open one connection, or a few at once that are kept. Each of several that come back at
    /// once, but the first, does a full handshake, which in TLS 1.3 takes no more round trips.
    private static let ticketCount = 1

    /// Enables TLS 1.2 with forward secrecy and authenticated ciphers, and TLS 1.3 (RFC 9325).
    private static func secure(_ context: OpaquePointer) -> Bool {
        sluice_ssl_set_options(context)
        // Tickets carry the session state, so a cache would only add locking.
        sluice_ssl_disable_session_cache(context)
        SSL_CTX_set_timeout(context, 24 * 3_600)
        let own = Array("sluice".utf8)
        return SSL_CTX_set_session_id_context(context, own, UInt32(own.count)) == 1
            && SSL_CTX_set_num_tickets(context, ticketCount) == 1
            && sluice_ssl_set_minimum_version(context, TLS1_2_VERSION) == 1
            && SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
            && sluice_ssl_set_groups(context, "X25519:P-256:P-384") == 1
    }

    // MARK: Callbacks of the handshake

    fileprivate func choose(for session: OpaquePointer?, name: UnsafePointer<CChar>) {
        for (own, context) in zip(credentials, contexts) where own.isFor(name) {
            SSL_set_SSL_CTX(session, context)
            return
        }
    }

    fileprivate func prepareTicket(
        _ name: UnsafeMutablePointer<UInt8>, _ iv: UnsafeMutablePointer<UInt8>,
        _ cipher: OpaquePointer, _ mac: OpaquePointer, isSealing: Bool
    ) -> CInt {
        keys.prepare(
            name: name, iv: iv, cipher: cipher, mac: mac, isSealing: isSealing, at: .now())
    }
}

/// Returns the text of this thread's oldest OpenSSL error and clears the error queue.
func lastTLSError() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0, let reason = sluice_ssl_error_reason(code) else { return "unknown error" }
    return String(cString: reason)
}

/// The supported protocols in order of preference, each preceded by its length (RFC 7301).
private let knownProtocols = [[2] + Array("h2".utf8), [8] + Array("http/1.1".utf8)]

private let chooseProtocol: SSL_CTX_alpn_select_cb_func = {
    _, chosen, chosenLength, offered, length, _ in
    guard let offered else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    for known in knownProtocols {
        var offset = 0
        while offset < Int(length) {
            let end = offset + 1 + Int(offered[offset])
            guard end <= Int(length) else { break }
            let candidate = UnsafeBufferPointer(start: offered + offset, count: end - offset)
            if candidate.elementsEqual(known) {
                chosen?.pointee = offered + offset + 1
                chosenLength?.pointee = offered[offset]
                return SSL_TLSEXT_ERR_OK
            }
            offset = end
        }
    }
    // A client that offers only other protocols must not get HTTP (RFC 7301 section 3.2).
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

private let chooseCertificate: sluice_ssl_servername_callback = { session, _, argument in
    guard let argument, let name = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name) else {
        return SSL_TLSEXT_ERR_NOACK
    }
    Unmanaged<TLSContext>.fromOpaque(argument).takeUnretainedValue().choose(
        for: session, name: name)
    return SSL_TLSEXT_ERR_OK
}

private let ticketCallback: sluice_ssl_ticket_callback = {
    session, name, iv, cipher, mac, isSealing in
    guard let name, let iv, let cipher, let mac,
        let owner = TLSSession.owner(of: session)
    else { return -1 }
    return owner.context.prepareTicket(name, iv, cipher, mac, isSealing: isSealing == 1)
}

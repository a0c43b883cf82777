// The client's side of TLS in memory (ssl(7)), so that its bytes can be split and changed on the
// way.
import COpenSSL

/// A TLS client without a socket: outgoing bytes are taken from it, incoming ones passed to it.
final class TLSClient {
    private let context: OpaquePointer
    private let session: OpaquePointer
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer

    /// - Parameters:
    ///   - protocols: Names for ALPN, in order; none where there are none.
    ///   - version: The highest version that is offered, such as `TLS1_2_VERSION`.
    init(protocols: [String], version: Int32 = TLS1_3_VERSION) {
        guard let context = SSL_CTX_new(TLS_client_method()), let session = SSL_new(context),
            let incoming = BIO_new(BIO_s_mem()), let outgoing = BIO_new(BIO_s_mem())
        else { fatalError("no memory for a TLS client") }
        self.context = context
        self.session = session
        self.incoming = incoming
        self.outgoing = outgoing
        SSL_ctrl(session, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
        let names = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        if !names.isEmpty { SSL_set_alpn_protos(session, names, UInt32(names.count)) }
        // From here on the session owns both.
        SSL_set_bio(session, incoming, outgoing)
        SSL_set_connect_state(session)
    }

    deinit {
        SSL_free(session)
        SSL_CTX_free(context)
        ERR_clear_error()
    }

    var isEstablished: Bool { SSL_is_init_finished(session) == 1 }

    /// Continues the handshake as far as possible.
    func shakeHands() {
        SSL_do_handshake(session)
        ERR_clear_error()
    }

    /// Processes bytes that the server sent.
    func receive(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        BIO_write(incoming, bytes, CInt(bytes.count))
    }

    /// All content that can be decrypted of what was received.
    func read() -> [UInt8] {
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        while true {
            let count = SSL_read(session, &buffer, CInt(buffer.count))
            ERR_clear_error()
            guard count > 0 else { return content }
            content += buffer[..<Int(count)]
        }
    }

    /// Encrypts content.
    func write(_ bytes: [UInt8]) {
        if !bytes.isEmpty { SSL_write(session, bytes, CInt(bytes.count)) }
        ERR_clear_error()
    }

    /// Updates the keys of TLS 1.3 (RFC 8446 section 4.6.3) and requests the same of the server.
    func updateKeys() {
        SSL_key_update(session, SSL_KEY_UPDATE_REQUESTED)
        SSL_do_handshake(session)
        ERR_clear_error()
    }

    /// Ends the sending side.
    func sendEnd() {
        SSL_shutdown(session)
        ERR_clear_error()
    }

    /// Takes the outgoing bytes.
    func take() -> [UInt8] {
        let count = BIO_ctrl_pending(outgoing)
        guard count > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        BIO_read(outgoing, &bytes, CInt(count))
        return bytes
    }
}

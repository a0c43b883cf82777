// One TLS session without a socket of its own: takes a socket's bytes and produces bytes for it.
import COpenSSL
package import Posix

/// The buffer that all sessions of one loop write their records to before sending them.
package final class TLSOutput {
    /// Large enough for the records of `TLSSession.mostPlaintext` bytes and a handshake's messages.
    fileprivate static let capacity = 96 << 10
    fileprivate let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: capacity, alignment: 64)
    fileprivate var count = 0

    package init() {}

    deinit { buffer.deallocate() }

    fileprivate func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard count + bytes.count <= buffer.count else { return false }
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
        count += bytes.count
        return true
    }
}

/// The server's side of one TLS connection (ssl(7)).
///
/// It belongs to its loop. The handshake happens within `receive`. Records that the socket does not
/// accept are kept; nothing more is encrypted until they are sent, so that one session holds at
/// most one turn's records.
package final class TLSSession {
    /// The maximum number of bytes that one call encrypts: four records.
    package static let mostPlaintext = 64 << 10
    /// The maximum number of bytes that one call reads from the socket: together with an incomplete
    /// earlier record, they must fit a buffer of 64 KiB after decryption.
    package static let mostCiphertext = 48 << 10

    let context: TLSContext
    private let session: OpaquePointer
    private let output: TLSOutput
    private var input = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Records that the socket has not accepted yet, from `unsentStart` on.
    private var unsent: [UInt8] = []
    private var unsentStart = 0
    private var hasFailed = false
    private var hasSentEnd = false

    init?(_ context: TLSContext, _ settings: OpaquePointer, output: TLSOutput) {
        guard let session = SSL_new(settings) else { return nil }
        guard let io = BIO_new(MemoryBIO.method) else {
            SSL_free(session)
            return nil
        }
        self.context = context
        self.session = session
        self.output = output
        BIO_set_data(io, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(io, 1)
        // The session owns it from here on.
        SSL_set_bio(session, io, io)
        SSL_set_accept_state(session)
    }

    deinit { SSL_free(session) }

    /// Returns the session of an OpenSSL callback.
    static func owner(of session: OpaquePointer?) -> TLSSession? {
        BIO_get_data(SSL_get_rbio(session)).map {
            Unmanaged<TLSSession>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// True once the handshake is complete.
    package var isEstablished: Bool { SSL_is_init_finished(session) == 1 }

    /// Returns how the handshake ended, at the first call after its end; nil before and later.
    package func takeEstablishment() -> Establishment? {
        guard !hasSentEnd, isEstablished else { return nil }
        hasSentEnd = true
        return isResumed ? .resumed : .full
    }

    /// The kind of a successful handshake.
    package enum Establishment: Sendable {
        /// With certificate and key exchange.
        case full
        /// With a ticket of an earlier session.
        case resumed
    }

    /// True if both sides agreed on HTTP/2 (RFC 9113 section 3.2).
    package var isHTTP2: Bool {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(session, &name, &length)
        guard let name, length == 2 else { return false }
        return name[0] == 0x68 && name[1] == 0x32
    }

    /// True if the session resumes an earlier one.
    package var isResumed: Bool { SSL_session_reused(session) == 1 }

    /// The protocol version in its usual notation: `TLSv1.3`.
    package var version: String { String(cString: SSL_get_version(session)) }

    /// True while records wait for room in the socket.
    package var hasUnsent: Bool { unsentStart < unsent.count }

    /// The number of bytes of records that wait for room in the socket.
    package var unsentCount: Int { unsent.count - unsentStart }

    // MARK: Receiving

    /// Reads what has arrived on a socket and decrypts it; never blocks.
    ///
    /// - Parameters:
    ///   - number: the socket.
    ///   - buffer: for the plaintext, at least 64 KiB.
    ///   - scratch: for the ciphertext, at least `mostCiphertext`.
    /// - Returns: the number of bytes of plaintext; `.wouldBlock` also during the handshake.
    package func receive(
        from number: CInt, into buffer: UnsafeMutableRawBufferPointer,
        scratch: UnsafeMutableRawBufferPointer
    ) -> ReadOutcome {
        let room = UnsafeMutableRawBufferPointer(rebasing: scratch.prefix(Self.mostCiphertext))
        while true {
            switch Posix.receive(from: number, into: room) {
            case .wouldBlock: return .wouldBlock
            case .end: return .end
            case .bytes(let count):
                let outcome = decrypt(
                    UnsafeRawBufferPointer(rebasing: room[..<count]), into: buffer)
                // Sends the messages of a handshake, a key update or an alert.
                if flush(to: number) == .closed { return .end }
                // No plaintext yet and the buffer was full: more may have arrived.
                if outcome == .wouldBlock, count == room.count { continue }
                return outcome
            }
        }
    }

    private func decrypt(
        _ bytes: UnsafeRawBufferPointer, into buffer: UnsafeMutableRawBufferPointer
    ) -> ReadOutcome {
        input = bytes
        defer {
            input = UnsafeRawBufferPointer(start: nil, count: 0)
            releaseBuffers()
        }
        ERR_clear_error()
        var filled = 0
        while !hasFailed {
            var count = 0
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let status = SSL_read_ex(session, room.baseAddress, room.count, &count)
            if status == 1 {
                filled += count
                continue
            }
            switch SSL_get_error(session, status) {
            case SSL_ERROR_WANT_READ where input.isEmpty:
                return filled > 0 ? .bytes(filled) : .wouldBlock
            case SSL_ERROR_ZERO_RETURN: return filled > 0 ? .bytes(filled) : .end
            default: fail()
            }
        }
        return filled > 0 ? .bytes(filled) : .end
    }

    /// Fails the session; a client that spoke HTTP without TLS gets an HTTP response without TLS.
    private func fail() {
        let reason = sluice_ssl_error_number(ERR_peek_error())
        hasFailed = true
        ERR_clear_error()
        guard reason == SSL_R_HTTP_REQUEST else { return }
        let text = "client error: this port speaks TLS; use https:// or the port without TLS\n"
        output.count = 0
        let answer = Array(
            """
            HTTP/1.1 400 Bad Request\r
            Connection: close\r
            Content-Type: text/plain; charset=utf-8\r
            Content-Length: \(text.utf8.count)\r
            \r
            \(text)
            """.utf8)
        _ = answer.withUnsafeBytes { output.append($0) }
    }

    // MARK: Sending

    /// Encrypts and sends as much as there is room for; never blocks.
    ///
    /// - Returns: the number of bytes of plaintext accepted; their records may still wait, see
    ///   `hasUnsent`.
    package func send(_ bytes: UnsafeRawBufferPointer, to number: CInt) -> WriteOutcome {
        switch flush(to: number) {
        case .bytes: break
        case .wouldBlock: return .wouldBlock
        case .closed: return .closed
        }
        guard !hasFailed else { return .closed }
        guard !bytes.isEmpty else { return .bytes(0) }
        ERR_clear_error()
        var count = 0
        let taken = min(bytes.count, Self.mostPlaintext)
        guard SSL_write_ex(session, bytes.baseAddress, taken, &count) == 1 else {
            hasFailed = true
            return .closed
        }
        releaseBuffers()
        return flush(to: number) == .closed ? .closed : .bytes(count)
    }

    /// Frees the record buffers: SSL_MODE_RELEASE_BUFFERS does not free the write buffer of 16 KiB
    /// after the tickets were sent.
    private func releaseBuffers() { SSL_free_buffers(session) }

    /// Sends the waiting records; returns `.bytes` once none is left.
    package func flush(to number: CInt) -> WriteOutcome {
        while unsentStart < unsent.count {
            let outcome = unsent.withUnsafeBytes {
                Posix.send(UnsafeRawBufferPointer(rebasing: $0[unsentStart...]), to: number)
            }
            guard case .bytes(let count) = outcome else {
                keepOutput()
                return outcome
            }
            unsentStart += count
        }
        if unsentStart > 0 {
            unsent = []
            unsentStart = 0
        }
        var sent = 0
        while sent < output.count {
            let rest = UnsafeRawBufferPointer(rebasing: output.buffer[sent..<output.count])
            let outcome = Posix.send(rest, to: number)
            guard case .bytes(let count) = outcome else {
                unsent = Array(rest)
                output.count = 0
                return outcome
            }
            sent += count
        }
        output.count = 0
        return .bytes(sent)
    }

    /// Appends the shared output buffer to the waiting records, since the next session needs the
    /// buffer.
    private func keepOutput() {
        guard output.count > 0 else { return }
        unsent.append(contentsOf: output.buffer[..<output.count])
        output.count = 0
        // The client makes the server respond but does not read.
        if unsent.count - unsentStart > 4 * TLSOutput.capacity { hasFailed = true }
    }

    /// Sends the close_notify alert (RFC 8446 section 6.1), as far as the socket has room
    /// immediately.
    package func sendEnd(to number: CInt) {
        guard !hasFailed, isEstablished else { return }
        ERR_clear_error()
        SSL_shutdown(session)
        _ = flush(to: number)
    }

    // MARK: OpenSSL's input and output

    fileprivate func give(_ bytes: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(bytes.count, input.count)
        bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
        input = UnsafeRawBufferPointer(rebasing: input[count...])
        return count
    }

    fileprivate func take(_ bytes: UnsafeRawBufferPointer) -> Bool { output.append(bytes) }
}

/// OpenSSL's input and output in memory (BIO_meth_new(3)).
private enum MemoryBIO {
    // Safe: it is never changed after its creation.
    nonisolated(unsafe) static let method: OpaquePointer? = {
        let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sluice")
        BIO_meth_set_write(method) { io, bytes, count in
            guard let session = owner(of: io), let bytes, count > 0 else { return -1 }
            let whole = session.take(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
            return whole ? count : -1
        }
        BIO_meth_set_read(method) { io, bytes, count in
            BIO_clear_flags(io, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            guard let session = owner(of: io), let bytes, count > 0 else { return -1 }
            let given = session.give(UnsafeMutableRawBufferPointer(start: bytes, count: Int(count)))
            if given > 0 { return CInt(given) }
            BIO_set_flags(io, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            return -1
        }
        BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return method
    }()

    private static func owner(of io: OpaquePointer?) -> TLSSession? {
        BIO_get_data(io).map { Unmanaged<TLSSession>.fromOpaque($0).takeUnretainedValue() }
    }
}

// A connection of HTTP/2 as a player's side sees it: nghttp2's session of a client (nghttp2.h).
import CNGHTTP2
import CSimulation

/// One connection of HTTP/2 without TLS, which the client's side knows in advance (section 3.3).
final class HTTP2Line {
    let port: UInt16
    private let world: World
    private let stream: Stream
    private var session: OpaquePointer?
    /// False once the daemon has said that it takes no more streams.
    private var isWelcome = true
    private var clients: [Int32: HTTP2Client] = [:]
    /// The players that use this connection.
    private var users = 0
    private var heads: [Int32: Head] = [:]
    /// What happened while bytes were read: players answer with calls that the session cannot take
    /// then.
    private var events: [Event] = []
    private var isReading = false
    /// Requests' bodies that have not been sent.
    private var bodies: [Int32: ArraySlice<UInt8>] = [:]
    /// Streams whose responses are at their end.
    private var complete: Set<Int32> = []

    private struct Head {
        var status = 0
        var fields: [(name: String, value: String)] = []
    }

    private enum Event {
        case head(Int32, Head)
        case body(Int32, [UInt8])
        case closed(Int32, isWhole: Bool, wasRefused: Bool)
    }

    /// How long bytes are on the way, in each direction.
    private let latency: Int64

    /// Dials the daemon; nil if nobody listens.
    init?(_ world: World, port: UInt16, latency: Int64) {
        let descriptor = csim_dial(port)
        guard descriptor >= 0 else { return nil }
        self.world = world
        self.port = port
        self.latency = latency
        stream = Stream(world, descriptor)
        var made: OpaquePointer?
        let holder = Unmanaged.passUnretained(self).toOpaque()
        guard nghttp2_session_client_new2(&made, Self.callbacks, holder, Self.options) == 0 else {
            preconditionFailure("no memory for a session")
        }
        session = made
        nghttp2_submit_settings(made, 0, nil, 0)
        // As browsers have it: what one stream is slow to take does not hold up the others.
        nghttp2_session_set_local_window_size(made, 0, 0, 8 << 20)
        stream.received = { [weak self] bytes in
            world.after(latency) { self?.read(bytes) }
        }
        stream.ended = { [weak self] in
            world.after(latency) { self?.lost() }
        }
        world.mark("h2: connection")
        flush()
    }

    deinit { nghttp2_session_del(session) }

    /// True while new streams can be opened.
    var takesRequests: Bool {
        isWelcome && nghttp2_session_check_request_allowed(session) != 0
    }

    /// Counts another user, which keeps the connection open.
    func attach() { users += 1 }

    /// Closes the connection when its last user leaves.
    func detach() {
        users -= 1
        if users == 0 { world.after(0) { [self] in closeIfUnused() } }
    }

    private func closeIfUnused() {
        guard users == 0 else { return }
        isWelcome = false
        stream.reset()
    }

    // MARK: Requests

    /// Opens a stream for a request; nil if the connection takes none.
    func begin(_ request: PlayerRequest, for client: HTTP2Client) -> Int32? {
        let fields =
            [
                (":method", request.method), (":scheme", "http"),
                (":authority", "127.0.0.1:\(port)"), (":path", request.target),
            ] + request.fields.map { ($0.0.lowercased(), $0.1) }
        var provider = nghttp2_data_provider()
        provider.read_callback = readBody
        let id = Self.withPairs(fields) { pairs in
            request.body.isEmpty
                ? nghttp2_submit_request(session, nil, pairs.baseAddress, pairs.count, nil, nil)
                : nghttp2_submit_request(
                    session, nil, pairs.baseAddress, pairs.count, &provider, nil)
        }
        guard id > 0 else { return nil }
        clients[id] = client
        bodies[id] = request.body[...]
        flush()
        return id
    }

    func reset(_ id: Int32) {
        clients[id] = nil
        nghttp2_submit_rst_stream(session, 0, id, NGHTTP2_CANCEL.rawValue)
        flush()
    }

    /// Lets the daemon send more on a stream; the connection's window has grown already.
    func consume(_ id: Int32, _ count: Int) {
        nghttp2_session_consume_stream(session, id, count)
        flush()
    }

    /// How many bytes the daemon may send, as far as this side knows.
    func windows(of id: Int32) -> String {
        let stream =
            nghttp2_session_get_stream_effective_local_window_size(session, id)
            - nghttp2_session_get_stream_effective_recv_data_length(session, id)
        let connection =
            nghttp2_session_get_effective_local_window_size(session)
            - nghttp2_session_get_effective_recv_data_length(session)
        return "window of the stream \(stream), of the connection \(connection)"
    }

    private static func withPairs<Result>(
        _ fields: [(String, String)],
        _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Result
    ) -> Result {
        // One block of bytes that does not move while the pairs point into it.
        var bytes = fields.flatMap { Array($0.0.utf8) + Array($0.1.utf8) }
        return bytes.withUnsafeMutableBufferPointer { block in
            var place = block.baseAddress
            var pairs = fields.map { name, value in
                let (first, second) = (name.utf8.count, value.utf8.count)
                defer { place = place.map { $0 + first + second } }
                return nghttp2_nv(
                    name: place, value: place.map { $0 + first }, namelen: first, valuelen: second,
                    flags: 0)
            }
            return pairs.withUnsafeMutableBufferPointer { body($0) }
        }
    }

    // MARK: Bytes

    private func flush() {
        guard !isReading else { return }
        var output: [UInt8] = []
        while true {
            var frames: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &frames)
            guard count > 0 else { break }
            output += UnsafeBufferPointer(start: frames, count: count)
        }
        if !output.isEmpty { world.after(latency) { [stream] in stream.send(output) } }
        // Streams end here too, and their players may not know their numbers yet.
        if !events.isEmpty { world.after(0) { [weak self] in self?.tell() } }
    }

    private func read(_ bytes: ArraySlice<UInt8>) {
        isReading = true
        let taken = bytes.withUnsafeBufferPointer {
            nghttp2_session_mem_recv(session, $0.baseAddress, $0.count)
        }
        isReading = false
        if taken < 0 {
            world.fault(
                .lengths, "HTTP/2: \(String(cString: nghttp2_strerror(Int32(clamping: taken))))")
            stream.reset()
        }
        flush()
        tell()
        if nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 {
            stream.reset()
            lost()
        }
    }

    /// Tells the players what happened.
    private func tell() {
        let told = events
        events = []
        for event in told {
            switch event {
            case .head(let id, let head):
                clients[id]?.received(status: head.status, fields: head.fields)
            case .body(let id, let bytes): clients[id]?.received(bytes)
            case .closed(let id, let isWhole, let wasRefused):
                clients.removeValue(forKey: id)?.ended(isWhole: isWhole, wasRefused: wasRefused)
            }
        }
    }

    /// Ends all streams: the connection is gone.
    private func lost() {
        isWelcome = false
        let left = clients.sorted { $0.key < $1.key }
        clients = [:]
        for (_, client) in left { client.ended(isWhole: false, wasRefused: false) }
    }

    // MARK: From the session

    fileprivate func headBegins(_ id: Int32) { heads[id] = Head() }

    fileprivate func field(_ id: Int32, _ name: String, _ value: String) {
        if name == ":status" {
            heads[id]?.status = Int(value) ?? 0
        } else {
            heads[id]?.fields.append((name, value))
        }
    }

    fileprivate func frame(_ header: nghttp2_frame_hd) {
        let id = header.stream_id
        switch UInt32(header.type) {
        case NGHTTP2_HEADERS.rawValue:
            if let head = heads.removeValue(forKey: id) { events.append(.head(id, head)) }
        case NGHTTP2_GOAWAY.rawValue:
            isWelcome = false
            world.mark("h2: goaway")
        default: break
        }
        let canEnd = [NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue].contains(
            UInt32(header.type))
        if canEnd, header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 {
            complete.insert(id)
        }
    }

    fileprivate func content(_ id: Int32, _ bytes: [UInt8]) {
        nghttp2_session_consume_connection(session, bytes.count)
        if complete.contains(id) {
            world.fault(.lengths, "HTTP/2: content after the end of a stream")
        }
        events.append(.body(id, bytes))
    }

    fileprivate func closed(_ id: Int32, error: UInt32) {
        bodies[id] = nil
        events.append(
            .closed(
                id, isWhole: complete.remove(id) != nil,
                wasRefused: error == NGHTTP2_REFUSED_STREAM.rawValue))
    }

    fileprivate func failed(_ what: String) { world.fault(.status, "HTTP/2: \(what)") }

    /// Copies the next bytes of a request's body; `isLast` if there are no more.
    fileprivate func body(
        _ id: Int32, into room: UnsafeMutableBufferPointer<UInt8>
    ) -> (count: Int, isLast: Bool) {
        guard let left = bodies[id] else { return (0, true) }
        let count = min(room.count, left.count)
        _ = room.update(fromContentsOf: left.prefix(count))
        bodies[id] = left.dropFirst(count)
        return (count, count == left.count)
    }

    // Safe: sessions copy them; one thread uses them.
    nonisolated(unsafe) private static let callbacks: OpaquePointer? = {
        var made: OpaquePointer?
        nghttp2_session_callbacks_new(&made)
        nghttp2_session_callbacks_set_on_begin_headers_callback(made) { _, frame, holder in
            if let frame { line(holder)?.headBegins(frame.pointee.hd.stream_id) }
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(made) {
            _, frame, name, nameLength, value, valueLength, _, holder in
            guard let frame else { return 0 }
            line(holder)?.field(
                frame.pointee.hd.stream_id, text(name, nameLength), text(value, valueLength))
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_header_callback(made) {
            _, _, name, nameLength, _, _, _, holder in
            line(holder)?.failed("the field \(text(name, nameLength)) is invalid")
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made) {
            _, frame, code, holder in
            let type = frame?.pointee.hd.type ?? 0
            line(holder)?.failed(
                "frame of type \(type): \(String(cString: nghttp2_strerror(code)))")
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(made) { _, frame, holder in
            guard let frame, let line = line(holder) else { return 0 }
            let header = frame.pointee.hd
            if UInt32(header.type) == NGHTTP2_GOAWAY.rawValue,
                frame.pointee.goaway.error_code != NGHTTP2_NO_ERROR.rawValue
            {
                line.failed("GOAWAY with error \(frame.pointee.goaway.error_code)")
            }
            line.frame(header)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made) {
            _, _, id, bytes, count, holder in
            line(holder)?.content(id, Array(UnsafeBufferPointer(start: bytes, count: count)))
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(made) { _, id, code, holder in
            line(holder)?.closed(id, error: code)
            return 0
        }
        return made
    }()

    // Safe: sessions only read it.
    nonisolated(unsafe) private static let options: OpaquePointer? = {
        var made: OpaquePointer?
        nghttp2_option_new(&made)
        // Windows grow when a player has read.
        nghttp2_option_set_no_auto_window_update(made, 1)
        return made
    }()
}

private func line(_ holder: UnsafeMutableRawPointer?) -> HTTP2Line? {
    holder.map { Unmanaged<HTTP2Line>.fromOpaque($0).takeUnretainedValue() }
}

private func text(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> String {
    String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
}

private let readBody: nghttp2_data_source_read_callback = {
    _, id, buffer, length, flags, _, holder in
    guard let line = line(holder) else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
    let room = UnsafeMutableBufferPointer(start: buffer, count: length)
    let (count, isLast) = line.body(id, into: room)
    if isLast { flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return count
}

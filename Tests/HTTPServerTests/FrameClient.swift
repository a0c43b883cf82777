// A blocking HTTP/2 client that writes and reads raw frames (RFC 9113), so that tests can have any
// session with the server, malformed ones too.
import Glibc

/// What one stream has received.
struct StreamAnswer: Equatable {
    /// The decoded header blocks, interim responses and trailers among them.
    var blocks: [[HeaderField]] = []
    var body: [UInt8] = []
    /// Whether the server ended the stream with END_STREAM.
    var isWhole = false
    /// The code with which the server reset the stream.
    var reset: ErrorCode?

    /// The status of the final response, 0 when there is none.
    var status: Int { Int(head.first { $0.name == ":status" }?.value ?? "") ?? 0 }
    var text: String { String(decoding: body, as: UTF8.self) }

    /// The fields of the final response.
    var head: [HeaderField] {
        blocks.first { fields in
            fields.contains { $0.name == ":status" && !$0.value.hasPrefix("1") }
        } ?? []
    }

    /// The value of a field of the final response, nil if there is none.
    func field(_ name: String) -> String? { head.first { $0.name == name }?.value }
}

/// The contents of a GOAWAY frame.
struct GoAway: Equatable {
    var lastStream: UInt32
    var code: ErrorCode
    var debug: [UInt8]
}

/// One connection in the clear by prior knowledge.
final class FrameClient {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    let transport: TestClient
    /// Whether each DATA frame that is read is answered with WINDOW_UPDATE frames.
    var acknowledgesData = true
    /// Whether SETTINGS and PING are acknowledged as they are read.
    var acknowledgesControl = true

    /// All frames that were read, in order.
    private(set) var received: [Frame] = []
    private(set) var streams: [UInt32: StreamAnswer] = [:]
    /// The settings that the server sent.
    private(set) var serverSettings: [UInt16: UInt32] = [:]
    /// The last GOAWAY frame that was read.
    private(set) var goAway: GoAway?
    /// How the connection ended, nil while it has not.
    private(set) var end: StreamEnd?
    /// What could not be decoded of the server's bytes.
    private(set) var faults: [String] = []

    /// The size of the table of the responses' fields that were read so far.
    var tableSize: Int { decoder.tableSize }

    private let decoder = HeaderDecoder()
    private var pending: [UInt8] = []
    private var block: (stream: UInt32, bytes: [UInt8], endsStream: Bool)?

    init(port: UInt16, receiveBuffer: CInt? = nil) {
        transport = TestClient(port: port, receiveBuffer: receiveBuffer)
    }

    // MARK: - Writing

    func write(_ frames: Frame...) { transport.write(frames.flatMap { $0.bytes() }) }
    func write(_ bytes: [UInt8]) { transport.write(bytes) }

    /// Sends a frame as soon as there is room; false once the server has closed, or takes nothing more.
    func writeIfTaken(_ frame: Frame) -> Bool {
        var waiting = pollfd(fd: transport.number, events: Int16(POLLOUT), revents: 0)
        guard poll(&waiting, 1, 10_000) == 1, CInt(waiting.revents) & (POLLERR | POLLHUP) == 0
        else { return false }
        write(frame)
        return true
    }

    /// Sends SETTINGS, and decodes header blocks by the table size in it.
    func writeSettings(_ values: [(UInt16, UInt32)]) {
        for (identifier, value) in values where identifier == Frame.Setting.headerTableSize {
            decoder.setTableSize(value)
        }
        write(.settings(values))
    }

    /// Sends preface and SETTINGS, and reads until each side's settings are acknowledged.
    ///
    /// False if the server does not do its part.
    @discardableResult
    func open(_ settings: [(UInt16, UInt32)] = [], timeout: Duration = .seconds(10)) -> Bool {
        write(Self.preface)
        writeSettings(settings)
        return read(timeout: timeout) { client in
            let settings = client.received.filter { $0.type == Frame.Kind.settings }
            return settings.contains { $0.has(Frame.Flag.acknowledgement) }
                && settings.contains { !$0.has(Frame.Flag.acknowledgement) }
        }
    }

    /// Sends HEADERS, and CONTINUATION where the block is longer than `frameSize`.
    func request(
        _ stream: UInt32, _ fields: [(String, String)], endStream: Bool = true,
        frameSize: Int = 16384
    ) {
        sendBlock(
            stream, HeaderBlock.literal(fields), endStream: endStream, frameSize: frameSize)
    }

    /// Sends a header block as it is in HEADERS and CONTINUATION frames.
    func sendBlock(
        _ stream: UInt32, _ block: [UInt8], endStream: Bool = true, frameSize: Int = 16384
    ) {
        let first = block.prefix(frameSize)
        var rest = block.dropFirst(frameSize)
        write(.headers(stream, Array(first), endStream: endStream, endHeaders: rest.isEmpty))
        while !rest.isEmpty {
            let piece = Array(rest.prefix(frameSize))
            rest = rest.dropFirst(frameSize)
            write(.continuation(stream, piece, endHeaders: rest.isEmpty))
        }
    }

    /// Sends a GET request.
    func get(_ stream: UInt32, _ path: String = "/", _ fields: [(String, String)] = []) {
        request(stream, Self.fields(path: path) + fields)
    }

    /// The pseudo-header fields of a request.
    static func fields(
        _ method: String = "GET", path: String = "/"
    ) -> [(String, String)] {
        [(":method", method), (":scheme", "http"), (":path", path), (":authority", "test")]
    }

    // MARK: - Reading

    /// The next frame; nil at the connection's end or when the time is over.
    func readFrame(timeout: Duration = .seconds(10)) -> Frame? {
        let deadline = ContinuousClock.now + timeout
        while true {
            if let frame = takeFrame() {
                note(frame)
                return frame
            }
            guard end == nil, fill(until: deadline) else { return nil }
        }
    }

    /// Reads frames until the condition holds; false if it does not by the end or in time.
    @discardableResult
    func read(
        timeout: Duration = .seconds(10), until condition: (FrameClient) -> Bool
    ) -> Bool {
        let deadline = ContinuousClock.now + timeout
        while !condition(self) {
            guard readFrame(timeout: deadline - .now) != nil else { return condition(self) }
        }
        return true
    }

    /// Reads until a stream's response is whole or reset, or the connection ends.
    func response(_ stream: UInt32, timeout: Duration = .seconds(10)) -> StreamAnswer {
        read(timeout: timeout) { client in
            guard let answer = client.streams[stream] else { return false }
            return answer.isWhole || answer.reset != nil
        }
        return streams[stream] ?? StreamAnswer()
    }

    /// Sends PING and reads until its acknowledgement; false if it does not arrive.
    ///
    /// All frames sent before have been processed then.
    func roundTrip(timeout: Duration = .seconds(10)) -> Bool {
        pings += 1
        let opaque = [0x70, 0x69, 0x6E, 0x67] + pings.bigEndianBytes
        write(.ping(opaque))
        return read(timeout: timeout) { client in
            client.received.last?.type == Frame.Kind.ping
                && client.received.last?.has(Frame.Flag.acknowledgement) == true
                && client.received.last?.payload == opaque
        }
    }

    private var pings: UInt32 = 0

    /// Reads what is left until the server closes the connection; true once it did.
    @discardableResult
    func readToEnd(timeout: Duration = .seconds(10)) -> Bool {
        read(timeout: timeout) { _ in false }
        return end != nil
    }

    private func takeFrame() -> Frame? {
        guard pending.count >= 9 else { return nil }
        let length = Int(pending[0]) << 16 | Int(pending[1]) << 8 | Int(pending[2])
        guard pending.count >= 9 + length else { return nil }
        let frame = Frame(
            type: pending[3], flags: pending[4], stream: UInt32(bigEndian: pending[5..<9]),
            payload: Array(pending[9..<(9 + length)]))
        pending.removeFirst(9 + length)
        return frame
    }

    /// Waits for bytes; false when the time is over.
    private func fill(until deadline: ContinuousClock.Instant) -> Bool {
        let left = max(Duration.zero, deadline - .now)
        let milliseconds =
            left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000
        var waiting = pollfd(fd: transport.number, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, CInt(clamping: milliseconds)) == 1 else { return false }
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = recv(transport.number, &buffer, buffer.count, 0)
        if count > 0 {
            pending += buffer[..<count]
        } else {
            end = count == 0 ? .clean : .reset
        }
        return true
    }

    /// Stores what a frame contains, and acknowledges it.
    private func note(_ frame: Frame) {
        received.append(frame)
        let payload = frame.payload
        switch frame.type {
        case Frame.Kind.data: noteData(frame)
        case Frame.Kind.headers:
            guard let content = frame.content else { return fault("HEADERS are too short") }
            block = (frame.stream, Array(content), frame.has(Frame.Flag.endStream))
            if frame.has(Frame.Flag.endHeaders) { noteBlock() }
        case Frame.Kind.continuation:
            guard block?.stream == frame.stream else {
                return fault("CONTINUATION without HEADERS")
            }
            block?.bytes += payload
            if frame.has(Frame.Flag.endHeaders) { noteBlock() }
        case Frame.Kind.reset:
            guard payload.count == 4 else { return fault("RST_STREAM has not 4 bytes") }
            streams[frame.stream, default: StreamAnswer()].reset =
                ErrorCode(rawValue: UInt32(bigEndian: payload[...]))
        case Frame.Kind.settings where !frame.has(Frame.Flag.acknowledgement):
            guard payload.count % 6 == 0 else { return fault("SETTINGS are cut") }
            for start in stride(from: 0, to: payload.count, by: 6) {
                let identifier = UInt16(payload[start]) << 8 | UInt16(payload[start + 1])
                serverSettings[identifier] = UInt32(bigEndian: payload[(start + 2)...])
            }
            if acknowledgesControl { write(.settingsAcknowledgement) }
        case Frame.Kind.ping where !frame.has(Frame.Flag.acknowledgement):
            if acknowledgesControl {
                write(
                    Frame(
                        type: Frame.Kind.ping, flags: Frame.Flag.acknowledgement, payload: payload))
            }
        case Frame.Kind.goAway:
            guard payload.count >= 8 else { return fault("GOAWAY is too short") }
            goAway = GoAway(
                lastStream: UInt32(bigEndian: payload[...]),
                code: ErrorCode(rawValue: UInt32(bigEndian: payload[4...])),
                debug: Array(payload[8...]))
        default: break
        }
    }

    private func noteData(_ frame: Frame) {
        guard let content = frame.content else { return fault("DATA is shorter than its padding") }
        streams[frame.stream, default: StreamAnswer()].body += content
        let endsStream = frame.has(Frame.Flag.endStream)
        if endsStream { streams[frame.stream]?.isWhole = true }
        guard acknowledgesData, !frame.payload.isEmpty else { return }
        let count = UInt32(frame.payload.count)
        write(.windowUpdate(0, count))
        if !endsStream { write(.windowUpdate(frame.stream, count)) }
    }

    private func noteBlock() {
        guard let (stream, bytes, endsStream) = block else { return }
        block = nil
        guard let fields = decoder.decode(bytes) else { return fault("a header block is broken") }
        streams[stream, default: StreamAnswer()].blocks.append(fields)
        if endsStream { streams[stream]?.isWhole = true }
    }

    private func fault(_ what: String) { faults.append(what) }
}

extension TestServer {
    /// A client that has not sent its preface yet.
    func frameClient(receiveBuffer: CInt? = nil) -> FrameClient {
        FrameClient(port: port, receiveBuffer: receiveBuffer)
    }
}

// A few requests observed one by one: joiners, ranges, bodies that break.
import CLinux
import Glibc
import Posix

/// One request of a script.
struct TimedRequest {
    let path: String
    /// Seconds after the script's start.
    var start = 0.0
    /// The value of its Range field.
    var range: String?
    /// Stops reading after this many bytes, but keeps the connection open.
    var stopsAfter: Int?
    /// Whether the body's bytes are kept for comparison.
    var keepsBody = false

    init(_ path: String) { self.path = path }

    /// The response.
    struct Answer {
        var status = 0
        var length: Int?
        /// Bytes of the body.
        var bytes = 0
        /// The body, if it was kept.
        var body: [UInt8] = []
        /// Seconds from the request.
        var firstByte = 0.0
        var isChunked = false
        /// Whether the connection or the coding ended properly.
        var hasEnded = false

        /// Whether all of the body arrived, as far as the framing shows.
        var isWhole: Bool { hasEnded && (length == nil || bytes == length) && status / 100 == 2 }
    }

    /// Sends one request and waits for its end, at most `limit` seconds.
    static func one(
        _ request: TimedRequest, to address: SocketAddress, limit: Double = 20
    ) throws -> Answer {
        try run([request], to: address, limit: limit)[0]
    }

    /// Sends each request at its time on a separate connection; blocks until all have ended.
    static func run(
        _ requests: [TimedRequest], to address: SocketAddress, limit: Double = 20
    ) throws -> [Answer] {
        let script = RequestScript(requests, to: address)
        try script.run(limit: limit)
        return script.lanes.map(\.answer)
    }
}

/// A running script; it holds its connections until it is released.
final class RequestScript {
    private let address: SocketAddress
    let lanes: [ScriptLane]
    private let begun = Monotonic.now()
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 64)

    init(_ requests: [TimedRequest], to address: SocketAddress) {
        self.address = address
        lanes = requests.map(ScriptLane.init)
    }

    deinit { buffer.deallocate() }

    /// Runs until every request has ended or stopped; blocks.
    func run(limit: Double) throws {
        while true {
            let now = (Monotonic.now() - begun).inSeconds
            for lane in lanes where lane.state == .waiting && lane.request.start <= now {
                try lane.begin(to: address)
            }
            let open = lanes.filter { $0.state == .open }
            let isWaiting = lanes.contains { $0.state == .waiting }
            guard !open.isEmpty || isWaiting, now < limit else { return }
            var polls = open.map { pollfd(fd: $0.number, events: Int16(POLLIN), revents: 0) }
            guard poll(&polls, nfds_t(polls.count), isWaiting ? 1 : 100) > 0 else { continue }
            for (lane, found) in zip(open, polls) where found.revents != 0 {
                lane.read(into: buffer)
            }
        }
    }
}

/// One request of a script on its connection.
final class ScriptLane {
    enum State { case waiting, open, over }

    let request: TimedRequest
    private(set) var state = State.waiting
    private(set) var answer = TimedRequest.Answer()
    private var connection: OwnedDescriptor?
    private var sentAt = Monotonic.now()
    private var head: [UInt8] = []
    private var chunks = ChunkReader()
    private var isInBody = false

    /// The connection's descriptor while it is open.
    private(set) var number: CInt = -1

    init(_ request: TimedRequest) { self.request = request }

    func begin(to address: SocketAddress) throws {
        let made = try connect(to: address)
        number = made.number
        if request.stopsAfter != nil {
            try setOption(number, SOL_SOCKET, SO_RCVBUF, 16_384)
        }
        var text = "GET \(request.path) HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\n"
        if let range = request.range { text += "Range: bytes=\(range)\r\n" }
        connection = consume made
        state = .open
        sentAt = .now()
        _ = Array((text + "\r\n").utf8).withUnsafeBytes { Posix.send($0, to: number) }
    }

    /// Reads what has arrived.
    func read(into buffer: UnsafeMutableRawBufferPointer) {
        while state == .open {
            let size = request.stopsAfter == nil ? buffer.count : 4_096
            // Calls recv directly: only this code must distinguish a reset from an end.
            let count = recv(number, buffer.baseAddress, size, CInt(MSG_DONTWAIT))
            if count > 0 {
                take(Array(buffer[..<count]))
            } else if count == 0 {
                // Closing ends the body only if neither a length nor the chunked coding frames it.
                let isFramed = answer.length != nil || answer.isChunked
                end(inOrder: isInBody && !isFramed)
            } else if errno == EAGAIN || errno == EINTR {
                return
            } else {
                end(inOrder: false)
            }
        }
    }

    private func take(_ piece: [UInt8]) {
        if answer.firstByte == 0 { answer.firstByte = (Monotonic.now() - sentAt).inSeconds }
        if isInBody { return takeBody(piece[...]) }
        head += piece
        guard let whole = head.withUnsafeBytes({ AnswerHead($0) }) else { return }
        isInBody = true
        answer.status = whole.status
        answer.length = whole.length
        let text = String(decoding: head[..<whole.count], as: UTF8.self)
        answer.isChunked = text.lowercased().contains("\r\ntransfer-encoding: chunked")
        takeBody(head[whole.count...])
    }

    private func takeBody(_ piece: ArraySlice<UInt8>) {
        answer.bytes += answer.isChunked ? chunks.take(piece) : piece.count
        if request.keepsBody { answer.body += piece }
        if answer.bytes == answer.length || chunks.isOver { return end(inOrder: true) }
        if let limit = request.stopsAfter, answer.bytes >= limit { state = .over }
    }

    private func end(inOrder: Bool) {
        answer.hasEnded = inOrder
        state = .over
        connection = nil
        number = -1
    }
}

/// Counts the body bytes of the chunked coding (RFC 9112 section 7.1).
struct ChunkReader {
    private var left = 0
    private var line: [UInt8] = []
    private(set) var isOver = false

    /// The body bytes in a piece of the connection's bytes.
    mutating func take(_ piece: ArraySlice<UInt8>) -> Int {
        var rest = piece
        var count = 0
        while !rest.isEmpty, !isOver {
            if left > 0 {
                let part = min(left, rest.count)
                count += part
                left -= part
                rest = rest.dropFirst(part)
                continue
            }
            line.append(rest.removeFirst())
            guard line.last == 0x0A else { continue }
            let text = String(decoding: line, as: UTF8.self).prefix(while: \.isHexDigit)
            line = []
            guard let size = Int(text, radix: 16) else { continue }
            left = size
            isOver = size == 0
        }
        return count
    }
}

// One connection of the CDN: reads requests and sends answers with the weather's faults.

/// A connection to the CDN; answers its requests in sequence.
final class OriginConnection {
    private let cdn: SimulatedCDN
    private let stream: Stream
    private var input: [UInt8] = []
    private var isBusy = false
    private var isSilent = false

    var isOpen: Bool { stream.isOpen }

    private static let piece = 8_192

    init(_ cdn: SimulatedCDN, _ stream: Stream) {
        self.cdn = cdn
        self.stream = stream
        stream.received = { [weak self] bytes in
            self?.input += bytes
            self?.next()
        }
        // This closure keeps the object alive while the connection is open.
        stream.ended = { [self] in _ = self }
    }

    /// Stops sending without closing the connection.
    func fallSilent() { isSilent = true }

    private func next() {
        guard !isBusy, !isSilent, let request = readRequest() else { return }
        isBusy = true
        let answer = cdn.answer(request)
        cdn.world.step(
            .originAnswered(
                path: request.path, range: request.fields["range"], status: answer.status,
                bytes: answer.body.count))
        cdn.world.note(
            "cdn: \(request.method) \(request.path) \(request.fields["range"] ?? "") "
                + "\(request.fields["if-range"] ?? "") -> \(answer.status) "
                + "\(answer.fields.first { $0.0 == "Content-Range" }?.1 ?? "") \(answer.body.count) "
                + "\(answer.isChunked ? "chunked " : "")\(answer.fields.first { $0.0 == "ETag" }?.1 ?? "")"
        )
        cdn.world.after(answer.delay) { [self] in begin(answer, request) }
    }

    private func readRequest() -> OriginRequest? {
        guard let head = MessageHead(from: &input) else { return nil }
        let words = head.startLine.split(separator: " ")
        guard words.count == 3 else { return nil }
        let fields = Dictionary(head.fields.map { ($0.name, $0.value) }) { $1 }
        return OriginRequest(method: String(words[0]), path: String(words[1]), fields: fields)
    }

    private func begin(_ answer: OriginAnswer, _ request: OriginRequest) {
        guard stream.isOpen, !isSilent else { return }
        var answer = answer
        if let made = answer.made { answer.body = made() }
        switch answer.ending {
        case .noHead: return stream.reset()
        case .garbage:
            stream.send(Array("RTSP/9 what\r\n\r\n".utf8))
            return stream.finish()
        default: break
        }
        var head = "HTTP/1.1 \(answer.status) X\r\n"
        for (name, value) in answer.fields { head += "\(name): \(value)\r\n" }
        let hasBody = request.method != "HEAD" && answer.status != 304
        if answer.isChunked, hasBody {
            head += "Transfer-Encoding: chunked\r\n"
        } else if answer.isUnframed, hasBody {
            head += "Connection: close\r\n"
        } else if answer.status != 304 {
            head += "Content-Length: \(answer.body.count)\r\n"
        }
        if case .closes = answer.ending { head += "Connection: close\r\n" }
        stream.send(Array((head + "\r\n").utf8))
        send(hasBody ? answer : OriginAnswer(status: answer.status), from: 0)
    }

    private func send(_ answer: OriginAnswer, from offset: Int) {
        guard stream.isOpen, !isSilent else { return }
        var end = min(answer.body.count, offset + Self.piece)
        switch answer.ending {
        case .cut(let place) where end >= place:
            end = min(end, place)
            put(answer, offset..<max(offset, end))
            return stream.finish()
        case .reset(let place) where end >= place: return stream.reset()
        case .stall(let place) where end >= place:
            put(answer, offset..<max(offset, min(end, place)))
            return
        default: break
        }
        put(answer, offset..<end)
        guard end == answer.body.count else {
            return cdn.world.after(Int64(end - offset) * World.second / Int64(answer.rate)) {
                [self] in
                send(answer, from: end)
            }
        }
        guard answer.isChunked, answer.pauseAtEnd > 0 else { return finish(answer) }
        cdn.world.after(answer.pauseAtEnd) { [self] in finish(answer) }
    }

    private func finish(_ answer: OriginAnswer) {
        guard stream.isOpen, !isSilent else { return }
        if answer.isChunked { stream.send(Array("0\r\n\r\n".utf8)) }
        if answer.status == 200, let list = answer.list { cdn.listSent[list] = cdn.world.now }
        if case .closes = answer.ending { return stream.finish() }
        if answer.isUnframed { return stream.finish() }
        isBusy = false
        next()
    }

    private func put(_ answer: OriginAnswer, _ range: Range<Int>) {
        guard !range.isEmpty else { return }
        answer.file?.bytesSent += range.count
        if answer.isChunked { stream.send(Array((String(range.count, radix: 16) + "\r\n").utf8)) }
        stream.send(Array(answer.body[range]))
        if answer.isChunked { stream.send([0x0D, 0x0A]) }
    }
}

import Glibc

/// One client connection of the sample CDN, served by one blocking thread.
final class Connection {
    let cdn: FixtureCDN
    let descriptor: Int32
    private let number: Int
    private var input: [UInt8] = []
    /// Whether the shaped link's handshake delay has passed, and the time at which the link will
    /// have sent all bytes of this connection.
    var didShake = false
    var linkFree: Int64 = 0

    init(cdn: FixtureCDN, descriptor: Int32, number: Int) {
        self.cdn = cdn
        self.descriptor = descriptor
        self.number = number
    }

    /// Answers requests until the peer, a fault or `stop()` ends the connection.
    ///
    /// The caller closes it.
    func run() {
        while let head = readHead() {
            guard let request = WireRequest(head: head), let content = request.contentLength else {
                _ = send(Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8)[...])
                return
            }
            guard discard(content), serve(request) else { return }
        }
    }

    // MARK: Reading

    /// The next head without its empty line; nil at the end of the connection.
    private func readHead() -> ArraySlice<UInt8>? {
        var scanned = 0
        while true {
            if let end = headEnd(from: scanned) {
                let head = input[..<end]
                input = Array(input[end...].drop { $0 != 0x0A }.dropFirst())
                return head
            }
            scanned = max(0, input.count - 3)
            guard input.count < 256 * 1024, fill() else { return nil }
        }
    }

    /// Where the head ends: the position of the line end that closes the empty line.
    private func headEnd(from start: Int) -> Int? {
        guard input.count > start else { return nil }
        for index in start..<input.count where input[index] == 0x0A {
            if index >= 1, input[index - 1] == 0x0A { return index }
            if index >= 2, input[index - 1] == 0x0D, input[index - 2] == 0x0A { return index }
        }
        return nil
    }

    private func fill() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        let count = Sockets.receive(descriptor, into: &buffer)
        guard count > 0 else { return false }
        input += buffer[..<count]
        return true
    }

    private func discard(_ count: Int) -> Bool {
        while input.count < count {
            guard input.count < 1 << 20, fill() else { return false }
        }
        input.removeFirst(count)
        return true
    }

    // MARK: Answering

    /// Answers one request; false when the connection must end.
    private func serve(_ request: WireRequest) -> Bool {
        if let answer = cdn.control(request) {
            let bytes = Array(answer.utf8)
            let type = ("Content-Type", "application/json")
            let response = Response(
                status: 200, fields: [type, ("Cache-Control", "no-store")],
                content: .memory(bytes), range: 0..<bytes.count)
            return transmit(response, to: request, Behaviour(), nil)
        }
        let token = cdn.log.begin(request, connection: number)
        let behaviour = cdn.effectiveBehaviour(for: request)
        var finished = false
        defer { cdn.log.end(token, finished: finished) }
        guard waitForLink(), waitForRelease(request) else { return false }
        if let delay = behaviour.firstByteDelay {
            guard Sockets.pause(descriptor, milliseconds: delay) else { return false }
        }
        let path = Behaviour.Rotation.withoutTokens(behaviour.alias ?? request.path)
        if let (stream, name) = cdn.lowLatency(at: path) {
            didFinish = false
            let goesOn = serve(request, from: stream, named: name, behaviour, token)
            finished = didFinish
            return goesOn
        }
        if let stream = cdn.endless(at: path) {
            didFinish = false
            serve(request, from: stream, token)
            finished = didFinish
            return false
        }
        let responder = Responder(request: request, behaviour: behaviour)
        let response = responder.respond(cdn.resource(at: path))
        let goesOn = transmit(response, to: request, behaviour, token)
        finished = didFinish
        return goesOn
    }

    var didFinish = false

    /// Waits while a test holds this request before the head.
    private func waitForRelease(_ request: WireRequest) -> Bool {
        while cdn.isHeld(request) {
            guard Sockets.pause(descriptor, milliseconds: 2) else { return false }
        }
        return true
    }

    /// Waits while a test holds this path at this number of body bytes.
    private func waitForRelease(_ path: String, sent: Int) -> Bool {
        while cdn.isHeld(path, sent: sent) {
            guard Sockets.pause(descriptor, milliseconds: 2) else { return false }
        }
        return true
    }

    /// Sends head and body; false when the connection must end.
    func transmit(
        _ response: Response, to request: WireRequest, _ behaviour: Behaviour,
        _ token: RequestLog.Token?
    ) -> Bool {
        didFinish = false
        let hasBody = request.method != "HEAD" && response.content != nil
        let chunked = behaviour.chunked && request.minorVersion == 1 && response.content != nil
        let byClosing = (behaviour.endByClosing || behaviour.chunked && !chunked) && hasBody
        var keeps = request.keepsAlive && !byClosing && behaviour.lengthError == nil
        if behaviour.resetAfter != nil || behaviour.truncateAfter != nil { keeps = false }
        var head = "HTTP/1.1 \(response.status) \(Reason.of(response.status))\r\n"
        if !response.fields.contains(where: { $0.name == "Date" }) {
            head += "Date: \(DateText.now())\r\n"
        }
        head += "Server: sample-cdn\r\n"
        for field in response.fields { head += "\(field.name): \(field.value)\r\n" }
        if chunked {
            head += "Transfer-Encoding: chunked\r\n"
        } else if !byClosing && response.content != nil {
            let length = response.range.count + (behaviour.lengthError ?? 0)
            head += "Content-Length: \(max(0, length))\r\n"
        }
        if !keeps {
            head += "Connection: close\r\n"
        } else if request.minorVersion == 0 {
            head += "Connection: keep-alive\r\n"
        }
        head += "\r\n"
        if let token {
            cdn.log.answered(token, status: response.status, offset: response.range.lowerBound)
        }
        guard send(Array(head.utf8)[...]) else { return false }
        if hasBody, let content = response.content {
            if let delay = behaviour.bodyDelay {
                guard Sockets.pause(descriptor, milliseconds: delay) else { return false }
            }
            let body = BodyJob(
                path: request.path, content: content, range: response.range, chunked: chunked,
                behaviour: behaviour, token: token)
            guard sendBody(body) else { return false }
        }
        didFinish = true
        return keeps
    }

    /// A body on its way out.
    private struct BodyJob {
        let path: String
        let content: Content
        let range: Range<Int>
        let chunked: Bool
        let behaviour: Behaviour
        let token: RequestLog.Token?
    }

    private func sendBody(_ job: BodyJob) -> Bool {
        let reader = ContentReader(job.content)
        let rate = job.behaviour.rate
        let piece = min(
            rate.map { min(64 * 1024, max(1, $0 / 50)) } ?? 64 * 1024,
            cdn.shaper.shape?.piece ?? 64 * 1024)
        let start = Sockets.now()
        var sent = 0
        while true {
            if let fault = fault(job, at: sent) {
                didFinish = true
                fault()
                return false
            }
            guard waitForRelease(job.path, sent: sent) else { return false }
            guard sent < job.range.count else { break }
            let stop = nextStop(job, after: sent)
            let from = job.range.lowerBound + sent
            let bytes = reader.read(from..<(from + min(piece, stop - sent)))
            guard !bytes.isEmpty, waitForLink(bytes: bytes.count), sendPiece(bytes, job) else {
                return false
            }
            sent += bytes.count
            if let rate {
                let due = start + Int64(Double(sent) / Double(rate) * 1e9)
                let wait = Int((due - Sockets.now() + 999_999) / 1_000_000)
                guard wait <= 0 || Sockets.pause(descriptor, milliseconds: wait) else {
                    return false
                }
            }
        }
        return !job.chunked || send(Array("0\r\n\r\n".utf8)[...])
    }

    /// The next offset where something may be due, so that no piece runs across it.
    private func nextStop(_ job: BodyJob, after sent: Int) -> Int {
        let behaviour = job.behaviour
        let marks = [behaviour.resetAfter, behaviour.truncateAfter, behaviour.stallAfter]
        let held = cdn.holdOffset(job.path)
        return (marks + [held]).compactMap { $0 }.filter { $0 > sent }
            .reduce(job.range.count) { min($0, $1) }
    }

    /// The fault that is due after this many body bytes; nil if none is.
    private func fault(_ job: BodyJob, at sent: Int) -> (() -> Void)? {
        let descriptor = descriptor
        if job.behaviour.resetAfter == sent {
            return {
                Sockets.drain(descriptor)
                Sockets.resetOnClose(descriptor)
            }
        }
        if job.behaviour.truncateAfter == sent { return {} }
        if job.behaviour.stallAfter == sent {
            return { _ = Sockets.pause(descriptor, milliseconds: -1) }
        }
        return nil
    }

    /// Counts a piece, then sends it, so that a client that has read a byte finds it in the
    /// counters.
    private func sendPiece(_ bytes: ArraySlice<UInt8>, _ job: BodyJob) -> Bool {
        if let token = job.token { cdn.log.sent(token, bytes.count) }
        if job.chunked {
            let size = Array("\(String(bytes.count, radix: 16))\r\n".utf8)
            return send((size + bytes + [0x0D, 0x0A])[...])
        }
        let count = Sockets.send(descriptor, bytes)
        if let token = job.token, count < bytes.count { cdn.log.sent(token, count - bytes.count) }
        return count == bytes.count
    }

    func send(_ bytes: ArraySlice<UInt8>) -> Bool {
        Sockets.send(descriptor, bytes) == bytes.count
    }
}

import Glibc

/// Responses of a low-latency stream: blocked playlist reloads, parts sent as they are produced.
extension Connection {
    /// Answers one request under a stream's prefix; false if the connection must be closed.
    func serve(
        _ request: WireRequest, from stream: LowLatencyStream, named name: String,
        _ behaviour: Behaviour, _ token: RequestLog.Token
    ) -> Bool {
        let responder = Responder(request: request, behaviour: behaviour)
        if let status = behaviour.status, status >= 300 {
            return transmit(responder.text(status), to: request, behaviour, token)
        }
        // Three target durations at most (8216bis 6.2.5.2).
        let deadline = Sockets.now() + Int64(stream.targetDuration) * 3_000_000_000
        while true {
            switch stream.answer(name, request.query) {
            case .missing: return transmit(responder.text(404), to: request, behaviour, token)
            case .refused(let status):
                return transmit(responder.text(status), to: request, behaviour, token)
            case .playlist(let text):
                var resource = Resource(Array(text.utf8), contentType: MediaType.of("a.m3u8"))
                resource.lastModified = ""
                return transmit(responder.respond(resource), to: request, behaviour, token)
            case .whole(let content, let range):
                let bytes = Array(ContentReader(content).read(range))
                let resource = Resource(bytes, contentType: MediaType.of("a.ts"))
                return transmit(responder.respond(resource), to: request, behaviour, token)
            case .growing(let segment, let range):
                return grow(request, stream, segment, range, token)
            case .wait:
                guard Sockets.now() < deadline else {
                    return transmit(responder.text(503), to: request, behaviour, token)
                }
                guard Sockets.pause(descriptor, milliseconds: 2) else { return false }
            }
        }
    }

    /// Sends the produced bytes of a part, then the rest as it is produced; starts with the first
    /// byte.
    private func grow(
        _ request: WireRequest, _ stream: LowLatencyStream, _ number: Int, _ range: Range<Int>,
        _ token: RequestLog.Token
    ) -> Bool {
        var job = Growth(stream: stream, number: number, range: range)
        job.choose(request["Range"])
        guard job.isSatisfiable else {
            let responder = Responder(request: request, behaviour: Behaviour())
            return transmit(
                responder.text(416, [("Content-Range", "bytes */\(job.available)")]), to: request,
                Behaviour(), token)
        }
        while job.available <= job.range.lowerBound {
            guard !stream.isEnded, Sockets.pause(descriptor, milliseconds: 2) else { return false }
        }
        var head = "HTTP/1.1 \(job.contentRange == nil ? "200 OK" : "206 Partial Content")\r\n"
        head += "Date: \(DateText.now())\r\nContent-Type: \(MediaType.of("a.ts"))\r\n"
        head += "Accept-Ranges: bytes\r\nTransfer-Encoding: chunked\r\n"
        // The validator of a file changes while it grows.
        head += "ETag: \"s\(number)-\(job.available)\"\r\n"
        if let span = job.contentRange { head += "Content-Range: \(span)\r\n" }
        cdn.log.answered(
            token, status: job.contentRange == nil ? 200 : 206, offset: job.range.lowerBound)
        guard send(Array((head + "\r\n").utf8)[...]), send(job, token) else { return false }
        didFinish = true
        return true
    }

    private func send(_ job: Growth, _ token: RequestLog.Token) -> Bool {
        var offset = job.range.lowerBound
        while offset < job.range.upperBound {
            let end = min(job.available, job.range.upperBound)
            guard end > offset else {
                guard !job.stream.isEnded, Sockets.pause(descriptor, milliseconds: 2) else {
                    return false
                }
                continue
            }
            guard let bytes = job.bytes(offset..<end) else { return false }
            cdn.log.sent(token, bytes.count)
            let size = Array("\(String(bytes.count, radix: 16))\r\n".utf8)
            guard send((size + bytes + [0x0D, 0x0A])[...]) else { return false }
            offset = end
        }
        return send(Array("0\r\n\r\n".utf8)[...])
    }
}

/// A response whose bytes are still being made.
private struct Growth {
    let stream: LowLatencyStream
    let number: Int
    /// Byte range within the segment.
    var range: Range<Int>
    var contentRange: String?
    var isSatisfiable = true

    /// Bytes of the segment produced so far.
    var available: Int { stream.segment(number)?.available ?? 0 }

    func bytes(_ range: Range<Int>) -> ArraySlice<UInt8>? {
        stream.segment(number).map { ContentReader($0.content).read(range) }
    }

    /// Applies a Range field: ranges that are already produced, and the range of the part being
    /// produced, to whose end the response extends if the request names no end (RFC 8673).
    mutating func choose(_ field: String?) {
        guard stream.settings.partsAreRanges, let field, field.hasPrefix("bytes=") else { return }
        let numbers = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 2, let first = Int(numbers[0]) else { return }
        let parts = (0..<stream.settings.partsPerSegment).map {
            stream.range(ofPart: $0, in: number)
        }
        guard let part = parts.first(where: { $0.contains(first) }) else {
            isSatisfiable = false
            return
        }
        if let last = Int(numbers[1]), last < range.upperBound {
            range = first..<(last + 1)
            contentRange = "bytes \(first)-\(last)/*"
        } else {
            range = first..<part.upperBound
            contentRange = "bytes \(first)-9007199254740991/*"
        }
    }
}

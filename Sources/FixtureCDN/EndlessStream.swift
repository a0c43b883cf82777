// A stream over one connection that never ends, as IPTV panels and radio stations send it: every
// viewer gets what is on the air, at its speed, whoever else listens.
import Synchronization

/// One channel of the sample CDN: media that is repeated for ever.
///
/// A request gets no length and, after a burst of what was on the air before it came, the bytes that
/// come now. A test may break its connections off, stop its bytes, or take it off the air.
package final class EndlessStream: Sendable {
    /// How a stream is sent.
    package struct Settings: Sendable {
        package var contentType = "video/mp2t"
        /// Bytes a second on the air.
        package var rate: Int
        /// Bytes that a viewer gets at once.
        package var burst: Int
        /// True for the chunked coding; false ends the body with its connection.
        package var chunked = true
        /// Other fields of the response.
        package var fields: [(name: String, value: String)] = []
        /// The distance of titles, sent to clients that ask for them; nil for none.
        package var titleInterval: Int?
        /// The most connections at a time, nil for any number.
        ///
        /// Others get 403, as from a panel that counts those of an account.
        package var mostConnections: Int?
        /// The length of the unit that bytes are sent in multiples of.
        package var unit = 188

        package init(rate: Int, burst: Int = 0) {
            self.rate = rate
            self.burst = burst
        }
    }

    private struct State {
        /// Connections made before this was last raised end.
        var generation = 0
        var isStalled = false
        var isOff = false
        var endsProperly = false
        var open = 0
    }

    let media: [UInt8]
    package let settings: Settings
    private let begunAt = Sockets.now()
    private let state = Mutex(State())

    package init(_ media: [UInt8], settings: Settings) {
        self.media = media
        self.settings = settings
    }

    /// Connections that receive it now.
    package var openConnections: Int { state.withLock { $0.open } }

    /// Ends all connections in the middle.
    package func breakOff() { state.withLock { $0.generation += 1 } }

    /// Sends nothing from now on, or goes on.
    package func stall(_ isStalled: Bool = true) { state.withLock { $0.isStalled = isStalled } }

    /// Answers 404 and ends all connections; nil of `on` puts it back on the air.
    package func takeOff(_ isOff: Bool = true) {
        state.withLock {
            $0.isOff = isOff
            if isOff { $0.generation += 1 }
        }
    }

    /// Ends the body in good order.
    package func finish() {
        state.withLock {
            $0.endsProperly = true
            $0.generation += 1
        }
    }

    /// Returns the generation of a new connection; nil if it is refused with a status.
    fileprivate func enter() -> (generation: Int?, status: Int) {
        state.withLock {
            if $0.isOff { return (nil, 404) }
            if let most = settings.mostConnections, $0.open >= most { return (nil, 403) }
            $0.open += 1
            return ($0.generation, 200)
        }
    }

    fileprivate func leave() { state.withLock { $0.open -= 1 } }

    fileprivate enum Now { case goOn, stalled, over, finished }

    fileprivate func now(_ generation: Int) -> Now {
        state.withLock {
            guard $0.generation == generation else { return $0.endsProperly ? .finished : .over }
            return $0.isStalled ? .stalled : .goOn
        }
    }

    /// The number of bytes that have been on the air.
    fileprivate var onAir: Int {
        let passed = Double(Sockets.now() - begunAt) / 1e9
        return Int(passed * Double(settings.rate)) / settings.unit * settings.unit
    }

    fileprivate func bytes(_ range: Range<Int>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        while bytes.count < range.count {
            let from = (range.lowerBound + bytes.count) % media.count
            bytes += media[from..<min(media.count, from + range.count - bytes.count)]
        }
        return bytes
    }
}

extension FixtureCDN {
    /// Serves an endless stream under a path; returns it, to be broken off or ended.
    package func endless(_ path: String, _ stream: EndlessStream) -> EndlessStream {
        state.withLock { $0.endless[path] = stream }
        return stream
    }

    func endless(at path: String) -> EndlessStream? { state.withLock { $0.endless[path] } }
}

extension Connection {
    /// Sends a stream until it, its client or its test ends it.
    func serve(
        _ request: WireRequest, from stream: EndlessStream, _ token: RequestLog.Token
    ) {
        let settings = stream.settings
        let (generation, status) = stream.enter()
        cdn.log.answered(token, status: status, offset: 0)
        guard let generation else {
            let text =
                "HTTP/1.1 \(status) Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            _ = send(Array(text.utf8)[...])
            return
        }
        defer { stream.leave() }
        let asksTitles = request["Icy-MetaData"] == "1"
        var head = "HTTP/1.1 200 OK\r\nContent-Type: \(settings.contentType)\r\n"
        for field in settings.fields { head += "\(field.name): \(field.value)\r\n" }
        if asksTitles, let interval = settings.titleInterval {
            head += "icy-metaint: \(interval)\r\n"
        }
        let isChunked = settings.chunked && request.minorVersion == 1
        head += isChunked ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n"
        guard send(Array((head + "\r\n").utf8)[...]), request.method != "HEAD" else { return }
        var place = max(0, stream.onAir - settings.burst)
        while true {
            switch stream.now(generation) {
            case .over: return
            case .finished:
                if isChunked { _ = send(Array("0\r\n\r\n".utf8)[...]) }
                didFinish = true
                return
            case .stalled: break
            case .goOn:
                let end = min(stream.onAir, place + 256 * 1_024)
                if end > place {
                    let bytes = stream.bytes(place..<end)
                    cdn.log.sent(token, bytes.count)
                    let size = Array("\(String(bytes.count, radix: 16))\r\n".utf8)
                    let piece = isChunked ? size + bytes + [0x0D, 0x0A] : bytes
                    guard send(piece[...]) else { return }
                    place = end
                }
            }
            guard Sockets.pause(descriptor, milliseconds: 10) else { return }
        }
    }
}

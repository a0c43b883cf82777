// An origin with seeded random faults, which counts the cost of each player request.
import FuzzSupport
import Glibc
import Synchronization

/// Bodies are `content`; the first folder of a path names the player request that is charged.
package final class MisbehavingOrigin: Sendable {
    /// One kind of response.
    package enum Fault: String, Sendable, CaseIterable {
        case none, cut, cutFromStart, cutChunked, refused, unavailable, busy, missing, closed
        case garbage, redirect, redirectAround, unaskedPart, otherPart, notModified, silent, stalled
        case slow, longHead, manyTrailers, brokenGzip, emptyPart
    }

    package struct Cost: Sendable {
        package var bytes = 0
        package var faults: [Fault] = []
        package var requests: Int { faults.count }
    }

    private struct State {
        /// Each folder has its own random numbers, so that requests of others do not change them.
        var numbers: [String: SeededNumbers] = [:]
        /// Folders with one permanent fault.
        var lasting: [String: Fault] = [:]
        var costs: [String: Cost] = [:]
        /// Folders that are answered without faults and without counting.
        var calm: Set<String> = []
        /// Folders without faults, whose tokens are valid until the next playlist.
        var faultless: Set<String> = []
        /// The currently valid token, by folder.
        var tokens: [String: Int] = [:]
    }

    private let state = Mutex(State())
    private let content: @Sendable (_ path: String) -> [UInt8]
    private let seed: UInt64
    private let listener: WireListener

    package init(seed: UInt64, content: @escaping @Sendable (String) -> [UInt8]) throws {
        self.seed = seed
        self.content = content
        listener = try WireListener()
        try listener.start { self.serve($0) }
    }

    package func url(_ path: String) -> String {
        "http://127.0.0.1:\(listener.port)\(path)"
    }

    package func cost(_ folder: String) -> Cost { state.withLock { $0.costs[folder] ?? Cost() } }

    /// Ends the faults of a folder; the tokens of its playlists are valid from the next one on.
    package func setFaultless(_ folder: String) {
        state.withLock { _ = $0.faultless.insert(folder) }
    }

    /// Starts or stops answering everything below a folder without faults.
    package func setCalm(_ folder: String, _ isCalm: Bool) {
        state.withLock {
            if isCalm { $0.calm.insert(folder) } else { $0.calm.remove(folder) }
        }
    }

    package func stop() { listener.stop() }

    // MARK: Answers

    private func serve(_ descriptor: Int32) -> WireListener.Closing {
        let socket = WireSocket(descriptor: descriptor, name: "origin", transcript: nil)
        while let head = try? socket.readHead() {
            guard (try? answer(head, on: socket)) == true else { break }
        }
        return { socket.close() }
    }

    /// The fault of the next response, and a number below 50,000 for its position.
    private func draw(_ folder: String) -> (Fault, Int) {
        state.withLock { state in
            var name: UInt64 = seed
            for byte in folder.utf8 { name = name &* 31 &+ UInt64(byte) }
            var numbers = state.numbers[folder] ?? SeededNumbers(seed: name)
            if state.numbers[folder] == nil, Bool.random(using: &numbers) {
                state.lasting[folder] = Fault.allCases.randomElement(using: &numbers)
            }
            let fault =
                state.lasting[folder] ?? Fault.allCases.randomElement(using: &numbers) ?? .none
            let place = Int.random(in: 0..<50_000, using: &numbers)
            state.numbers[folder] = numbers
            state.costs[folder, default: Cost()].faults.append(fault)
            return (fault, place)
        }
    }

    /// False if the connection is to be closed.
    private func answer(_ head: WireHead, on socket: WireSocket) throws -> Bool {
        guard let folder = head.path.split(separator: "/").first.map(String.init) else {
            // A request whether the resource exists.
            try socket.send(encodeHead("HTTP/1.1 204 Here", []))
            return true
        }
        let isCalm = state.withLock { $0.calm.contains(folder) }
        let send = { (bytes: [UInt8]) in
            if !isCalm {
                self.state.withLock { $0.costs[folder, default: Cost()].bytes += bytes.count }
            }
            try socket.send(bytes)
        }
        let hasFaults = state.withLock { !isCalm && !$0.faultless.contains(folder) }
        var (fault, drawn) = hasFaults ? draw(folder) : (Fault.none, 0)
        if isTokenDead(head, folder) { fault = .refused }
        let body = withTokens(content(head.path), folder, isCalm: isCalm)
        let place = drawn % max(1, body.count)
        let whole: [WireHead.Field] = [("ETag", "\"one\""), ("Content-Length", "\(body.count)")]
        switch fault {
        case .none:
            try send(Self.proper(head, body))
            return true
        case .cut:
            let answer = Self.proper(head, body)
            try send(Array(answer.prefix(answer.count - min(answer.count / 2, place))))
        case .cutFromStart:
            try send(encodeHead("HTTP/1.1 200 Cut", whole) + body.prefix(place))
        case .cutChunked:
            let chunk = Array("\(String(place, radix: 16))\r\n".utf8)
            try send(
                encodeHead("HTTP/1.1 200 Cut", [("Transfer-Encoding", "chunked")]) + chunk
                    + body.prefix(place / 2))
        case .refused: try send(Self.status(403))
        case .unavailable: try send(Self.status(503))
        case .busy: try send(Self.status(429))
        case .missing: try send(Self.status(404))
        case .closed: break
        case .garbage: try send(Array("SSH-2.0-Something\r\n\r\n".utf8))
        case .redirect, .redirectAround:
            let target = fault == .redirect ? head.path + "x" : head.path
            try send(
                encodeHead("HTTP/1.1 302 On", [("Location", target), ("Content-Length", "0")]))
            return true
        case .unaskedPart, .otherPart, .emptyPart:
            let start = fault == .unaskedPart ? 0 : min(place, body.count - 1)
            let end = max(start, min(body.count - 1, start + place / 2))
            let range = "bytes \(start)-\(end)/\(body.count)"
            let content = fault == .emptyPart ? [] : Array(body[start...end])
            try send(
                encodeHead(
                    "HTTP/1.1 206 Part",
                    [("Content-Range", range), ("Content-Length", "\(content.count)")]) + content)
            return true
        case .notModified:
            try send(encodeHead("HTTP/1.1 304 Same", []))
            return true
        case .silent: _ = socket.waitForClose()
        case .stalled:
            try send(encodeHead("HTTP/1.1 200 Stalled", whole) + body.prefix(place))
            _ = socket.waitForClose()
        case .slow:
            try send(encodeHead("HTTP/1.1 200 Slow", whole))
            for piece in stride(from: 0, to: min(body.count, 10), by: 1) {
                try send([body[piece]])
                usleep(100_000)
            }
        case .longHead:
            let value = String(repeating: "x", count: 200_000)
            try send(encodeHead("HTTP/1.1 200 Long", [("X-Long", value)] + whole))
        case .manyTrailers:
            try send(encodeHead("HTTP/1.1 200 Trailers", [("Transfer-Encoding", "chunked")]))
            try send(Array("1\r\nx\r\n0\r\n".utf8))
            for _ in 0..<400 { try send(Array(String(repeating: "a:b\r\n", count: 200).utf8)) }
        case .brokenGzip:
            try send(
                encodeHead("HTTP/1.1 200 Gzip", whole + [("Content-Encoding", "gzip")]) + body)
            return true
        }
        return false
    }

    // MARK: Tokens

    /// Placeholder in a playlist for the token of its folder.
    package static let token = "TOKEN"

    /// Inserts a new token into a playlist; the previous ones expire.
    private func withTokens(_ body: [UInt8], _ folder: String, isCalm: Bool) -> [UInt8] {
        let mark = Array(Self.token.utf8)
        guard body.starts(with: Array("#EXTM3U".utf8)), body.contains(mark) else { return body }
        let token = state.withLock { state -> Int in
            state.tokens[folder, default: 0] += 1
            return state.tokens[folder] ?? 0
        }
        // Links given while there were no faults have expired when they are requested.
        if isCalm { state.withLock { $0.tokens[folder] = token + 1 } }
        return body.replacing(mark, with: Array("\(token)".utf8))
    }

    private func isTokenDead(_ head: WireHead, _ folder: String) -> Bool {
        guard let token = head.target.split(separator: "token=").dropFirst().first else {
            return false
        }
        return state.withLock { $0.tokens[folder] ?? 0 } != Int(token)
    }

    private static func status(_ code: Int) -> [UInt8] {
        encodeHead("HTTP/1.1 \(code) Fault", [("Content-Length", "0"), ("Connection", "close")])
    }

    /// The response that an origin should give.
    private static func proper(_ head: WireHead, _ body: [UInt8]) -> [UInt8] {
        let tag: WireHead.Field = ("ETag", "\"one\"")
        let bounds = (head["Range"] ?? "").dropFirst("bytes=".count).split(separator: "-")
        guard let first = bounds.first.flatMap({ Int($0) }), first < body.count else {
            let fields = [tag, ("Content-Length", "\(body.count)")]
            return encodeHead("HTTP/1.1 200 OK", fields) + (head.method == "HEAD" ? [] : body)
        }
        let last = min(body.count - 1, bounds.count > 1 ? Int(bounds[1]) ?? .max : .max)
        let part = body[first...max(first, last)]
        let fields = [
            tag, ("Content-Range", "bytes \(first)-\(max(first, last))/\(body.count)"),
            ("Content-Length", "\(part.count)"),
        ]
        return encodeHead("HTTP/1.1 206 Part", fields) + part
    }
}

import Glibc

/// A response to a player, read as slowly and as far as the scenario wants.
package final class PlayerStream {
    private let socket: WireSocket
    private let method: String
    private let giveBack: (WireSocket) -> Void
    private let start = ContinuousClock.now
    private var framing = Framing.none
    private var head: WireHead?
    /// Remaining body bytes of the length or of the current chunk.
    private var left = 0
    private var isEnded = false

    /// The interim responses before the head.
    package private(set) var interims: [WireHead] = []
    /// Whether the request was sent on a reused connection.
    package let isReused: Bool
    /// From the sending of the request to the first byte; nil before that.
    package private(set) var timeToFirstByte: Duration?
    /// Why the body is incomplete; nil while it may be complete.
    package private(set) var broken: String?
    /// The longest time in which this player received no byte.
    package private(set) var longestSilence = Duration.zero

    init(
        _ socket: WireSocket, method: String, reused: Bool,
        giveBack: @escaping (WireSocket) -> Void
    ) {
        self.socket = socket
        self.method = method
        isReused = reused
        self.giveBack = giveBack
    }

    /// Time since the request was sent.
    package var age: Duration { ContinuousClock.now - start }
    /// Whether the whole body has been read, or will not arrive any more.
    package var isDone: Bool { isEnded }

    /// Reads the response head; interim responses are kept in `interims`.
    package func readHead() throws -> WireHead {
        if let head { return head }
        while true {
            if timeToFirstByte == nil, socket.input.isEmpty, try socket.fill() == .data {
                timeToFirstByte = age
                longestSilence = age
            }
            guard let head = try socket.readHead() else {
                throw ScenarioFailure("the connection ended without a response")
            }
            guard head.status / 100 != 1 else {
                interims.append(head)
                continue
            }
            self.head = head
            framing = try Framing.ofResponse(head, to: method)
            switch framing {
            case .none: end()
            case .length(let length):
                left = length
                if length == 0 { end() }
            case .chunked: try nextChunk()
            case .untilClose: left = Int.max
            }
            return head
        }
    }

    /// Reads one interim response.
    package func readInterim() throws -> WireHead {
        guard let head = try socket.readHead(), head.status / 100 == 1 else {
            throw ScenarioFailure("no interim response came")
        }
        interims.append(head)
        return head
    }

    /// Reads exactly `count` body bytes, fewer only at the end of the body.
    ///
    /// With the last byte of a chunk it also reads the size of the next one, and waits for it.
    package func read(_ count: Int) throws -> [UInt8] {
        if head == nil { _ = try readHead() }
        var body: [UInt8] = []
        while body.count < count, !isEnded {
            if socket.input.isEmpty {
                let wanted = min(count - body.count, 64 * 1024)
                guard try fill(most: wanted) else { break }
            }
            let piece = socket.take(min(left, count - body.count))
            body += piece
            if framing != .untilClose { left -= piece.count }
            if left == 0 { framing == .chunked ? try endChunk() : end() }
        }
        return body
    }

    /// Reads to the end of the body, complete or not.
    package func readRest() throws -> [UInt8] { try read(Int.max) }

    /// Reads to the end of the body at about `bytesPerSecond`.
    package func readRest(bytesPerSecond: Int) throws -> [UInt8] {
        let begin = ContinuousClock.now
        let piece = max(1, bytesPerSecond / 50)
        var body: [UInt8] = []
        while !isEnded {
            body += try read(piece)
            let due = begin + .seconds(Double(body.count) / Double(bytesPerSecond))
            let wait = (due - ContinuousClock.now) / .microseconds(1)
            if wait > 0 { usleep(UInt32(wait)) }
        }
        return body
    }

    /// Reads until the peer ends the connection, whether or not it is a response.
    package func readBytes() throws -> [UInt8] {
        while try socket.fill() == .data {}
        return socket.input
    }

    /// Waits until the peer closes the connection; false if it sends more or stays.
    package func waitForClose() -> Bool { socket.waitForClose() }

    /// Sends more bytes on the same connection.
    package func send(_ bytes: some Collection<UInt8>) throws { try socket.send(bytes) }

    /// Closes the connection, possibly in the middle of the body.
    package func close() { socket.close() }

    /// Closes the connection with a TCP reset.
    package func abort() { socket.abort() }

    private func end() {
        isEnded = true
        if broken == nil, framing != .untilClose, let head, head.keepsAlive, socket.descriptor >= 0
        {
            giveBack(socket)
        }
    }

    private func fill(most: Int) throws -> Bool {
        let waitsSince = age
        defer { longestSilence = max(longestSilence, age - waitsSince) }
        switch try socket.fill(most: most) {
        case .data: return true
        case .closed:
            if framing != .untilClose { broken = "closed before the end of the body" }
        case .reset: broken = "reset within the body"
        }
        end()
        return false
    }

    private func line() throws -> String? {
        while true {
            if let index = socket.input.firstIndex(of: 0x0A) {
                let bytes = socket.take(index + 1).dropLast()
                return String(
                    decoding: bytes.last == 0x0D ? bytes.dropLast() : bytes, as: UTF8.self)
            }
            guard try fill(most: 1024) else { return nil }
        }
    }

    private func nextChunk() throws {
        guard let text = try line() else { return }
        guard let size = Int(text.prefix { $0 != ";" && $0 != " " }, radix: 16), size >= 0 else {
            throw ScenarioFailure("no chunk size: \(text)")
        }
        left = size
        guard size == 0 else { return }
        while let trailer = try line() {
            if trailer.isEmpty { return end() }
        }
    }

    private func endChunk() throws {
        guard let text = try line() else { return }
        guard text.isEmpty else { throw ScenarioFailure("no line end behind a chunk: \(text)") }
        try nextChunk()
    }
}

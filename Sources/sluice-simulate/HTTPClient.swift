// A player's side of HTTP/1.1, stricter than real players: any error in a response is a fault.
import CSimulation
import Glibc

/// The response to one request, as far as it was received.
struct PlayerResponse {
    var status = 0
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// True if the body ended as its head announced.
    var isWhole = false

    func first(_ name: String) -> String? {
        fields.first { $0.name == name }?.value
    }
}

/// One connection to the daemon, for requests in sequence.
final class HTTPClient {
    private let world: World
    private let port: UInt16
    private var stream: Stream?
    private var input: [UInt8] = []
    private var response = PlayerResponse()
    private var framing = Framing.head
    private var done: ((PlayerResponse) -> Void)?
    private var request = 0
    private var heard: Int64 = 0
    private var abortAfter: Int?
    private var what = ""
    /// The response to HEAD has the fields of one to GET and no body.
    private var isHead = false
    private(set) var requests = 0
    /// Bytes per second that this player reads.
    var rate: Int?

    private enum Framing {
        case head, length(Int), chunkHead, chunk(Int), trailer, untilClose
    }

    /// The longest time without a byte for a player: it covers several attempts at an origin.
    static let silence: Int64 = 120 * World.second

    init(_ world: World, port: UInt16) {
        self.world = world
        self.port = port
    }

    /// Sends a request; `done` is called once.
    ///
    /// - Parameters:
    ///   - target: path and query.
    ///   - fields: those beside Host.
    ///   - order: method and body of a request other than GET; POST carries the field that the API
    ///     needs.
    ///   - abortAfter: the number of body bytes after which the player disconnects.
    ///   - done: called with the response, complete or broken.
    func get(
        _ target: String, fields: [(String, String)] = [],
        order: (method: String, body: String)? = nil, abortAfter: Int? = nil,
        done: @escaping (PlayerResponse) -> Void
    ) {
        precondition(self.done == nil, "one request at a time")
        self.done = done
        self.abortAfter = abortAfter
        request += 1
        requests += 1
        response = PlayerResponse()
        framing = .head
        input = []
        what = target
        isHead = order?.method == "HEAD"
        heard = world.now
        world.trace.step(
            world.now,
            .requested(target: target, fields: fields, method: order?.method ?? "GET"))
        guard connect() else {
            return world.after(0) { [self] in finish() }
        }
        var lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        if let order, !isHead {
            lines += "Content-Length: \(order.body.utf8.count)\r\nSluice-Request: 1\r\n"
        }
        let head =
            "\(order?.method ?? "GET") \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(lines)\r\n"
        stream?.send(Array((head + (order?.body ?? "")).utf8))
        watchSilence(request)
    }

    var isConnected: Bool { stream?.isOpen == true }

    /// Opens the connection, unless it is open; false if nobody listens.
    func connect() -> Bool {
        if isConnected { return true }
        let descriptor = csim_dial(port)
        guard descriptor >= 0 else { return false }
        let made = Stream(world, descriptor)
        made.readRate = rate
        made.received = { [weak self] bytes in self?.take(bytes) }
        made.ended = { [weak self, weak made] in
            if let made, self?.stream === made { self?.ended() }
        }
        stream = made
        return true
    }

    private func watchSilence(_ number: Int) {
        world.after(heard + Self.silence - world.now) { [weak self] in
            guard let self, done != nil, request == number else { return }
            if world.now - heard >= Self.silence {
                world.fault(
                    .answered,
                    "\(what): no byte for \(Self.silence / World.second) s, status \(response.status), \(response.body.count) bytes"
                )
            } else {
                watchSilence(number)
            }
        }
    }

    private func finish() {
        guard let done else { return }
        self.done = nil
        world.trace.step(
            world.now,
            .answered(
                target: what, status: response.status, bytes: response.body.count,
                isWhole: response.isWhole))
        done(response)
    }

    /// Resets the connection, even in the middle of a response.
    func leave() {
        stream?.reset()
        stream = nil
        finish()
    }

    private func ended() {
        stream = nil
        if case .untilClose = framing { response.isWhole = true }
        finish()
    }

    private func take(_ bytes: ArraySlice<UInt8>) {
        heard = world.now
        guard done != nil else { return world.fault(.lengths, "\(what): bytes after the response") }
        input += bytes
        while step() {}
        if let abortAfter, done != nil, response.body.count >= abortAfter { leave() }
    }

    /// Reads one part of the response; false if more bytes are needed, or at its end.
    private func step() -> Bool {
        guard done != nil else { return false }
        switch framing {
        case .head: return readHead()
        case .length(let count):
            let taken = min(count, input.count)
            response.body += input.prefix(taken)
            input.removeFirst(taken)
            framing = .length(count - taken)
            if count == taken { complete() }
            return false
        case .untilClose:
            response.body += input
            input = []
            return false
        case .chunkHead:
            guard let line = readLine() else { return false }
            guard let count = Int(line.split(separator: ";").first ?? "", radix: 16) else {
                world.fault(.lengths, "\(what): a chunk's size is '\(line)'")
                return false
            }
            framing = count == 0 ? .trailer : .chunk(count)
            return true
        case .chunk(let count):
            guard input.count >= count + 2 else { return false }
            response.body += input.prefix(count)
            input.removeFirst(count + 2)
            framing = .chunkHead
            return true
        case .trailer:
            guard let line = readLine() else { return false }
            if line.isEmpty { complete() }
            return !line.isEmpty
        }
    }

    private func readLine() -> String? {
        guard let end = input.firstIndex(of: 0x0A) else { return nil }
        let line = String(decoding: input[..<end].filter { $0 != 0x0D }, as: UTF8.self)
        input.removeFirst(end + 1)
        return line
    }

    private func readHead() -> Bool {
        guard let end = endOfHead(input) else { return false }
        let text = String(decoding: input[..<end], as: UTF8.self)
        input.removeFirst(end + 4)
        var lines = text.split(separator: "\r\n")
        let status = lines.removeFirst().split(separator: " ")
        guard status.count >= 2, status[0] == "HTTP/1.1", let code = Int(status[1]) else {
            world.fault(.status, "\(what): the status line is '\(text.prefix(80))'")
            return false
        }
        if code < 200 { return true }
        response.status = code
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let value = parts[1].drop { $0 == " " }
            response.fields.append((parts[0].lowercased(), String(value)))
        }
        if code == 204 || code == 304 || isHead {
            complete()
            return false
        }
        if response.first("transfer-encoding")?.lowercased() == "chunked" {
            framing = .chunkHead
        } else if let length = response.first("content-length").flatMap({ Int($0) }) {
            framing = .length(length)
        } else {
            framing = .untilClose
        }
        return true
    }

    private func complete() {
        response.isWhole = true
        if !input.isEmpty {
            world.fault(.lengths, "\(what): \(input.count) bytes after the end of the response")
        }
        if response.first("connection")?.lowercased() == "close" {
            stream?.reset()
            stream = nil
        }
        finish()
    }
}

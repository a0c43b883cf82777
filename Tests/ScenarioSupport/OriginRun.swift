import Glibc

/// Plays the steps of a scripted origin on one connection.
final class OriginRun {
    private let socket: WireSocket
    private let onRequest: (WireHead, [UInt8]) -> Void
    private var cutAfter: Int?
    private var lastMethod = "GET"
    private var resets = false
    /// Whether a step ended the connection.
    private(set) var isOver = false

    init(socket: WireSocket, onRequest: @escaping (WireHead, [UInt8]) -> Void) {
        self.socket = socket
        self.onRequest = onRequest
    }

    /// Closes the connection as the steps say.
    func finish() {
        resets ? socket.abort() : socket.close()
    }

    /// Reads a request with its content; nil if the peer closed instead.
    func nextRequest() throws -> WireHead? {
        guard let head = try socket.readHead() else { return nil }
        let body: [UInt8] =
            switch try Framing.ofRequest(head) {
            case .length(let length): try take(length)
            case .chunked: try takeChunks()
            case .none, .untilClose: []
            }
        lastMethod = head.method
        onRequest(head, body)
        return head
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while socket.input.count < count {
            guard try socket.fill() == .data else { throw ScenarioFailure("request cut short") }
        }
        return socket.take(count)
    }

    private func takeLine() throws -> String {
        while true {
            if let end = socket.input.firstIndex(of: 0x0A) {
                return String(decoding: socket.take(end + 1).dropLast(2), as: UTF8.self)
            }
            guard try socket.fill() == .data else { throw ScenarioFailure("request cut short") }
        }
    }

    private func takeChunks() throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let line = try takeLine()
            guard let size = Int(line, radix: 16) else {
                throw ScenarioFailure("no chunk size: \(line)")
            }
            if size == 0 {
                while try takeLine() != "" {}
                return body
            }
            body += try take(size)
            _ = try takeLine()
        }
    }

    func play(_ steps: [ScriptedOrigin.Step]) throws {
        for step in steps where !isOver { try play(step) }
    }

    private func play(_ step: ScriptedOrigin.Step) throws {
        switch step {
        case .expect(let method, let path): try expect(method, path)
        case .hold(let barrier): try barrier.wait(within: .seconds(60))
        case .respond(let status, let fields, let body): try respond(status, fields, body)
        case .cut(let count): cutAfter = count
        case .send(let bytes): try socket.send(bytes)
        case .stall:
            isOver = true
            _ = socket.waitForClose()
        case .close: isOver = true
        case .reset:
            isOver = true
            resets = true
        }
    }

    private func expect(_ method: String, _ path: String) throws {
        guard let head = try nextRequest() else {
            throw ScenarioFailure("expected \(method) \(path), but the peer closed")
        }
        let got = path.contains("?") ? head.target : head.path
        guard head.method == method, got == path else {
            throw ScenarioFailure("expected \(method) \(path), got \(head.startLine)")
        }
    }

    private func respond(_ status: Int, _ fields: [WireHead.Field], _ body: [UInt8]) throws {
        var fields = fields
        let framing = ["content-length", "transfer-encoding", "connection"]
        let hasNoBody = status == 204 || status == 304
        if !hasNoBody, !fields.contains(where: { framing.contains($0.name.lowercased()) }) {
            fields.append(("Content-Length", "\(body.count)"))
        }
        try socket.send(encodeHead("HTTP/1.1 \(status) Scripted", fields))
        if lastMethod != "HEAD" && !hasNoBody {
            try socket.send(body.prefix(cutAfter ?? Int.max))
        }
        if cutAfter != nil { isOver = true }
        if fields.contains(where: { $0.name.lowercased() == "connection" && $0.value == "close" }) {
            isOver = true
        }
    }
}

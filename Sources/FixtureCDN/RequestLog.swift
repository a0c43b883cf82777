// The requests the sample CDN received and the bytes it sent: the figures that tests assert on.
import Synchronization

/// One request, from its head to the last byte of its response.
package struct LoggedRequest: Sendable {
    package let method: String
    /// As sent.
    package let target: String
    /// The decoded path.
    package let path: String
    package let fields: [(name: String, value: String)]
    /// Number of the connection it came on, from 1.
    package let connection: Int
    /// Monotonic nanoseconds when its head was complete.
    package let startedAt: Int64
    /// 0 until the response head is sent.
    package var status = 0
    /// Offset of the first body byte within the representation.
    package var bodyOffset = 0
    /// Content bytes handed to the kernel so far, without framing.
    package var bodyBytes = 0
    /// Whether the response was sent as intended, faults included; false while it is in progress.
    package var isFinished = false

    /// The first field of that name.
    package subscript(field: String) -> String? {
        fields.first { sameName($0.name, field) }?.value
    }
    package var range: String? { self["Range"] }
    package var host: String? { self["Host"] }
}

/// The log, shared by all connections.
final class RequestLog: Sendable {
    /// Identifies one entry; a token from before a reset is ignored.
    struct Token {
        let index: Int
        let generation: Int
    }

    private struct State {
        var requests: [LoggedRequest] = []
        var generation = 0
        var active = 0
        var peak = 0
    }

    private let state = Mutex(State())

    var requests: [LoggedRequest] { state.withLock { $0.requests } }
    var peak: Int { state.withLock { $0.peak } }
    var active: Int { state.withLock { $0.active } }

    func reset() {
        state.withLock {
            $0.requests = []
            $0.generation += 1
            $0.peak = $0.active
        }
    }

    func begin(_ request: WireRequest, connection: Int) -> Token {
        let entry = LoggedRequest(
            method: request.method, target: request.target, path: request.path,
            fields: request.fields, connection: connection, startedAt: Sockets.now())
        return state.withLock {
            $0.active += 1
            $0.peak = max($0.peak, $0.active)
            $0.requests.append(entry)
            return Token(index: $0.requests.count - 1, generation: $0.generation)
        }
    }

    func answered(_ token: Token, status: Int, offset: Int) {
        update(token) {
            $0.status = status
            $0.bodyOffset = offset
        }
    }

    func sent(_ token: Token, _ count: Int) {
        update(token) { $0.bodyBytes += count }
    }

    func end(_ token: Token, finished: Bool) {
        state.withLock { $0.active -= 1 }
        update(token) { $0.isFinished = finished }
    }

    private func update(_ token: Token, _ change: (inout LoggedRequest) -> Void) {
        state.withLock {
            guard token.generation == $0.generation else { return }
            change(&$0.requests[token.index])
        }
    }
}

extension LoggedRequest {
    /// Whether this request is for `path`, or, when that has a query, for exactly that target.
    func matches(_ wanted: String) -> Bool {
        wanted.contains("?") ? target == wanted : path == wanted
    }

    /// One JSON object in one line.
    var json: String {
        let fields = fields.map { "[\(Self.quoted($0.name)),\(Self.quoted($0.value))]" }
        return "{\"method\":\(Self.quoted(method)),\"target\":\(Self.quoted(target)),"
            + "\"path\":\(Self.quoted(path)),\"status\":\(status),\"range\":"
            + "\(range.map(Self.quoted) ?? "null"),\"offset\":\(bodyOffset),\"bytes\":\(bodyBytes),"
            + "\"finished\":\(isFinished),\"connection\":\(connection),"
            + "\"at\":\(startedAt / 1000),\"fields\":[\(fields.joined(separator: ","))]}"
    }

    private static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}

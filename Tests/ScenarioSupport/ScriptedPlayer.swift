import Glibc

/// A blocking HTTP client for scenarios, with its own HTTP code.
///
/// Each value belongs to one thread; make one for every player. Every wait ends at the deadline.
package final class ScriptedPlayer {
    private let base: String
    private let transcript: Transcript?
    private let limit: Duration
    private var idle: (address: HostPort, socket: WireSocket)?

    /// Whether connections are reused.
    package var keepsAlive = true
    /// Whether changing API requests carry the field that a foreign page cannot send.
    package var provesChanges = true
    /// The receive buffer of new connections in bytes; with small ones a slow reader has an effect
    /// immediately.
    package var receiveBuffer: Int32?

    /// A player of `base`, `http://127.0.0.1:8080` for example; each wait takes at most `deadline`.
    package init(_ base: String, transcript: Transcript? = nil, deadline: Duration = patience) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.transcript = transcript
        limit = deadline
    }

    /// Requests a path of the base or a whole URL and reads the response to its end, complete or
    /// not.
    package func get(
        _ path: String, headers: [WireHead.Field] = [], method: String = "GET",
        body: [UInt8]? = nil
    ) throws -> PlayerResponse {
        let stream = try open(path, headers: headers, method: method, body: body)
        let head = try stream.readHead()
        let body = try stream.readRest()
        return PlayerResponse(
            head: head, body: body, timeToFirstByte: stream.timeToFirstByte ?? .zero,
            duration: stream.age, longestSilence: stream.longestSilence, broken: stream.broken,
            reusedConnection: stream.isReused, interims: stream.interims)
    }

    /// Sends a request and returns its response unread; a body gets its `Content-Length`.
    package func open(
        _ path: String, headers: [WireHead.Field] = [], method: String = "GET",
        body: [UInt8]? = nil
    ) throws -> PlayerStream {
        let url =
            path.hasPrefix("http://") ? path : base + (path.hasPrefix("/") ? path : "/" + path)
        let (address, target) = try HostPort.split(url)
        var fields = headers
        if !headers.contains(where: { $0.name.lowercased() == "host" }) {
            fields.insert(("Host", address.description), at: 0)
        }
        // Changes require it; no other request has it.
        if method == "POST", target.hasPrefix("/api/"), provesChanges {
            fields.append(("Sluice-Request", "1"))
        }
        if !keepsAlive { fields.append(("Connection", "close")) }
        if let body { fields.append(("Content-Length", "\(body.count)")) }
        let request = encodeHead("\(method) \(target) HTTP/1.1", fields) + (body ?? [])
        // A kept connection that the peer has closed meanwhile is not used.
        let kept = takeIdle(address)
        let socket = try kept ?? connect(address)
        let stream = PlayerStream(socket, method: method, reused: kept != nil) { [weak self] in
            if self?.keepsAlive == true { self?.idle = (address, $0) }
        }
        try socket.send(request)
        return stream
    }

    /// Opens a connection to the base and sends bytes as they are.
    package func sendRaw(_ bytes: some Collection<UInt8>, method: String = "GET") throws
        -> PlayerStream
    {
        let socket = try connect(HostPort.split(base).0)
        let stream = PlayerStream(socket, method: method, reused: false) { _ in }
        try socket.send(bytes)
        return stream
    }

    /// Closes the kept connection.
    package func disconnect() { idle = nil }

    private func connect(_ address: HostPort) throws -> WireSocket {
        try WireSocket.connect(
            address, receiveBuffer: receiveBuffer, transcript: transcript, limit: limit)
    }

    private func takeIdle(_ address: HostPort) -> WireSocket? {
        guard keepsAlive, let kept = idle, kept.address == address else { return nil }
        idle = nil
        return kept.socket.isQuiet ? kept.socket : nil
    }
}

/// A response a player has read.
package struct PlayerResponse: Sendable {
    package let head: WireHead
    package let body: [UInt8]
    /// From the sending of the request to the first byte of the response.
    package let timeToFirstByte: Duration
    /// From the sending of the request to the last byte.
    package let duration: Duration
    /// The longest time in which no byte came.
    package let longestSilence: Duration
    /// Why the body is incomplete; nil if it is complete.
    package let broken: String?
    package let reusedConnection: Bool
    /// The interim responses before the head.
    package let interims: [WireHead]

    package var status: Int { head.status }
    package var fields: [WireHead.Field] { head.fields }
    /// Whether the body ended as its framing promised.
    package var complete: Bool { broken == nil }
    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The value of the first field of that name.
    package subscript(name: String) -> String? { head[name] }
}

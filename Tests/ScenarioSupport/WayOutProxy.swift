import Synchronization

/// A forward proxy with its own SOCKS 5 and HTTP code that connects to 127.0.0.1 for any name.
package final class WayOutProxy: Sendable {
    package enum Kind: Sendable {
        case socks5, http
    }

    private struct State {
        var asked: [String] = []
        var refused = 0
    }

    private let kind: Kind
    private let user: String?
    private let password: String
    private let gate: Barrier?
    private let state = Mutex(State())
    private let listener: WireListener

    /// Listens on a free port of 127.0.0.1, and requires credentials if `user` is given.
    ///
    /// With `gate`, it connects to nothing before that is open.
    package init(
        _ kind: Kind, user: String? = nil, password: String = "", gate: Barrier? = nil
    ) throws {
        self.gate = gate
        self.kind = kind
        self.user = user
        self.password = password
        listener = try WireListener()
        try listener.start { self.serve($0) }
    }

    package var port: UInt16 { listener.port }

    /// The `host:port` of each forwarded request.
    package var asked: [String] { state.withLock { $0.asked } }
    /// Requests without the right credentials.
    package var refused: Int { state.withLock { $0.refused } }

    package func stop() { listener.stop() }

    private func serve(_ descriptor: Int32) -> WireListener.Closing {
        let client = Wire(descriptor)
        switch kind {
        case .socks5: serveSocks(client)
        case .http: serveHTTP(client)
        }
        return { client.end() }
    }

    private func connect(_ host: String, _ port: UInt16) -> Wire? {
        state.withLock { $0.asked.append("\(host):\(port)") }
        if let gate { try? gate.wait() }
        return Wire.connect(port: port)
    }

    // MARK: SOCKS 5 (RFC 1928 and 1929)

    private func serveSocks(_ client: Wire) {
        guard let greeting = client.read(2), let methods = client.read(Int(greeting[1])) else {
            return
        }
        let wanted: UInt8 = user == nil ? 0 : 2
        guard methods.contains(wanted) else {
            state.withLock { $0.refused += 1 }
            return client.send([5, 0xFF])
        }
        client.send([5, wanted])
        if let user {
            guard let start = client.read(2), let name = client.read(Int(start[1])),
                let length = client.read(1), let word = client.read(Int(length[0]))
            else { return }
            let isRight = name == Array(user.utf8) && word == Array(password.utf8)
            client.send([1, isRight ? 0 : 1])
            guard isRight else { return state.withLock { $0.refused += 1 } }
        }
        guard let request = client.read(4) else { return }
        var host = ""
        if request[3] == 3 {
            guard let length = client.read(1), let name = client.read(Int(length[0])) else {
                return
            }
            host = String(decoding: name, as: UTF8.self)
        } else {
            guard let address = client.read(request[3] == 1 ? 4 : 16) else { return }
            host = address.map(String.init).joined(separator: ".")
        }
        guard let port = client.read(2) else { return }
        let origin = connect(host, UInt16(port[0]) << 8 | UInt16(port[1]))
        client.send([5, origin == nil ? 5 : 0, 0, 1, 0, 0, 0, 0, 0, 0])
        if let origin { Wire.relay(client, origin) }
    }

    // MARK: HTTP

    private func serveHTTP(_ client: Wire) {
        guard let head = client.readHead(), let line = head.first else { return }
        if let user {
            let pair = base64("\(user):\(password)")
            guard head.contains("Proxy-Authorization: Basic \(pair)") else {
                state.withLock { $0.refused += 1 }
                return client.send(
                    Array(
                        "HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                            .utf8))
            }
        }
        let words = line.split(separator: " ").map(String.init)
        let isTunnel = words[0] == "CONNECT"
        var target = words[1]
        if !isTunnel { target.removeFirst("http://".count) }
        let authority = target.prefix { $0 != "/" }
        let parts = authority.split(separator: ":").map(String.init)
        let origin = connect(parts[0], parts.count > 1 ? UInt16(parts[1]) ?? 0 : 80)
        guard let origin else {
            return client.send(
                Array(
                    "HTTP/1.1 502 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
        }
        if isTunnel {
            client.send(Array("HTTP/1.1 200 X\r\nX-Of-Proxy: 1\r\n\r\n".utf8))
        } else {
            let fields = head.dropFirst().filter {
                !$0.hasPrefix("Proxy-") && !$0.hasPrefix("Connection")
            }
            let lines =
                ["\(words[0]) \(target.dropFirst(authority.count)) HTTP/1.1"] + fields
                + ["Connection: close", "", ""]
            origin.send(Array(lines.joined(separator: "\r\n").utf8))
        }
        Wire.relay(client, origin)
    }
}

/// RFC 4648 section 4.
private func base64(_ text: String) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let bytes = Array(text.utf8)
    return stride(from: 0, to: bytes.count, by: 3).map { start in
        let group = Array(bytes[start..<min(start + 3, bytes.count)])
        let padded = group + [0, 0]
        let number = Int(padded[0]) << 16 | Int(padded[1]) << 8 | Int(padded[2])
        return (0..<4).map {
            $0 <= group.count ? String(alphabet[number >> (18 - 6 * $0) & 63]) : "="
        }.joined()
    }.joined()
}

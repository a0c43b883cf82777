// CLinux includes <sys/socket.h> too; which of the two modules the compiler takes SOCK_STREAM from
// depends on which it loads first.
import CLinux
import Glibc

/// A TCP connection of a scenario with a deadline on every wait, and the bytes read ahead on it.
final class WireSocket {
    /// Why a read ended.
    enum ReadEnd: Equatable {
        case data
        case closed
        case reset
    }

    private(set) var descriptor: Int32
    private(set) var input: [UInt8] = []
    private let transcript: Transcript?
    private let name: String
    private let limit: Duration

    /// Takes ownership of a connected descriptor.
    init(descriptor: Int32, name: String, transcript: Transcript?, limit: Duration = patience) {
        self.descriptor = descriptor
        self.name = name
        self.transcript = transcript
        self.limit = limit
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
    }

    deinit { close() }

    /// Connects to an IPv4 address, with a receive buffer of `receiveBuffer` bytes when given.
    static func connect(
        _ address: HostPort, receiveBuffer: Int32? = nil, transcript: Transcript?, limit: Duration
    ) throws -> WireSocket {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw failure("socket") }
        if var size = receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4) }
        let wire = WireSocket(
            descriptor: descriptor, name: "player", transcript: transcript, limit: limit)
        var name = try address.socketAddress()
        let status = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if status == 0 { return wire }
        guard errno == EINPROGRESS else { throw failure("connect to \(address)") }
        try wire.wait(Int16(POLLOUT), "connect to \(address)")
        var code: Int32 = 0
        var size = socklen_t(4)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
        guard code == 0 else { throw failure("connect to \(address)", code) }
        return wire
    }

    /// Sends everything; throws if the peer has closed or does not accept it in time.
    func send(_ bytes: some Collection<UInt8>) throws {
        transcript?.bytes("\(name) >", bytes)
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                try wait(Int16(POLLOUT), "send")
            } else if errno != EINTR {
                throw WireSocket.failure("\(name) send")
            }
        }
    }

    /// Reads available bytes, at most `most`, into `input`, waiting for the first of them.
    func fill(most: Int = 64 * 1024) throws -> ReadEnd {
        var buffer = [UInt8](repeating: 0, count: most)
        while true {
            let count = buffer.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress, $0.count, 0)
            }
            if count > 0 {
                input += buffer[..<count]
                return .data
            }
            if count == 0 {
                transcript?.note(name, "sees the end of the connection")
                return .closed
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: try wait(Int16(POLLIN), "receive")
            default:
                transcript?.note(name, "receives: \(String(cString: strerror(errno)))")
                return .reset
            }
        }
    }

    /// Whether the connection is open and has received nothing.
    var isQuiet: Bool {
        guard descriptor >= 0, input.isEmpty else { return false }
        var watch = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&watch, 1, 0) == 0
    }

    /// Waits until the peer has sent something or closed, for at most so many milliseconds.
    func waitForPeer(_ milliseconds: Int32) {
        var watch = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&watch, 1, milliseconds)
    }

    /// Takes up to `count` bytes out of `input`.
    func take(_ count: Int) -> [UInt8] {
        let taken = Array(input.prefix(count))
        input.removeFirst(taken.count)
        return taken
    }

    /// Reads a head through its empty line; nil if the connection ends before its first byte.
    func readHead() throws -> WireHead? {
        while true {
            if let end = endOfHead() {
                let head = try WireHead(take(end))
                transcript?.note("\(name) <", head.description)
                return head
            }
            guard input.count < 1 << 20 else { throw ScenarioFailure("head of over 1 MiB") }
            let end = try fill()
            guard end == .data else {
                if input.isEmpty { return nil }
                throw ScenarioFailure(
                    "connection ended (\(end)) within a head", transcript: transcript)
            }
        }
    }

    /// Waits until the peer closes; false if it sends something instead or nothing happens.
    func waitForClose() -> Bool {
        while let end = try? fill() {
            if end != .data { return true }
        }
        return false
    }

    /// Closes the connection.
    func close() {
        guard descriptor >= 0 else { return }
        Glibc.close(descriptor)
        descriptor = -1
    }

    /// Closes with a reset.
    func abort() {
        willReset()
        close()
    }

    /// Makes the next `close` send a reset.
    func willReset() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    private func endOfHead() -> Int? {
        guard input.count >= 4 else { return nil }
        for index in 3..<input.count where input[index] == 0x0A {
            if input[index - 2] == 0x0A && input[index - 1] == 0x0D { return index + 1 }
        }
        return nil
    }

    private func wait(_ events: Int16, _ what: String) throws {
        let milliseconds = Int32(limit / .milliseconds(1))
        var watch = pollfd(fd: descriptor, events: events, revents: 0)
        let end = ContinuousClock.now + limit
        while true {
            let ready = poll(&watch, 1, milliseconds)
            if ready > 0 { return }
            if ready < 0 && errno == EINTR && ContinuousClock.now < end { continue }
            throw ScenarioFailure("\(name): \(what) took over \(limit)", transcript: transcript)
        }
    }

    private static func failure(_ what: String, _ code: Int32 = errno) -> ScenarioFailure {
        ScenarioFailure("\(what): \(String(cString: strerror(code)))")
    }
}

/// An IPv4 address and a port.
struct HostPort: CustomStringConvertible, Hashable {
    let host: String
    let port: UInt16

    var description: String { "\(host):\(port)" }

    func socketAddress() throws -> sockaddr_in {
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        let numeric = host == "localhost" ? "127.0.0.1" : host
        guard inet_pton(AF_INET, numeric, &name.sin_addr) == 1 else {
            throw ScenarioFailure("\(host) is no IPv4 address")
        }
        return name
    }

    /// Splits `http://host:port/path` into where to connect and what to ask for.
    static func split(_ url: String) throws -> (HostPort, String) {
        guard url.hasPrefix("http://") else { throw ScenarioFailure("no http URL: \(url)") }
        let rest = url.dropFirst(7)
        let authority = rest.prefix { $0 != "/" }
        let parts = authority.split(separator: ":")
        let path = rest.dropFirst(authority.count)
        guard let host = parts.first, let port = UInt16(parts.count > 1 ? parts[1] : "80") else {
            throw ScenarioFailure("no host and port: \(url)")
        }
        return (HostPort(host: String(host), port: port), path.isEmpty ? "/" : String(path))
    }
}

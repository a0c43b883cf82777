/// A closed loop of requests over a few keep-alive connections, on one thread with epoll.
import CLinux
import Glibc
import Posix

/// What a load came to.
struct LoadResult {
    var requests = 0
    var bytes = 0
    var seconds = 0.0
    /// Seconds from a request to the first byte of its answer.
    var firstBytes: [Double] = []
    /// Answers other than 200 and 206, and connections that ended early.
    var failures = 0
}

/// Sends `requests` requests for `paths` in turn; each connection has one under way.
final class LoadGenerator {
    private let address: SocketAddress
    private let paths: [String]
    private let epoll: Epoll
    private var lanes: [LoadLane] = []
    private var left = 0
    private var next = 0
    private var result = LoadResult()
    /// False opens a connection for each request, and says so.
    private let keepsAlive: Bool
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 64)

    init(to address: SocketAddress, paths: [String], keepsAlive: Bool = true) throws {
        self.address = address
        self.keepsAlive = keepsAlive
        self.paths = paths
        epoll = try Epoll()
    }

    deinit { buffer.deallocate() }

    /// Runs to the end; blocks.
    func run(requests: Int, connections: Int) throws -> LoadResult {
        result = LoadResult()
        left = requests
        lanes = []
        for index in 0..<min(connections, requests) {
            let lane = LoadLane(try connect(to: address))
            try epoll.add(lane.number, for: .readable, token: UInt64(index))
            lanes.append(lane)
        }
        let start = Monotonic.now()
        for lane in lanes { send(on: lane) }
        while result.requests + result.failures < requests {
            let before = result.requests
            try epoll.wait(timeout: 10_000) { token, _ in read(self.lanes[Int(token)]) }
            if before == result.requests, (Monotonic.now() - start).inSeconds > 300 {
                throw BenchError("no answer within five minutes")
            }
        }
        result.seconds = (Monotonic.now() - start).inSeconds
        lanes = []
        return result
    }

    private func send(on lane: LoadLane) {
        guard left > 0 else { return }
        left -= 1
        let path = paths[next % paths.count]
        next += 1
        lane.begin()
        let close = keepsAlive ? "" : "Connection: close\r\n"
        let text = Array("GET \(path) HTTP/1.1\r\nHost: \(address)\r\n\(close)\r\n".utf8)
        // A request is shorter than an empty socket buffer, so it goes as a whole.
        _ = text.withUnsafeBytes { Posix.send($0, to: lane.number) }
    }

    /// Takes what has arrived for one connection.
    private func read(_ lane: LoadLane) {
        while lane.isBusy {
            switch receive(from: lane.number, into: buffer) {
            case .bytes(let count):
                result.bytes += count
                lane.take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            case .wouldBlock:
                return
            default:
                lane.fail()
            }
            if lane.isBusy { continue }
            lane.isGood ? (result.requests += 1) : (result.failures += 1)
            result.firstBytes.append(lane.firstByte)
            if !keepsAlive { return reopen(lane) }
            if lane.isGood { send(on: lane) }
        }
        if !lane.isGood { epoll.remove(lane.number) }
    }

    /// Goes on with a connection of its own for the next request.
    private func reopen(_ lane: LoadLane) {
        guard let index = lanes.firstIndex(where: { $0 === lane }) else { return }
        epoll.remove(lane.number)
        guard left > 0, let made = try? connect(to: address) else { return }
        let next = LoadLane(made)
        lanes[index] = next
        try? epoll.add(next.number, for: .readable, token: UInt64(index))
        send(on: next)
    }
}

/// One connection and the answer under way on it.
final class LoadLane {
    private let descriptor: OwnedDescriptor
    private var head: [UInt8] = []
    private var bodyLeft: Int?
    private var startedAt = Monotonic.now()
    private(set) var firstByte = 0.0
    private(set) var isBusy = false
    private(set) var isGood = true

    var number: CInt { descriptor.number }

    init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }

    func begin() {
        head.removeAll(keepingCapacity: true)
        bodyLeft = nil
        firstByte = 0
        isBusy = true
        startedAt = Monotonic.now()
    }

    func fail() {
        isGood = false
        isBusy = false
    }

    /// Reads a piece of the answer.
    ///
    /// Only answers with a Content-Length are understood.
    func take(_ piece: UnsafeRawBufferPointer) {
        if firstByte == 0 { firstByte = (Monotonic.now() - startedAt).inSeconds }
        if let bodyLeft {
            self.bodyLeft = bodyLeft - piece.count
        } else {
            head += piece
            guard let end = Self.headEnd(head) else { return }
            let text = String(decoding: head[..<end], as: UTF8.self)
            guard text.hasPrefix("HTTP/1.1 20"), let length = Self.contentLength(text) else {
                return fail()
            }
            bodyLeft = length - (head.count - end)
        }
        if let bodyLeft, bodyLeft <= 0 { isBusy = false }
    }

    static func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        for index in 3..<bytes.count
        where bytes[index] == 0x0A && bytes[index - 2] == 0x0A && bytes[index - 1] == 0x0D {
            return index + 1
        }
        return nil
    }

    static func contentLength(_ head: String) -> Int? {
        for line in head.split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "content-length" else { continue }
            return Int(parts[1].drop { $0 == " " })
        }
        return nil
    }
}

/// Opens a non-blocking connection on loopback, where connecting does not take time.
func connect(to address: SocketAddress) throws -> OwnedDescriptor {
    let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
    let number = socket(address.family, kind, 0)
    guard number >= 0 else { throw SystemError("socket", code: errno) }
    let owned = OwnedDescriptor(taking: number)
    guard address.withRaw({ Glibc.connect(number, $0, $1) }) == 0 else {
        throw SystemError("connect", code: errno, subject: address.description)
    }
    try setOption(number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
    guard fcntl(number, F_SETFL, O_NONBLOCK) == 0 else { throw SystemError("fcntl", code: errno) }
    return owned
}

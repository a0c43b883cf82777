// A closed loop of requests over a few connections, on one thread with epoll.
//
// It shares the machine with the measured program, so it does as little as possible: requests are
// assembled from prebuilt bytes, heads are parsed in place, and bodies are dropped in the kernel.
import CLinux
import Glibc
import Posix

/// How a load is sent.
struct LoadShape {
    var requests = Int.max
    var connections = 1
    /// False opens a new connection for each request and sends `Connection: close`.
    var keepsAlive = true
    /// The seconds after which no further request is sent.
    var seconds = Double.infinity
}

/// Sends requests for `paths` in rotation, one at a time on each connection; blocks.
///
/// - Parameters:
///   - paths: those of the requests.
///   - address: where they are sent.
///   - shape: how many, and how.
/// - Returns: what came of them.
/// - Throws: `BenchError` if any response was wrong, or none came.
func sendLoad(
    _ paths: [String], to address: SocketAddress, _ shape: LoadShape
) throws -> LoadResult {
    let result = try LoadGenerator(to: address, paths: paths, shape).run()
    guard result.failures == 0, result.requests > 0 else {
        throw BenchError(
            "\(result.failures) of \(result.failures + result.requests) requests failed")
    }
    return result
}

/// The result of a load.
struct LoadResult {
    var requests = 0
    var bytes = 0
    var seconds = 0.0
    /// Seconds from a request to the first byte of its response.
    var firstBytes: [Double] = []
    /// Responses other than 200 and 206, and connections that ended early.
    var failures = 0
}

/// One load.
private final class LoadGenerator {
    private let address: SocketAddress
    private let paths: [[UInt8]]
    private let behind: [UInt8]
    private let shape: LoadShape
    private let epoll: Epoll
    private var lanes: [LoadLane] = []
    private var left: Int
    private var next = 0
    private var end: Monotonic?
    private var open = 0
    private var request: [UInt8] = []
    private var result = LoadResult()

    init(to address: SocketAddress, paths: [String], _ shape: LoadShape) throws {
        self.address = address
        self.shape = shape
        left = shape.requests
        self.paths = paths.map { Array("GET \($0)".utf8) }
        let close = shape.keepsAlive ? "" : "Connection: close\r\n"
        behind = Array(" HTTP/1.1\r\nHost: \(address)\r\n\(close)\r\n".utf8)
        epoll = try Epoll()
    }

    /// Sends as many requests as wanted, or fewer if the time is over before; blocks.
    func run() throws -> LoadResult {
        result.firstBytes.reserveCapacity(min(shape.requests, 1 << 17))
        for index in 0..<min(shape.connections, shape.requests) {
            let lane = LoadLane(try connect(to: address), index)
            try epoll.add(lane.number, for: .readable, token: UInt64(index))
            lanes.append(lane)
        }
        let start = Monotonic.now()
        end = shape.seconds.isFinite ? start + Interval(seconds: shape.seconds) : nil
        for lane in lanes { send(on: lane) }
        while open > 0 {
            let before = result.requests
            try epoll.wait(timeout: 10_000) { token, _ in read(self.lanes[Int(token)]) }
            if before == result.requests, (Monotonic.now() - start).inSeconds > 60 {
                throw BenchError("no answer within a minute")
            }
        }
        result.seconds = (Monotonic.now() - start).inSeconds
        return result
    }

    private func send(on lane: LoadLane) {
        guard left > 0 else { return }
        let now = Monotonic.now()
        if let end, now > end {
            left = 0
            return
        }
        left -= 1
        request.removeAll(keepingCapacity: true)
        request += paths[next]
        request += behind
        next = next + 1 == paths.count ? 0 : next + 1
        open += 1
        lane.begin(now)
        // A request is shorter than an empty socket buffer, so one call sends all of it.
        _ = request.withUnsafeBytes { Posix.send($0, to: lane.number) }
    }

    /// Reads what has arrived on one connection.
    private func read(_ lane: LoadLane) {
        while lane.isBusy {
            guard let count = lane.read() else { return }
            result.bytes += count
            if lane.isBusy { continue }
            open -= 1
            lane.isGood ? (result.requests += 1) : (result.failures += 1)
            result.firstBytes.append(lane.firstByte)
            if !shape.keepsAlive { return reopen(lane) }
            if lane.isGood { send(on: lane) }
        }
        if !lane.isGood { epoll.remove(lane.number) }
    }

    /// Opens a new connection for the next request.
    private func reopen(_ lane: LoadLane) {
        epoll.remove(lane.number)
        guard left > 0, let made = try? connect(to: address) else { return }
        let next = LoadLane(made, lane.index)
        lanes[lane.index] = next
        try? epoll.add(next.number, for: .readable, token: UInt64(lane.index))
        send(on: next)
    }
}

/// One connection and its open response.
final class LoadLane {
    private let descriptor: OwnedDescriptor
    let index: Int
    private var head: [UInt8] = []
    private var bodyLeft = 0
    private var isInBody = false
    private var startedAt = Monotonic.now()
    private(set) var firstByte = 0.0
    private(set) var isBusy = false
    private(set) var isGood = true

    var number: CInt { descriptor.number }

    init(_ descriptor: consuming OwnedDescriptor, _ index: Int = 0) {
        self.descriptor = descriptor
        self.index = index
    }

    func begin(_ now: Monotonic = .now()) {
        head.removeAll(keepingCapacity: true)
        isInBody = false
        firstByte = 0
        isBusy = true
        startedAt = now
    }

    private func fail() {
        isGood = false
        isBusy = false
    }

    /// Reads a piece of the response; nil if there is none yet.
    func read() -> Int? {
        let count = isInBody ? dropBody() : readHead()
        if count > 0 { return count }
        if count < 0, errno == EAGAIN || errno == EINTR { return nil }
        fail()
        return 0
    }

    /// Drops bytes of the body without copying them (tcp(7), MSG_TRUNC).
    private func dropBody() -> Int {
        let flags = CInt(MSG_TRUNC) | CInt(MSG_DONTWAIT)
        let count = recv(number, nil, bodyLeft, flags)
        bodyLeft -= max(0, count)
        if bodyLeft == 0 { isBusy = false }
        return count
    }

    /// Reads the head and the part of the body that arrived with it.
    private func readHead() -> Int {
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 16) { buffer in
            let count = recv(number, buffer.baseAddress, 4_096, CInt(MSG_DONTWAIT))
            guard count > 0 else { return count }
            if firstByte == 0 { firstByte = (Monotonic.now() - startedAt).inSeconds }
            let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            if head.isEmpty, let whole = AnswerHead(piece) {
                take(whole, piece.count)
            } else {
                head += piece
                if let whole = head.withUnsafeBytes({ AnswerHead($0) }) { take(whole, head.count) }
            }
            return count
        }
    }

    /// Handles a parsed head; only responses with a Content-Length are supported.
    private func take(_ found: AnswerHead, _ arrived: Int) {
        guard found.status == 200 || found.status == 206, let length = found.length else {
            return fail()
        }
        bodyLeft = length - (arrived - found.count)
        isInBody = true
        if bodyLeft < 0 { return fail() }
        if bodyLeft == 0 { isBusy = false }
    }
}

/// Opens a non-blocking connection on loopback, where connecting takes no time.
func connect(to address: SocketAddress) throws -> OwnedDescriptor {
    let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
    let number = socket(address.family, kind, 0)
    guard number >= 0 else { throw SystemError("socket", code: errno) }
    let owned = OwnedDescriptor(taking: number)
    guard
        address.withRaw({ Glibc.connect(number, $0.assumingMemoryBound(to: sockaddr.self), $1) })
            == 0
    else {
        throw SystemError("connect", code: errno, subject: address.description)
    }
    try setOption(number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
    guard fcntl(number, F_SETFL, O_NONBLOCK) == 0 else { throw SystemError("fcntl", code: errno) }
    return owned
}

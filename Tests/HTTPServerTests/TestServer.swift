// A server with a scripted handler, and a record of what happened on its loops.
import Glibc
import HTTP
import HTTPServer
import Posix
import Reactor
import Synchronization
import Testing

/// The reports of the loops to the test's thread.
final class Record: Sendable {
    private let events = Mutex<[String]>([])
    private let outcomeList = Mutex<[ResponseOutcome]>([])

    func note(_ event: String) { events.withLock { $0.append(event) } }
    func note(_ outcome: ResponseOutcome) { outcomeList.withLock { $0.append(outcome) } }

    func count(_ event: String) -> Int { events.withLock { $0.count { $0 == event } } }
    var outcomes: [ResponseOutcome] { outcomeList.withLock { $0 } }
    var all: [String] { events.withLock { $0 } }
}

typealias Script = @Sendable (RequestHead, [UInt8], Exchange) -> Void

final class ScriptedHandler: RequestHandler {
    private let script: Script
    init(_ script: @escaping Script) { self.script = script }

    func handle(_ request: RequestHead, body: RequestBody?, exchange: Exchange) {
        guard let body else { return script(request, [], exchange) }
        collect(body, [], request, exchange)
    }

    /// Waits until the content is complete; then the script runs.
    private func collect(
        _ body: RequestBody, _ before: [UInt8], _ request: RequestHead, _ exchange: Exchange
    ) {
        var collected = before
        while true {
            switch body.next() {
            case .bytes(let bytes): collected += bytes
            case .wait:
                body.wake = { _ in self.collect(body, collected, request, exchange) }
                return
            case .end: return script(request, collected, exchange)
            case .gone: return
            }
        }
    }
}

/// Passes each request on immediately, its content unread.
final class BareHandler: RequestHandler {
    typealias Script = @Sendable (RequestHead, RequestBody?, Exchange) -> Void

    private let script: Script
    init(_ script: @escaping Script) { self.script = script }

    func handle(_ request: RequestHead, body: RequestBody?, exchange: Exchange) {
        script(request, body, exchange)
    }
}

func ok(_ fields: (String, String)...) -> ResponseHead {
    var head = ResponseHead(status: .ok)
    for (name, value) in fields { head.fields.append(name, value) }
    return head
}

/// Answers with the path.
let echoPath: Script = { request, _, exchange in
    exchange.respond(ok(), body: .bytes(Array(request.path.utf8)))
}

/// Short timeouts, so that tests of them are short.
func shortLimits() -> ServerLimits {
    var limits = ServerLimits()
    limits.headTimeout = .milliseconds(200)
    limits.bodyTimeout = .milliseconds(200)
    limits.idleTimeout = .milliseconds(300)
    limits.writeTimeout = .milliseconds(300)
    limits.lingerTimeout = .milliseconds(200)
    return limits
}

/// Different timeouts, for a clock that the test moves.
func distinctLimits() -> ServerLimits {
    var limits = ServerLimits()
    limits.headTimeout = .seconds(10 as Int64)
    limits.bodyTimeout = .seconds(20 as Int64)
    limits.idleTimeout = .seconds(30 as Int64)
    limits.writeTimeout = .seconds(40 as Int64)
    limits.lingerTimeout = .seconds(5 as Int64)
    return limits
}

final class TestServer: Sendable {
    let server: HTTPServer
    /// A clock that the test moves, if the server was made with one.
    let clock: ManualClock?
    let record: Record

    init(
        loops: Int = 1, limits: ServerLimits = ServerLimits(), clock: ManualClock? = nil,
        isMultipath: Bool = false,
        handler: @escaping @Sendable () -> any RequestHandler
    ) throws {
        let loopback = SocketAddress(bytes: [127, 0, 0, 1], port: 0)
        self.clock = clock
        let record = Record()
        self.record = record
        server = try HTTPServer(
            addresses: [loopback], isMultipath: isMultipath, loops: loops, limits: limits,
            clock: clock.map { .manual($0) } ?? .system,
            onCrowd: { report in
                switch report {
                case .began: record.note("crowd began")
                case .ended(let counts):
                    record.note(
                        "crowd ended: \(counts.closed) closed, \(counts.refused) refused")
                }
            }
        ) { _ in handler() }
    }

    convenience init(
        loops: Int = 1, limits: ServerLimits = ServerLimits(), clock: ManualClock? = nil,
        isMultipath: Bool = false,
        _ script: @escaping Script
    ) throws {
        try self.init(
            loops: loops, limits: limits, clock: clock, isMultipath: isMultipath,
            handler: { ScriptedHandler(script) })
    }

    deinit { server.stop() }

    var port: UInt16 { server.boundAddresses[0].port }

    /// Processor time that the first loop's thread has used.
    func loopTime() -> Interval {
        let found = Mutex<Interval?>(nil)
        server.loopHandles[0].enqueue { _ in
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            let used = Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
            found.withLock { $0 = Interval(nanoseconds: used) }
        }
        _ = eventually { found.withLock { $0 } != nil }
        return found.withLock { $0 } ?? .zero
    }

    /// Waits until the first loop has run the timers that are due by the clock of the test.
    ///
    /// The second job runs in a round that began after the first job, and reads the clock before.
    func passDeadlines() {
        for _ in 0..<2 { _ = loopTime() }
    }

    func client(
        patience: Int = 10, receiveBuffer: CInt? = nil, isMultipath: Bool = false
    ) -> TestClient {
        TestClient(
            port: port, patience: patience, receiveBuffer: receiveBuffer, isMultipath: isMultipath)
    }
}

/// Waits for a condition that another thread fulfils; false if it does not within `limit`.
func eventually(within limit: Duration = .seconds(10), _ condition: () -> Bool) -> Bool {
    let end = ContinuousClock.now + limit
    while !condition() {
        guard ContinuousClock.now < end else { return false }
        usleep(1_000)
    }
    return true
}

/// Bytes that reveal any shift or loss.
func pattern(_ count: Int) -> [UInt8] {
    // An array made this way with no room writes its count into the one empty array that all
    // threads share.
    guard count > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        var state: UInt32 = 0x9E37_79B9
        for index in 0..<count {
            state = state &* 1_664_525 &+ 1_013_904_223
            buffer[index] = UInt8(truncatingIfNeeded: state >> 24)
        }
        filled = count
    }
}

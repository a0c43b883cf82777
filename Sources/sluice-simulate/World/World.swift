// The world around the daemon: it controls time, scheduling and the network.
import CSimulation
import Glibc

/// Receives the events of the world's end of a stream.
protocol StreamEnd: AnyObject {
    /// Bytes or the end of the stream can be read.
    func isReadable()
    /// The stream can be written to, as requested.
    func isWritable()
}

/// One run of one seed.
///
/// Everything in it happens on one thread: the world's actions, and the daemon's fibers between them.
final class World {
    let trace: Trace
    /// The daemon's log.
    private let log: LogLines
    private var random: Seeded
    private var turns: Seeded
    private var timeline = Timeline()
    /// The connections of players to the daemon.
    private(set) lazy var clients = DaemonClients(self, seed: seed)
    private let seed: UInt64
    private let epoll: CInt
    private var ends: [CInt: any StreamEnd] = [:]
    /// Answers a connection attempt of the daemon; set by the network.
    var connect: (_ address: UInt32, _ port: UInt16, _ peer: CInt, _ descriptor: CInt) -> CInt = {
        _, _, _, _ in ECONNREFUSED
    }
    /// The error with which a system call fails, 0 for none; set by the disk's weather.
    var fail: (_ call: String, _ path: String, _ count: Int64) -> CInt = { _, _, _ in 0 }
    /// For how long a sync of a file takes; set by the disk's weather.
    var delay: (_ path: String) -> Int64 = { _ in 0 }
    private(set) var failure: Failure?
    /// When the disk last lost its unsynced data.
    var lastPowerCut: Int64 = -1
    /// When the disk last failed; it may fail at present.
    var lastDiskFault: Int64 = -1_000 * World.second
    var isDiskBad = false

    /// Monotonic nanoseconds at the start: not near zero, where arithmetic errors stay hidden.
    static let start: Int64 = 1_000_000_000_000
    /// 2027-01-15T08:00:00Z.
    static let wallStart: Int64 = 1_800_000_000_000_000_000
    /// The most processor time between two waits of a thread: debug builds are slow, and the longest
    /// text of a run is a playlist of two megabytes, which takes a tenth of a second.
    private static let longestTurn = 3 * second
    static let second: Int64 = 1_000_000_000
    static let millisecond: Int64 = 1_000_000

    init(seed: UInt64, trace: Trace, log: LogLines) {
        self.trace = trace
        self.log = log
        self.seed = seed
        random = Seeded(seed)
        turns = random.branch()
        epoll = epoll_create1(CInt(EPOLL_CLOEXEC))
    }

    /// A generator of numbers for one part of the world.
    func fork() -> Seeded { random.branch() }

    /// Replaces the system by the world.
    func begin() {
        var hooks = csim_world()
        hooks.context = Unmanaged.passUnretained(self).toOpaque()
        hooks.connect = { context, address, port, peer, descriptor in
            World.of(context).connect(address, port, peer, descriptor)
        }
        hooks.fail = { context, name, path, count in
            World.of(context).fail(String(cString: name), String(cString: path), count)
        }
        hooks.delay = { context, path in World.of(context).delay(String(cString: path)) }
        csim_begin(hooks, Self.start, Self.wallStart, random.next())
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> World {
        guard let context else { preconditionFailure("the hooks have the world as their context") }
        return Unmanaged<World>.fromOpaque(context).takeUnretainedValue()
    }

    // MARK: Trace

    func note(_ text: String) { trace.note(now, text) }

    func step(_ kind: RunStep.Kind) { trace.step(now, kind) }

    func mark(_ kind: String) { trace.mark(kind) }

    // MARK: Time

    /// Nanoseconds since the run began.
    var now: Int64 { csim_now() - Self.start }

    /// Runs an action later.
    func after(_ nanoseconds: Int64, _ action: @escaping () -> Void) {
        timeline.add(at: now + max(0, nanoseconds), action)
    }

    // MARK: Streams

    /// Watches a descriptor of the world for reading.
    func watch(_ descriptor: CInt, _ end: any StreamEnd) {
        ends[descriptor] = end
        control(EPOLL_CTL_ADD, descriptor, reads: true, writes: false)
    }

    /// Changes what a descriptor is watched for.
    func rewatch(_ descriptor: CInt, reads: Bool, writes: Bool) {
        control(EPOLL_CTL_MOD, descriptor, reads: reads, writes: writes)
    }

    /// Closes a descriptor of the world.
    func drop(_ descriptor: CInt) {
        ends[descriptor] = nil
        control(EPOLL_CTL_DEL, descriptor, reads: false, writes: false)
        close(descriptor)
    }

    private func control(_ operation: CInt, _ descriptor: CInt, reads: Bool, writes: Bool) {
        var event = epoll_event()
        event.events = (reads ? 0x001 : 0) | (writes ? 0x004 : 0)
        event.data.fd = descriptor
        _ = epoll_ctl(epoll, operation, descriptor, &event)
    }

    /// Handles the events of the world's descriptors.
    ///
    /// In the order of their numbers: the kernel's depends on more than the run, as when all sockets of
    /// a process that was killed are closed.
    private func handleStreams() -> Bool {
        let most = 4_096
        var ready = Array(repeating: epoll_event(), count: most)
        let count = epoll_wait(epoll, &ready, CInt(most), 0)
        guard count > 0 else { return false }
        for event in ready.prefix(Int(count)).sorted(by: { $0.data.fd < $1.data.fd }) {
            let descriptor = event.data.fd
            if event.events & 0x004 != 0 { ends[descriptor]?.isWritable() }
            if event.events & ~0x004 != 0 { ends[descriptor]?.isReadable() }
        }
        return true
    }

    // MARK: Turns

    /// Runs until `end`, until `isDone` returns true, or until an oracle fails.
    func run(until end: Int64, isDone: () -> Bool = { false }) {
        while now < end, failure == nil, !isDone() {
            if let action = timeline.popDue(at: now) {
                action()
                continue
            }
            if handleStreams() { continue }
            if csim_run_one(turns.next()) > 0 {
                for line in log.take() {
                    note(line)
                    checkSecrets(in: line)
                }
                if csim_longest_run() > Self.longestTurn {
                    fault(
                        .heldLoop,
                        "a thread ran for \(csim_longest_run() / Self.millisecond) ms of processor time without waiting"
                    )
                }
                // The time that one turn of an event loop takes.
                csim_set_now(csim_now() + 5_000)
                continue
            }
            let due = timeline.next.map { $0 + Self.start } ?? .max
            let next = min(due, csim_next_deadline(), end + Self.start)
            csim_set_now(max(next, csim_now() + 1))
        }
    }

    /// As above, for a span from now on.
    func run(for span: Int64, isDone: () -> Bool = { false }) {
        run(until: now + span, isDone: isDone)
    }

    // MARK: Verdicts

    /// Checks that the text, of the log or of an error response, contains no token of the origin.
    func checkSecrets(in text: String) {
        var rest = text[...]
        while let place = rest.firstRange(of: "token=") {
            rest = rest[place.upperBound...]
            if let next = rest.first, next != "*" {
                return fault(.secrets, "a token is told: \(text.prefix(200))")
            }
        }
    }

    /// Reports a failed oracle.
    ///
    /// The first one counts.
    func fault(_ oracle: Oracle, _ text: String) {
        guard failure == nil else { return }
        note("FAULT \(oracle.rawValue): \(text)")
        failure = Failure(oracle: oracle, text: text, time: now)
    }
}

/// The checks of a run.
enum Oracle: String {
    case bytes, lengths, status, answered, liveForward, liveFresh, singleFetch, returnsToZero,
        budget
    case durability, offline, secrets, startsAndStops, grows, heldLoop
}

/// The first failure of a run.
struct Failure {
    let oracle: Oracle
    let text: String
    let time: Int64
}

// The life cycle of one HTTP/2 connection as a value: what it waits for, and until when. Pure.
import Posix
import Reactor

/// The phase of a connection.
///
/// | phase | waits for | at most | then |
/// |---|---|---|---|
/// | `opening` | the client's SETTINGS | `headTimeout` | close |
/// | `idle` | a request | `idleTimeout` | GOAWAY, close |
/// | `busy` | the rest of a field block, | `headTimeout` | close |
/// | | or the end of responses and room for their frames | | |
/// | `lingering` | the client's end | `lingerTimeout` without reading | close |
/// | `closed` | | | |
///
/// An idle connection gives back memory after `restDelay`. Streams have their own deadlines; here is
/// only a lower bound of them.
struct HTTP2ConnectionState {
    enum Phase {
        case opening, idle, busy, lingering, closed
    }

    private(set) var phase = Phase.opening
    /// The deadline of the phase.
    private var phaseDeadline: Monotonic
    /// The time at which stream deadlines must be checked next; nil for never.
    private var streamsDue: Monotonic?
    /// When an idle connection gives back memory; nil if it has, or is not idle.
    private var restDue: Monotonic?
    /// The stream of the field block that has begun and not ended; nil for none.
    private var openBlock: Int32?
    /// True once a request has begun.
    private var hasBegun = false

    init(now: Monotonic, limits: ServerLimits) { phaseDeadline = now + limits.headTimeout }

    /// How long a connection is idle before it gives back memory, so that those with a request every
    /// few seconds do so rarely.
    static let restDelay = Interval.seconds(5 as Int64)

    /// True while requests are accepted and answered.
    var isOpen: Bool { phase != .lingering && phase != .closed }

    /// Returns what the connection waits for while it has no request in progress, and since when.
    ///
    /// - Parameter limits: the limits by which the deadline was set.
    /// - Returns: nil while a request is in progress.
    func idleSince(limits: ServerLimits) -> (Idleness, Monotonic)? {
        switch phase {
        case .opening: (Idleness.unused, phaseDeadline - limits.headTimeout)
        case .idle:
            (hasBegun ? Idleness.served : Idleness.unused, phaseDeadline - limits.idleTimeout)
        case .busy, .lingering, .closed: nil
        }
    }

    /// Enters a phase; entering the current one again moves no deadline.
    mutating func enter(_ next: Phase, now: Monotonic, limits: ServerLimits) {
        guard next != phase else { return }
        phase = next
        restDue = next == .idle ? now + Self.restDelay : nil
        switch next {
        case .opening, .busy: phaseDeadline = now + limits.headTimeout
        case .idle: phaseDeadline = now + limits.idleTimeout
        case .lingering: phaseDeadline = now + limits.lingerTimeout
        case .closed: break
        }
    }

    /// Extends lingering, since the client still reads.
    mutating func lingerLonger(now: Monotonic, limits: ServerLimits) {
        phaseDeadline = now + limits.lingerTimeout
    }

    /// Records frames on an idle connection: memory that it has given back is in use again.
    mutating func noteUse(now: Monotonic) {
        if phase == .idle, restDue == nil { restDue = now + Self.restDelay }
    }

    /// True once, when an idle connection is to give back memory.
    mutating func takeRest(now: Monotonic) -> Bool {
        guard let due = restDue, due <= now else { return false }
        restDue = nil
        return true
    }

    /// Starts the deadline of a field block, since a head sent slowly holds a connection.
    mutating func beginBlock(of stream: Int32, now: Monotonic, limits: ServerLimits) {
        openBlock = stream
        hasBegun = true
        if isOpen { enter(.busy, now: now, limits: limits) }
        if phase == .busy { phaseDeadline = now + limits.headTimeout }
    }

    /// Ends the deadline of a stream's field block: it is complete, or the stream was reset.
    ///
    /// - Returns: false if the open block is another stream's, or none is open.
    @discardableResult
    mutating func endBlock(of stream: Int32) -> Bool {
        guard openBlock == stream else { return false }
        openBlock = nil
        return true
    }

    /// Records a stream's deadline.
    mutating func note(_ deadline: Monotonic?) {
        guard let deadline else { return }
        streamsDue = streamsDue.map { min($0, deadline) } ?? deadline
    }

    /// Clears the stream deadlines before all streams are checked and record new ones.
    mutating func forgetStreamDeadlines() { streamsDue = nil }

    /// True if the phase's deadline applies.
    private var isPhaseTimed: Bool { phase != .busy || openBlock != nil }

    /// Returns the earliest deadline; nil for none.
    ///
    /// - Parameter writing: when the client of a full socket must have read.
    /// - Returns: the earliest of all deadlines.
    func deadline(writing: Monotonic?) -> Monotonic? {
        var first = isPhaseTimed ? phaseDeadline : nil
        for next in [writing, streamsDue, restDue] {
            if let next { first = first.map { min($0, next) } ?? next }
        }
        return first
    }

    /// True if the phase's deadline has passed.
    func isOver(now: Monotonic) -> Bool { isPhaseTimed && phaseDeadline <= now }
}

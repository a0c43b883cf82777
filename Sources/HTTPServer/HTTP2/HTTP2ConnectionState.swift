// The life of one HTTP/2 connection as a value: what it waits for, and until when. Pure.
import Posix
import Reactor

/// Where a connection stands.
///
/// | phase | waits for | at most | then |
/// |---|---|---|---|
/// | `opening` | the client's SETTINGS | `headTimeout` | close |
/// | `idle` | a request | `idleTimeout` | GOAWAY, close |
/// | `busy` | the rest of a block of fields | `headTimeout` | close |
/// | `lingering` | the client's end | `lingerTimeout` | close |
/// | `closed` | | | |
///
/// Streams have deadlines of their own; only a bound of the first of them is kept here.
struct HTTP2ConnectionState {
    enum Phase {
        case opening, idle, busy, lingering, closed
    }

    private(set) var phase = Phase.opening
    /// When the phase's own time ends.
    private var phaseDeadline: Monotonic
    /// When the first of the streams may have to be looked at; nil for never.
    private var streamsDue: Monotonic?
    /// Whether a block of fields has begun and not ended.
    private(set) var isInBlock = false

    init(now: Monotonic, limits: ServerLimits) { phaseDeadline = now + limits.headTimeout }

    /// Whether requests are taken and answered.
    var isOpen: Bool { phase != .lingering && phase != .closed }

    /// Goes on to a phase; going to the same one again moves no deadline.
    mutating func enter(_ next: Phase, now: Monotonic, limits: ServerLimits) {
        guard next != phase else { return }
        phase = next
        switch next {
        case .opening, .busy: phaseDeadline = now + limits.headTimeout
        case .idle: phaseDeadline = now + limits.idleTimeout
        case .lingering: phaseDeadline = now + limits.lingerTimeout
        case .closed: break
        }
    }

    /// A block of fields begins: a head sent drop by drop holds a connection.
    mutating func beginBlock(now: Monotonic, limits: ServerLimits) {
        isInBlock = true
        if isOpen { enter(.busy, now: now, limits: limits) }
        if phase == .busy { phaseDeadline = now + limits.headTimeout }
    }

    mutating func endBlock() { isInBlock = false }

    /// A stream has a deadline.
    mutating func note(_ deadline: Monotonic?) {
        guard let deadline else { return }
        streamsDue = streamsDue.map { min($0, deadline) } ?? deadline
    }

    /// All streams are looked at: they note their next deadlines.
    mutating func forgetStreamDeadlines() { streamsDue = nil }

    /// Whether the phase's own time counts.
    private var isPhaseTimed: Bool { phase != .busy || isInBlock }

    /// When something has to be done; nil for never.
    ///
    /// - Parameter writing: When the socket has to have taken something.
    /// - Returns: The first of all times.
    func deadline(writing: Monotonic?) -> Monotonic? {
        var first = isPhaseTimed ? phaseDeadline : nil
        for next in [writing, streamsDue] {
            if let next { first = first.map { min($0, next) } ?? next }
        }
        return first
    }

    /// Whether the phase's own time is over.
    func isOver(now: Monotonic) -> Bool { isPhaseTimed && phaseDeadline <= now }
}

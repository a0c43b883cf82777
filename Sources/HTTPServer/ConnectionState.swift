// The life of one connection as a value: what it waits for, and until when. Pure.
import Posix
import Reactor

/// Where a connection stands.
///
/// | phase | waits for | at most | then |
/// |---|---|---|---|
/// | `fresh` | the first byte | `headTimeout` | close |
/// | `idle` | the next request | `idleTimeout` | close |
/// | `head` | the rest of a head | `headTimeout` | answer 408 |
/// | `handling` | the handler's answer, | | |
/// | | or content that the handler waits for | `bodyTimeout` a step | answer 408 |
/// | `sending` | the source, or room in the socket, | `writeTimeout` without progress | abort |
/// | | or content as above | `bodyTimeout` a step | abort |
/// | `body` | the rest of content that nobody wants | `bodyTimeout` | close |
/// | `lingering` | the client's end | `lingerTimeout` | close |
/// | `closed` | | | |
///
/// The usual way: fresh, head, handling, sending, (body,) idle, head ...; from `sending` to
/// `lingering` where the connection does not survive the response; from any to `closed`.
struct ConnectionState {
    enum Phase {
        case fresh, idle, head, handling, sending, body, lingering, closed
    }

    /// What a passed deadline leads to.
    enum Expiry: Equatable {
        case close, answerTimeout, abort
    }

    private(set) var phase = Phase.fresh
    /// When the phase's own time ends; nil for never.
    private var phaseDeadline: Monotonic?
    /// When content has to have gone a step on; counts only while it is waited for.
    private var contentDeadline: Monotonic?
    /// What was left of that time when content last came; nil where a new step begins.
    private var contentTimeLeft: Interval?
    /// Bytes of content since the step began.
    private var contentBytes = 0
    /// Whether the handler waits for content of the request.
    private(set) var isContentWanted = false
    /// Input came while a response was under way: it waits in the kernel.
    private(set) var isInputPaused = false
    /// The client has shut its sending side; what it sent before still counts.
    private(set) var isPeerClosed = false
    /// The socket had no room, or the turn was over.
    private(set) var isBlocked = false

    /// What content has to bring within `bodyTimeout`, so that drops do not hold a connection.
    static let contentStep = 4096

    /// How long a connection that has not asked for anything may still do so while the server stops.
    static let lastWord = Interval.seconds(1 as Int64)

    init(now: Monotonic, limits: ServerLimits) {
        phaseDeadline = now + limits.headTimeout
    }

    /// When the client's patience with us, or ours with it, ends; nil for never.
    var deadline: Monotonic? {
        guard let contentDeadline else { return phaseDeadline }
        return phaseDeadline.map { min($0, contentDeadline) } ?? contentDeadline
    }

    /// Whether bytes that arrive are looked at now.
    var isReading: Bool {
        switch phase {
        case .fresh, .idle, .head, .body: true
        case .handling, .sending, .lingering, .closed: false
        }
    }

    /// Whether what comes may be the start of HTTP/2: only where a head could begin or go on.
    var mayBecomeHTTP2: Bool { phase == .fresh || phase == .head }

    /// Whether a response is owed or under way.
    var isBusy: Bool { phase == .handling || phase == .sending }

    /// What to ask the kernel for; unchanged over the usual request, so that it costs no call.
    var interest: Readiness {
        var interest = Readiness.nothing
        if !isInputPaused, !isPeerClosed { interest.insert(.readable) }
        if !isPeerClosed { interest.insert(.peerClosed) }
        if isBlocked { interest.insert(.writable) }
        return interest
    }

    /// Brings the end of the phase's time near: the server stops.
    mutating func hasten(now: Monotonic) {
        let near = now + Self.lastWord
        phaseDeadline = phaseDeadline.map { min($0, near) } ?? near
    }

    /// Goes on to a phase; going to the same one again moves no deadline.
    mutating func enter(_ next: Phase, now: Monotonic, limits: ServerLimits) {
        guard next != phase else { return }
        phase = next
        switch next {
        case .fresh, .head: phaseDeadline = now + limits.headTimeout
        case .idle: phaseDeadline = now + limits.idleTimeout
        case .body: phaseDeadline = now + limits.bodyTimeout
        case .lingering: phaseDeadline = now + limits.lingerTimeout
        case .handling, .sending, .closed: phaseDeadline = nil
        }
        if next != .sending { contentEnded() }
        if isReading || next == .lingering { resumeInput() }
    }

    /// Asked anew, the kernel tells again of what has not been read.
    private mutating func resumeInput() {
        isInputPaused = false
        isPeerClosed = false
    }

    // MARK: Content

    /// The handler waits for content: the client has a time for each step of it.
    mutating func wantContent(now: Monotonic, limits: ServerLimits) {
        isContentWanted = true
        resumeInput()
        contentDeadline = now + (contentTimeLeft ?? limits.bodyTimeout)
    }

    /// Content came; until more is wanted, time does not count.
    mutating func contentArrived(_ count: Int, now: Monotonic) {
        contentBytes += count
        contentTimeLeft = contentDeadline.map { $0 - now }
        isContentWanted = false
        contentDeadline = nil
        guard contentBytes >= Self.contentStep else { return }
        contentBytes = 0
        contentTimeLeft = nil
    }

    /// No more content is waited for.
    mutating func contentEnded() {
        isContentWanted = false
        contentDeadline = nil
        contentTimeLeft = nil
        contentBytes = 0
    }

    // MARK: Sending and waiting

    /// Notes input that has to wait, so that a level-triggered event does not spin.
    mutating func pauseInput(peerClosed: Bool) {
        isInputPaused = true
        if peerClosed { isPeerClosed = true }
    }

    /// The socket takes no more now; a turn with progress moves the deadline of a response.
    mutating func block(madeProgress: Bool, now: Monotonic, limits: ServerLimits) {
        isBlocked = true
        guard isBusy else { return }
        if madeProgress || phaseDeadline == nil { phaseDeadline = now + limits.writeTimeout }
    }

    /// All that was to be written is out: no deadline of the socket runs.
    mutating func unblock() {
        guard isBlocked else { return }
        isBlocked = false
        if isBusy { phaseDeadline = nil }
    }

    /// What the passed deadline leads to.
    var expiry: Expiry {
        switch phase {
        case .head: .answerTimeout
        case .handling: contentDeadline == deadline ? .answerTimeout : .abort
        case .sending: .abort
        case .fresh, .idle, .body, .lingering, .closed: .close
        }
    }
}

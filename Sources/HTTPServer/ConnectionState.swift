/// The life of one connection as a value: what it waits for, and until when. Pure.
import Posix
import Reactor

/// Where a connection stands.
///
/// | phase | waits for | at most | then |
/// |---|---|---|---|
/// | `fresh` | the first byte | `headTimeout` | close |
/// | `idle` | the next request | `idleTimeout` | close |
/// | `head` | the rest of a head | `headTimeout` | answer 408 |
/// | `body` | the rest of a request body | `bodyTimeout` | answer 408 |
/// | `handling` | the handler's answer | | |
/// | `sending` | the source, or room in the socket | `writeTimeout` without progress | abort |
/// | `lingering` | the client's end | `lingerTimeout` | close |
/// | `closed` | | | |
///
/// The usual way: fresh, head, (body,) handling, sending, idle, head ...; from `sending` to
/// `lingering` where the connection does not survive the response; from any to `closed`.
struct ConnectionState {
    enum Phase {
        case fresh, idle, head, body, handling, sending, lingering, closed
    }

    /// What a passed deadline leads to.
    enum Expiry: Equatable {
        case close, answerTimeout, abort
    }

    private(set) var phase = Phase.fresh
    /// When the client's patience with us, or ours with it, ends; nil for never.
    private(set) var deadline: Monotonic?
    /// Input came while a response was under way: it waits in the kernel.
    private(set) var isInputPaused = false
    /// The client has shut its sending side; what it sent before still counts.
    private(set) var isPeerClosed = false
    /// The socket had no room, or the turn was over.
    private(set) var isBlocked = false

    init(now: Monotonic, limits: ServerLimits) {
        deadline = now + limits.headTimeout
    }

    /// Whether bytes that arrive are looked at now.
    var isReading: Bool {
        switch phase {
        case .fresh, .idle, .head, .body: true
        case .handling, .sending, .lingering, .closed: false
        }
    }

    /// Whether a response is owed or under way.
    var isBusy: Bool { phase == .handling || phase == .sending }

    /// What to ask the kernel for; unchanged over the usual request, so that it costs no call.
    var interest: Readiness {
        var interest: Readiness = []
        if !isInputPaused, !isPeerClosed { interest.insert(.readable) }
        if !isPeerClosed { interest.insert(.peerClosed) }
        if isBlocked { interest.insert(.writable) }
        return interest
    }

    /// Goes on to a phase; going to the same one again moves no deadline.
    mutating func enter(_ next: Phase, now: Monotonic, limits: ServerLimits) {
        guard next != phase else { return }
        phase = next
        switch next {
        case .fresh, .head: deadline = now + limits.headTimeout
        case .idle: deadline = now + limits.idleTimeout
        case .body: deadline = now + limits.bodyTimeout
        case .lingering: deadline = now + limits.lingerTimeout
        case .handling, .sending, .closed: deadline = nil
        }
        if isReading || next == .lingering {
            // Asked anew, the kernel tells again of what has not been read.
            isInputPaused = false
            isPeerClosed = false
        }
    }

    /// Notes input that has to wait, so that a level-triggered event does not spin.
    mutating func pauseInput(peerClosed: Bool) {
        isInputPaused = true
        if peerClosed { isPeerClosed = true }
    }

    /// The socket takes no more now; a turn with progress moves the deadline of a response.
    mutating func block(madeProgress: Bool, now: Monotonic, limits: ServerLimits) {
        isBlocked = true
        guard isBusy else { return }
        if madeProgress || deadline == nil { deadline = now + limits.writeTimeout }
    }

    /// All that was to be written is out: no deadline of the socket runs.
    mutating func unblock() {
        guard isBlocked else { return }
        isBlocked = false
        if isBusy { deadline = nil }
    }

    /// What the passed deadline leads to.
    var expiry: Expiry {
        switch phase {
        case .head, .body: .answerTimeout
        case .handling, .sending: .abort
        case .fresh, .idle, .lingering, .closed: .close
        }
    }
}

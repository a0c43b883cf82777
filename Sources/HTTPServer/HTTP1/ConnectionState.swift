// The life cycle of one connection as a value: what it waits for, and until when. Pure.
import Posix
import Reactor

/// The phase of a connection.
///
/// | phase | waits for | at most | then |
/// |---|---|---|---|
/// | `fresh` | the first byte | `headTimeout` | close |
/// | `idle` | the next request | `idleTimeout` | close |
/// | `head` | the rest of a head | `headTimeout` | answer 408 |
/// | `handling` | the handler's answer, | | |
/// | | or content that the handler waits for | `bodyTimeout` per step | answer 408 |
/// | `sending` | the source, or room in the socket, | `writeTimeout` without reading | abort |
/// | | or content as above | `bodyTimeout` per step | abort |
/// | `body` | the rest of content to be discarded | `bodyTimeout` | linger |
/// | `lingering` | the client's end | `lingerTimeout` without reading | close |
/// | `closed` | | | |
///
/// Where all places for connections are taken, `idle` and after them `fresh` connections are closed
/// for new ones (`IdleChoice`).
///
/// The usual order: fresh, head, handling, sending, (body,) idle, head ...; from `sending` to
/// `lingering` if the connection closes after the response, or while the rest of its request's
/// content is discarded; from any phase to `closed`.
struct ConnectionState {
    enum Phase {
        case fresh, idle, head, handling, sending, body, lingering, closed
    }

    /// The action for a passed deadline.
    enum Expiry: Equatable {
        case close, linger, answerTimeout, abort
    }

    private(set) var phase = Phase.fresh
    /// The deadline of the phase; nil for none.
    private var phaseDeadline: Monotonic?
    /// The wait for content of the request.
    private var content = ContentStep()
    /// True if input came while a response was in progress; it waits in the kernel.
    private(set) var isInputPaused = false
    /// True if the client shut its sending side; bytes sent before still count.
    private(set) var isPeerClosed = false
    /// True if the socket had no room, or the turn was over.
    private(set) var isBlocked = false
    /// What the client has read at the deadlines since the socket last accepted bytes.
    private var progress = ReadingProgress()

    /// How long a connection without a request may still send one while the server stops.
    static let lastWord = Interval.seconds(1 as Int64)

    init(now: Monotonic, limits: ServerLimits) {
        phaseDeadline = now + limits.headTimeout
    }

    /// The earliest deadline; nil for none.
    var deadline: Monotonic? {
        guard let due = content.deadline else { return phaseDeadline }
        return phaseDeadline.map { min($0, due) } ?? due
    }

    /// True if arriving bytes are read now.
    var isReading: Bool {
        switch phase {
        case .fresh, .idle, .head, .body: true
        case .handling, .sending, .lingering, .closed: false
        }
    }

    /// True if arriving bytes may be the start of HTTP/2: only at or within a head.
    var mayBecomeHTTP2: Bool { phase == .fresh || phase == .head }

    /// Returns what the connection waits for while it has no request in progress, and since when.
    ///
    /// Computed from the deadline, so that idle connections need no memory for it. After
    /// `shortenDeadline` the time is too early.
    ///
    /// - Parameter limits: the limits by which the deadline was set.
    /// - Returns: nil while a request is in progress.
    func idleSince(limits: ServerLimits) -> (Idleness, Monotonic)? {
        switch phase {
        case .fresh: phaseDeadline.map { (Idleness.unused, $0 - limits.headTimeout) }
        case .idle: phaseDeadline.map { (Idleness.served, $0 - limits.idleTimeout) }
        case .head, .handling, .sending, .body, .lingering, .closed: nil
        }
    }

    /// True if a response is due or in progress.
    var isBusy: Bool { phase == .handling || phase == .sending }

    /// The events to watch; unchanged during a usual request, so that it costs no system call.
    var interest: Readiness {
        var interest = Readiness.nothing
        if !isInputPaused, !isPeerClosed { interest.insert(.readable) }
        if !isPeerClosed { interest.insert(.peerClosed) }
        if isBlocked { interest.insert(.writable) }
        return interest
    }

    /// The events to watch while TLS records wait for room in the socket.
    ///
    /// A lingering socket was shut down for writing: it is always writable, and takes no record.
    var interestWithRecords: Readiness {
        phase == .lingering ? interest : interest.union(.writable)
    }

    /// Shortens the phase's deadline, since the server stops.
    mutating func shortenDeadline(now: Monotonic) {
        let near = now + Self.lastWord
        phaseDeadline = phaseDeadline.map { min($0, near) } ?? near
    }

    /// Extends lingering, since the client still reads.
    mutating func lingerLonger(now: Monotonic, limits: ServerLimits) {
        phaseDeadline = now + limits.lingerTimeout
    }

    /// Enters a phase; entering the current one again moves no deadline.
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

    /// Watches for input again; the kernel then reports bytes that were not read.
    private mutating func resumeInput() {
        isInputPaused = false
        isPeerClosed = false
    }

    // MARK: Content

    /// True while the handler waits for content of the request.
    var isContentWanted: Bool { content.isWanted }

    /// Begins to wait for content, and watches for it.
    mutating func wantContent(now: Monotonic, limits: ServerLimits) {
        resumeInput()
        content.want(now: now, limits: limits)
    }

    /// Records arrived content; ends waiting until more is requested.
    mutating func contentArrived(_ count: Int, now: Monotonic) {
        content.add(count)
        content.pause(now: now)
    }

    /// Ends waiting for content.
    mutating func contentEnded() { content.end() }

    // MARK: Sending and waiting

    /// Records input that has to wait, so that a level-triggered event does not spin.
    mutating func pauseInput(peerClosed: Bool) {
        isInputPaused = true
        if peerClosed { isPeerClosed = true }
    }

    /// Records a full socket or the end of a turn; progress extends the deadline of a response.
    mutating func block(madeProgress: Bool, now: Monotonic, limits: ServerLimits) {
        isBlocked = true
        guard isBusy else { return }
        guard madeProgress || phaseDeadline == nil else { return }
        phaseDeadline = now + limits.writeTimeout
        progress = ReadingProgress()
    }

    /// Extends the passed deadline of a full socket if the client has read since the one before.
    ///
    /// - Parameters:
    ///   - unread: the bytes that the client has not acknowledged, and those that wait for room.
    ///   - now: the current time.
    ///   - limits: the limits of the server.
    /// - Returns: false if it has read nothing, or if another deadline has passed.
    mutating func extendWriting(unread: Int, now: Monotonic, limits: ServerLimits) -> Bool {
        guard let due = phaseDeadline, due <= now, content.deadline.map({ $0 > now }) ?? true,
            progress.hasRead(unread)
        else { return false }
        phaseDeadline = now + limits.writeTimeout
        return true
    }

    /// Records that all output is written, and clears the write deadline.
    mutating func unblock() {
        guard isBlocked else { return }
        isBlocked = false
        if isBusy { phaseDeadline = nil }
    }

    /// The action for the passed deadline.
    var expiry: Expiry {
        switch phase {
        case .head: .answerTimeout
        case .handling: content.deadline == deadline ? .answerTimeout : .abort
        case .sending: .abort
        case .body: .linger
        case .fresh, .idle, .lingering, .closed: .close
        }
    }
}

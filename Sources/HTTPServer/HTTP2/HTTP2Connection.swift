// One client connection in HTTP/2: its socket, its time and its streams.
import CNGHTTP2
import HTTP
import Posix
import Reactor
import TLS

/// One connection (RFC 9113), on one loop.
///
/// nghttp2 keeps the protocol: framing, HPACK, flow control, the order of streams by RFC 9218. Here are
/// the socket, deadlines and what a client may ask of us; requests and responses are in `HTTP2Stream`,
/// what nghttp2 calls in `HTTP2Session`.
///
/// Turns: bytes that came go into the session, which opens and ends streams; then frames are collected
/// and written until the session has none, the socket is full or the turn's budget is used up. What
/// happens within either is taken up at its end, so that the session is never entered twice.
final class HTTP2Connection: ReadinessHandler {
    let server: ServerLoop
    let peer: SocketAddress?
    let tls: TLSSession?
    private let number: CInt
    private var socket: OwnedDescriptor?
    var session: HTTP2Session?
    var streams: [Int32: HTTP2Stream] = [:]
    /// Streams that the session has closed and whose exchanges have not been told.
    var over: [(stream: HTTP2Stream, ending: ResponseOutcome.Ending)] = []
    /// Streams whose requests are whole and have not been handed over.
    var arrived: [HTTP2Stream] = []
    /// Streams that are answered although their requests are not whole.
    var unread: [Int32] = []
    /// The fields of the request that is arriving.
    var block: HeaderBlock?
    var allowance: FrameAllowance
    /// Where the turn under way collects frames.
    private(set) var output: FrameOutput?

    var state: HTTP2ConnectionState
    private var sender: FrameSender
    private var isInside = false
    private var mustPump = false
    private var isTurnOver = false
    private var lingered = 0

    private var registration: Registration?
    private var watched = Readiness.nothing
    private var timer: TimerID?
    private var timerDue = Monotonic(nanoseconds: 0)

    /// Requests that one client may have open at once.
    static let mostStreams: UInt32 = 128

    /// What every client sends first (RFC 9113 section 3.4).
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// So many bytes of it tell it from every method of HTTP/1.1.
    static let telling = 4

    /// Whether bytes can only be the start of the preface: no method of HTTP/1.1 begins like it.
    static func isPreface(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= telling, bytes[0] == preface[0], bytes[1] == preface[1] else {
            return false
        }
        for index in 2..<min(bytes.count, preface.count) where bytes[index] != preface[index] {
            return false
        }
        return true
    }

    /// Takes over a socket; `begin` comes next.
    ///
    /// - Returns: Nil where memory is short.
    init?(
        _ socket: consuming OwnedDescriptor, peer: SocketAddress?, tls: TLSSession?,
        on server: ServerLoop
    ) {
        self.server = server
        self.peer = peer
        self.tls = tls
        number = socket.number
        sender = FrameSender(to: socket.number, through: tls)
        self.socket = consume socket
        allowance = FrameAllowance(now: server.loop.now)
        state = HTTP2ConnectionState(now: server.loop.now, limits: server.limits)
        guard let session = HTTP2Session(for: self) else { return nil }
        self.session = session
    }

    /// Takes up the first bytes: those that were held, and those that lie in the loop's buffer.
    func begin(after held: [UInt8], _ count: Int) {
        if !held.isEmpty { _ = session?.receive(held.span) }
        takeUp(count)
        pump()
        settle()
    }

    // MARK: Reading

    func ready(_ readiness: Readiness, on loop: EventLoop) {
        guard readiness.isDisjoint(with: .broken) else { return close(.aborted) }
        if state.phase == .lingering { return discardInput() }
        if !readiness.isDisjoint(with: .input) { read() }
        pump()
        settle()
    }

    private func receive() -> ReadOutcome {
        guard let tls else { return server.receive(from: number) }
        return server.receive(from: number, through: tls)
    }

    private func read() {
        switch receive() {
        case .bytes(let count): takeUp(count)
        case .wouldBlock: break
        case .end: close(.aborted)
        }
    }

    /// Gives the session bytes, then hands over what they brought.
    private func takeUp(_ count: Int) {
        guard let session else { return }
        isInside = true
        let buffer = server.input
        let isValid = session.receive(buffer.span.extracting(0..<count))
        isInside = false
        if !isValid { session.terminate(NGHTTP2_ENHANCE_YOUR_CALM) }
        finishOver()
        let requests = arrived
        arrived = []
        for stream in requests where streams[stream.id] === stream { open(stream) }
        isInside = true
        for stream in streams.values where stream.content.hasNews { stream.contentArrived() }
        isInside = false
    }

    /// Reads and forgets, so that the last frames are not destroyed on their way.
    private func discardInput() {
        while state.phase == .lingering {
            switch receive() {
            case .bytes(let count):
                lingered += count
                if lingered > server.limits.lingerBytes { close(.complete) }
            case .wouldBlock: return
            case .end: close(.complete)
            }
        }
    }

    func runTurn() {
        if isInside {
            mustPump = true
            return
        }
        pump()
        settle()
    }

    private func open(_ stream: HTTP2Stream) {
        isInside = true
        stream.open()
        isInside = false
    }

    // MARK: Writing

    /// Writes frames until there are none, the socket is full or the turn is over.
    private func pump() {
        guard !isInside, state.isOpen, let session else { return }
        isInside = true
        isTurnOver = false
        let frames = server.takeFrames()
        output = frames
        var budget = server.limits.roundBytes
        repeat {
            mustPump = false
            guard flush(nil) else { break }
            let isValid = session.collect(into: frames)
            resetUnread()
            guard frames.count > 0 else {
                if !isValid { close(.broken) }
                continue
            }
            budget -= frames.count
            let isOut = flush(frames)
            frames.removeAll()
            guard isOut else { break }
            isTurnOver = budget <= 0
            mustPump = !isTurnOver
        } while mustPump && state.phase != .closed
        output = nil
        server.giveBack(frames)
        isInside = false
        finishOver()
        endIfDone()
    }

    /// Sends what waits and frames after it; false where not all of it went.
    private func flush(_ frames: FrameOutput?) -> Bool {
        let now = server.loop.now
        switch sender.send(frames?.bytes, now: now, patience: server.limits.writeTimeout) {
        case .bytes: return true
        case .wouldBlock: return false
        case .closed:
            close(.aborted)
            return false
        }
    }

    /// Content of a response went into a frame.
    func noteContent(_ count: Int) { allowance.noteContent(count) }

    /// The last of a response went into a frame; content of its request that has not come by then is
    /// not wanted any more (RFC 9113 section 8.1).
    func responseEnded(_ stream: HTTP2Stream) {
        if !stream.content.isEnded { unread.append(stream.id) }
    }

    private func resetUnread() {
        guard !unread.isEmpty else { return }
        for id in unread where streams[id] != nil { session?.reset(id, NGHTTP2_NO_ERROR) }
        unread = []
        mustPump = true
    }

    // MARK: Ends

    /// Tells exchanges that their streams are over; those that are whole once the kernel has all.
    private func finishOver() {
        guard !over.isEmpty else { return }
        let waits = sender.hasUnsent
        let ended = over
        over = ended.filter { waits && $0.ending == .complete }
        isInside = true
        for (stream, ending) in ended where !(waits && ending == .complete) { stream.end(ending) }
        isInside = false
        if mustPump { pump() }
    }

    /// Goes idle, or ends where there is nothing more to say.
    private func endIfDone() {
        guard state.isOpen, let session else { return }
        if session.isOver, !sender.hasUnsent { return linger() }
        guard streams.isEmpty, state.phase == .busy else { return }
        if server.isDraining, !sender.hasUnsent { return linger() }
        enter(.idle)
    }

    private func linger() {
        tls?.sendEnd(to: number)
        shutdownWrites(number)
        enter(.lingering)
        endStreams(.aborted)
        settle()
    }

    /// Ends the connection now, and its streams with it.
    func close(_ ending: ResponseOutcome.Ending) {
        guard state.phase != .closed else { return }
        enter(.closed)
        if let timer { server.loop.cancel(timer) }
        timer = nil
        if let registration { server.loop.cancel(registration, isClosing: true) }
        registration = nil
        if !streams.isEmpty { resetOnClose(number) } else { tls?.sendEnd(to: number) }
        socket = nil
        server.forget(self)
        endStreams(ending)
        // The session may be in the middle of a call: it goes with its last holder.
        session = nil
        sender.forget()
    }

    private func endStreams(_ ending: ResponseOutcome.Ending) {
        let open = streams
        let ended = over
        streams = [:]
        over = []
        arrived = []
        for (stream, ending) in ended { stream.end(ending) }
        for stream in open.values { stream.end(ending) }
    }

    /// Closes if nothing has been asked; requests under way are still answered.
    func drain() {
        switch state.phase {
        case .opening, .idle, .busy:
            session?.goAway()
            runTurn()
            if state.phase == .idle || state.phase == .opening { linger() }
        case .lingering, .closed: break
        }
    }

    // MARK: Time

    func enter(_ next: HTTP2ConnectionState.Phase) {
        state.enter(next, now: server.loop.now, limits: server.limits)
    }

    /// Brings what the kernel watches and the timer into line with the state.
    private func settle() {
        guard state.phase != .closed else { return }
        var interest: Readiness = [.readable, .peerClosed]
        // A socket that was shut for writing is always writable.
        if state.isOpen, sender.hasUnsent || isTurnOver { interest.insert(.writable) }
        do throws(SystemError) {
            if let registration {
                if interest != watched { try server.loop.update(registration, for: interest) }
            } else {
                registration = try server.loop.watch(number, for: interest, handler: self)
            }
            watched = interest
        } catch {
            return close(.aborted)
        }
        armTimer()
    }

    private var deadline: Monotonic? { state.deadline(writing: sender.deadline) }

    private func armTimer() {
        guard let deadline else { return }
        if let timer {
            if timerDue <= deadline { return }
            server.loop.cancel(timer)
        }
        timerDue = deadline
        timer = server.loop.schedule(after: deadline - server.loop.now) { _ in self.timerFired() }
    }

    private func timerFired() {
        timer = nil
        guard let deadline, state.phase != .closed else { return }
        let now = server.loop.now
        guard deadline <= now else { return armTimer() }
        if let due = sender.deadline, due <= now { return close(.aborted) }
        if state.isOver(now: now) { return expire() }
        checkStreams(now)
        pump()
        settle()
    }

    private func expire() {
        guard state.phase == .idle else { return close(.aborted) }
        session?.goAway()
        pump()
        if state.phase == .idle { linger() }
    }

    private func checkStreams(_ now: Monotonic) {
        state.forgetStreamDeadlines()
        guard let session else { return }
        isInside = true
        for stream in Array(streams.values) {
            switch stream.check(now: now, isWindowOpen: session.isWindowOpen(stream.id)) {
            case .none: state.note(stream.deadline)
            case .answerTimeout:
                stream.answerInstead(.requestTimeout, "The request did not arrive in time.")
            case .abort: session.reset(stream.id, NGHTTP2_CANCEL)
            }
        }
        isInside = false
    }
}

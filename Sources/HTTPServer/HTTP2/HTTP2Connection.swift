// One HTTP/2 client connection: its socket, deadlines and streams.
import CNGHTTP2
import HTTP
import Posix
import Reactor
import TLS

/// One connection (RFC 9113), on one loop.
///
/// nghttp2 implements the protocol: framing, HPACK, flow control, and the order of streams by RFC
/// 9218. This class has the socket, the deadlines and the limits of a client; requests and
/// responses are in `HTTP2Stream`, nghttp2's callbacks in `HTTP2Session`.
///
/// Turns: received bytes go into the session, which opens and ends streams; then frames are
/// collected and written until the session has none, the socket is full or the turn's budget is
/// used up. Events within either step are handled at its end, so that the session is never entered
/// recursively.
final class HTTP2Connection: ReadinessHandler, ClientConnection {
    let server: ServerLoop
    let peer: SocketAddress?
    let tls: TLSSession?
    private let number: CInt
    private var socket: OwnedDescriptor?
    var session: HTTP2Session?
    var streams: [Int32: HTTP2Stream] = [:]
    /// Streams that the session has closed and whose exchanges have not ended yet.
    var over: [(stream: HTTP2Stream, ending: ResponseOutcome.Ending)] = []
    /// Streams whose request heads are complete and not yet passed to the handler.
    var arrived: [HTTP2Stream] = []
    /// True if a request has arrived with its content to follow: frames behind its head may have
    /// broken the stream.
    var mustSettle = false
    /// Streams whose responses are complete although their requests are not.
    var unread: [Int32] = []
    /// The fields of the request head that is arriving.
    var block: HeaderBlock?
    var allowance: FrameAllowance
    /// The number of requests that have a place of the server's.
    var placed = 0
    /// The bytes of content put into frames, of all responses together.
    var contentSent: Int64 = 0
    /// The frames collected in the current turn.
    private(set) var output: FrameOutput?

    var state: HTTP2ConnectionState
    private var sender: FrameSender
    private var isInside = false
    private var mustPump = false
    private var isTurnOver = false
    private var progress = LingerProgress()
    /// Changed only by calls that lead nowhere else.
    @exclusivity(unchecked) private var watch = SocketWatch()

    /// The maximum number of concurrent requests per connection.
    static let mostStreams: UInt32 = 128

    /// The client's connection preface (RFC 9113 section 3.4).
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// This many of its bytes distinguish it from every method of HTTP/1.1.
    static let distinctBytes = 4

    /// True if bytes can only be the start of the preface: no method of HTTP/1.1 begins like it.
    static func isPreface(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= distinctBytes, bytes[0] == preface[0], bytes[1] == preface[1] else {
            return false
        }
        for index in 2..<min(bytes.count, preface.count) where bytes[index] != preface[index] {
            return false
        }
        return true
    }

    /// Takes ownership of a socket; `begin` must be called next.
    ///
    /// - Returns: nil if memory is short.
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

    /// Processes the first bytes: the held ones, then `count` bytes in the loop's buffer.
    func begin(after held: [UInt8], _ count: Int) {
        if !held.isEmpty { _ = session?.receive(held.span) }
        takeUp(count)
        pump()
        updateWatch()
    }

    // MARK: Reading

    func ready(_ readiness: Readiness, on loop: EventLoop) {
        guard readiness.isDisjoint(with: .broken) else { return close(.aborted) }
        if state.phase == .lingering { return discardInput() }
        if !readiness.isDisjoint(with: .input) { read() }
        pump()
        updateWatch()
    }

    private func read() {
        switch server.receive(from: number, through: tls) {
        case .bytes(let count): takeUp(count)
        case .wouldBlock: break
        case .end: close(.aborted)
        }
    }

    /// Passes bytes to the session, then the resulting requests and content to their streams.
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
        if mustSettle {
            mustSettle = false
            // Sends the resets that the session has decided on, which closes their streams: no
            // handler starts work for a request whose content broke it.
            pump()
        }
        for stream in requests where streams[stream.id] === stream { open(stream) }
        isInside = true
        for stream in streams.values where stream.content.hasNews { stream.contentArrived() }
        isInside = false
    }

    private func discardInput() {
        let isOver = progress.discardInput(limit: server.limits.lingerBytes) {
            server.receive(from: number, through: tls)
        }
        if isOver { close(.complete) }
    }

    func runTurn() {
        if isInside {
            mustPump = true
            return
        }
        pump()
        updateWatch()
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

    /// Sends waiting bytes, then frames; returns false if some of them could not be sent.
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

    private func resetUnread() {
        guard !unread.isEmpty else { return }
        for id in unread where streams[id] != nil { session?.reset(id, NGHTTP2_NO_ERROR) }
        unread = []
        mustPump = true
    }

    // MARK: Ends

    /// Ends the exchanges of closed streams; complete ones only once the kernel has all bytes.
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

    /// Enters the idle phase, or ends the connection if it is over.
    private func endIfDone() {
        guard state.isOpen, let session else { return }
        if session.isOver, !sender.hasUnsent { return linger() }
        state.noteUse(now: server.loop.now)
        // The end of a response may still wait for the socket.
        guard streams.isEmpty, state.phase == .busy, !sender.hasUnsent else { return }
        if server.isDraining { return linger() }
        enter(.idle)
    }

    private func linger() {
        tls?.sendEnd(to: number)
        shutdownWrites(number)
        enter(.lingering)
        endStreams(.aborted)
        updateWatch()
    }

    /// Closes the connection and its streams immediately.
    func close(_ ending: ResponseOutcome.Ending) {
        guard state.phase != .closed else { return }
        enter(.closed)
        watch.cancel(on: server.loop, isClosing: true)
        if !streams.isEmpty { resetOnClose(number) } else { tls?.sendEnd(to: number) }
        socket = nil
        server.forget(self)
        endStreams(ending)
        // A call of the session may be in progress; it is freed with its last reference.
        session = nil
        sender.forget()
    }

    private func endStreams(_ ending: ResponseOutcome.Ending) {
        let open = streams
        let ended = over
        streams = [:]
        over = []
        arrived = []
        // Complete responses whose last frames were not sent have not arrived.
        let isCut = sender.hasUnsent
        for (stream, own) in ended { stream.end(isCut && own == .complete ? ending : own) }
        for stream in open.values { stream.end(ending) }
    }

    var idleSince: (Idleness, Monotonic)? { state.idleSince(limits: server.limits) }

    func giveWay() {
        ready(.readable, on: server.loop)
        guard idleSince != nil, unacknowledgedBytes(of: number) == 0, !sender.hasUnsent else {
            return
        }
        session?.goAway()
        pump()
        close(.complete)
    }

    func cut() { close(.aborted) }

    func drain() {
        switch state.phase {
        case .opening, .idle, .busy:
            session?.goAway()
            runTurn()
            let isUnused = state.phase == .idle || state.phase == .opening
            if isUnused, !sender.hasUnsent { linger() }
        case .lingering, .closed: break
        }
    }

    // MARK: Time

    func enter(_ next: HTTP2ConnectionState.Phase) {
        state.enter(next, now: server.loop.now, limits: server.limits)
    }

    /// Updates the watched events and the timer to match the state.
    private func updateWatch() {
        guard state.phase != .closed else { return }
        var interest: Readiness = [.readable, .peerClosed]
        // A socket that was shut down for writing is always writable.
        if state.isOpen, sender.hasUnsent || isTurnOver { interest.insert(.writable) }
        do throws(SystemError) {
            try watch.update(number, for: interest, on: server.loop, handler: self)
        } catch {
            return close(.aborted)
        }
        armTimer()
    }

    private var deadline: Monotonic? { state.deadline(writing: sender.deadline) }

    /// Sets the timer, unless it is set for an earlier time.
    func armTimer() {
        guard let deadline, watch.needsTimer(for: deadline, on: server.loop) else { return }
        let delay = deadline - server.loop.now
        watch.note(server.loop.schedule(after: delay) { _ in self.timerFired() }, for: deadline)
    }

    private func timerFired() {
        watch.noteFired()
        guard let deadline, state.phase != .closed else { return }
        let now = server.loop.now
        guard deadline <= now else { return armTimer() }
        let patience = server.limits.writeTimeout
        if let due = sender.deadline, due <= now,
            !sender.extendDeadline(now: now, patience: patience)
        {
            return close(.aborted)
        }
        if state.isOver(now: now) { return expire() }
        if state.takeRest(now: now), streams.isEmpty, over.isEmpty, !sender.hasUnsent {
            rest()
            return armTimer()
        }
        checkStreams(now)
        pump()
        updateWatch()
    }

    /// Gives back the memory that only a connection in use needs.
    private func rest() {
        streams = [:]
        session?.rest()
        server.counter.noteRest()
    }

    private func expire() {
        if state.phase == .lingering, progress.isReading(unacknowledgedBytes(of: number)) {
            state.lingerLonger(now: server.loop.now, limits: server.limits)
            return armTimer()
        }
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
            let expiry = stream.check(
                now: now, isWindowOpen: session.isWindowOpen(of: stream.id),
                isSharedWindowOpen: session.isSharedWindowOpen, sentByAll: contentSent)
            switch expiry {
            case .none: state.note(stream.deadline)
            case .answerTimeout: stream.answerInstead(.late)
            case .abort: session.reset(stream.id, NGHTTP2_CANCEL)
            }
        }
        isInside = false
    }
}

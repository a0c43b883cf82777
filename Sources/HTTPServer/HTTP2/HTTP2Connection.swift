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
    private var session: HTTP2Session?
    private(set) var streams: [Int32: HTTP2Stream] = [:]
    /// Streams that the session has closed and whose exchanges have not been told.
    private var over: [(stream: HTTP2Stream, ending: ResponseOutcome.Ending)] = []
    /// Streams whose requests are whole and have not been handed over.
    private var arrived: [HTTP2Stream] = []
    /// Streams that are answered although their requests are not whole.
    private var unread: [Int32] = []
    /// The fields of the request that is arriving.
    var block: HeaderBlock?
    private var allowance: FrameAllowance
    /// Where the turn under way collects frames.
    private(set) var output: FrameOutput?

    private var phase = Phase.opening
    private var unsent: [UInt8] = []
    private var unsentStart = 0
    private var isInside = false
    private var mustPump = false
    private var isTurnOver = false
    private var lingered = 0

    private var registration: Registration?
    private var watched = Readiness.nothing
    private var timer: TimerID?
    private var timerDue = Monotonic(nanoseconds: 0)
    /// When the phase's own time ends.
    private var phaseDeadline: Monotonic
    /// When the socket has to have taken something; nil while nothing waits.
    private var writeDeadline: Monotonic?
    /// When the first of the streams may have to be looked at; nil for never.
    private var streamsDue: Monotonic?

    /// Where a connection stands.
    private enum Phase {
        /// Waits for the client's first frame, at most `headTimeout`.
        case opening
        /// No stream is open, at most `idleTimeout`.
        case idle
        case busy
        /// The last frame is out: waits for the client's end, at most `lingerTimeout`.
        case lingering
        case closed
    }

    /// Requests that one client may have open at once.
    static let mostStreams: UInt32 = 128

    /// What every client sends first (RFC 9113 section 3.4).
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// Whether bytes can only be the start of the preface: no method of HTTP/1.1 begins like it.
    static func isPreface(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= 4, bytes[0] == preface[0], bytes[1] == preface[1] else { return false }
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
        self.socket = consume socket
        allowance = FrameAllowance(now: server.loop.now)
        phaseDeadline = server.loop.now + server.limits.headTimeout
        guard let session = HTTP2Session(for: self) else { return nil }
        self.session = session
    }

    /// Takes up the first bytes, which lie in the loop's buffer.
    func begin(_ count: Int) {
        takeUp(count)
        pump()
        settle()
    }

    // MARK: Reading

    func ready(_ readiness: Readiness, on loop: EventLoop) {
        guard readiness.isDisjoint(with: .broken) else { return close(.aborted) }
        if phase == .lingering { return discardInput() }
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
        while phase == .lingering {
            switch receive() {
            case .bytes(let count):
                lingered += count
                if lingered > server.limits.lingerBytes { close(.complete) }
            case .wouldBlock: return
            case .end: close(.complete)
            }
        }
    }

    // MARK: What the session reports

    /// A frame that asks for nothing came.
    func charge(_ cost: Int) {
        if !allowance.take(cost, now: server.loop.now) {
            session?.terminate(NGHTTP2_ENHANCE_YOUR_CALM)
        }
    }

    /// The client's first SETTINGS came: the connection is one of HTTP/2.
    func settingsArrived() {
        guard phase == .opening else { return }
        enter(.idle)
    }

    /// A block of fields begins a request.
    func beginStream(_ id: Int32) {
        allowance.noteRequest()
        streams[id] = HTTP2Stream(id, on: self)
        if phase != .lingering, phase != .closed { enter(.busy) }
        var block = block ?? server.takeHeaderBlock()
        block.reset()
        self.block = block
        // A head sent drop by drop holds a connection; a new one moves no earlier deadline.
        phaseDeadline = server.loop.now + server.limits.headTimeout
    }

    /// The fields of a request are whole.
    func headArrived(_ id: Int32, isEnd: Bool) {
        guard let stream = streams[id], stream.exchange == nil, let block else { return }
        stream.hasPriority = stream.hasPriority || block.hasPriority
        if isEnd { stream.content.end() }
        stream.read(block)
        self.block = nil
        server.giveBack(block)
        arrived.append(stream)
    }

    /// Content of a request came.
    func contentArrived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let stream = streams[id], stream.wantsContent else {
            session?.consume(connection: bytes.count)
            return
        }
        stream.content.append(bytes)
    }

    func contentEnded(_ id: Int32) { streams[id]?.content.end() }

    /// The session has let a stream go.
    func streamClosed(_ id: Int32, error: UInt32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        session?.consume(connection: stream.content.count)
        let isWhole = stream.response?.isWhole ?? false
        let ending: ResponseOutcome.Ending =
            isWhole ? .complete : stream.isBroken ? .broken : .aborted
        over.append((stream, ending))
    }

    // MARK: What streams ask for

    /// Sends a head, and the content after it as it comes.
    func submit(
        _ fields: FieldBlock, on stream: HTTP2Stream, response: HTTP2Response?, isInterim: Bool
    ) {
        guard let session, streams[stream.id] === stream else { return }
        if !isInterim, !stream.hasPriority, let response {
            let type = fields.value(of: "content-type")
            session.prioritise(
                stream.id,
                DefaultPriority.urgency(contentType: type, length: response.length))
        }
        let isSent = session.submit(
            fields, on: stream.id, hasContent: response?.hasContent ?? false, isInterim: isInterim)
        if !isSent { session.reset(stream.id, NGHTTP2_INTERNAL_ERROR) }
        if let response, !response.hasContent {
            response.finish()
            responseEnded(stream)
        }
        runTurn()
    }

    /// A source has more.
    func resume(_ stream: HTTP2Stream) {
        session?.resume(stream.id)
        runTurn()
    }

    /// Content was taken: the client may send as much again.
    func consume(_ count: Int, on stream: HTTP2Stream) {
        session?.consume(stream: stream.id, count)
        runTurn()
    }

    /// A stream has a deadline.
    func note(_ deadline: Monotonic?) {
        guard let deadline else { return }
        streamsDue = streamsDue.map { min($0, deadline) } ?? deadline
    }

    private func runTurn() {
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
        guard !isInside, phase != .closed, phase != .lingering, let session else { return }
        isInside = true
        isTurnOver = false
        let frames = server.takeFrames()
        output = frames
        var budget = server.limits.roundBytes
        repeat {
            mustPump = false
            guard flush() else { break }
            let isValid = session.collect(into: frames)
            resetUnread()
            guard frames.count > 0 else {
                if !isValid { close(.broken) }
                continue
            }
            budget -= frames.count
            let isOut = write(frames)
            frames.removeAll()
            guard isOut else { break }
            isTurnOver = budget <= 0
            mustPump = !isTurnOver
        } while mustPump && phase != .closed
        output = nil
        server.giveBack(frames)
        isInside = false
        finishOver()
        endIfDone()
    }

    /// Sends what the socket had no room for; false while there is such.
    private func flush() -> Bool {
        while unsentStart < unsent.count {
            let outcome = unsent.withUnsafeBytes {
                send(UnsafeRawBufferPointer(rebasing: $0[unsentStart...]))
            }
            guard case .bytes(let count) = outcome else { return stop(outcome) }
            unsentStart += count
            noteProgress()
        }
        unsent = []
        unsentStart = 0
        if let tls, tls.hasUnsent {
            let outcome = tls.flush(to: number)
            guard case .bytes = outcome else { return stop(outcome) }
        }
        writeDeadline = nil
        return true
    }

    /// Sends frames; false where not all of them went.
    private func write(_ frames: FrameOutput) -> Bool {
        var sent = 0
        while sent < frames.count {
            let rest = UnsafeRawBufferPointer(rebasing: frames.bytes[sent...])
            let outcome = send(rest)
            guard case .bytes(let count) = outcome else {
                unsent = Array(rest)
                unsentStart = 0
                return stop(outcome)
            }
            sent += count
            noteProgress()
        }
        return true
    }

    private func send(_ bytes: UnsafeRawBufferPointer) -> WriteOutcome {
        guard let tls else { return Posix.send(bytes, to: number) }
        return tls.send(bytes, to: number)
    }

    private func stop(_ outcome: WriteOutcome) -> Bool {
        if outcome == .closed {
            close(.aborted)
        } else if writeDeadline == nil {
            writeDeadline = server.loop.now + server.limits.writeTimeout
        }
        return false
    }

    private func noteProgress() { writeDeadline = nil }

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

    private var hasUnsent: Bool { unsentStart < unsent.count || (tls?.hasUnsent ?? false) }

    // MARK: Ends

    /// Tells exchanges that their streams are over; those that are whole once the kernel has all.
    private func finishOver() {
        guard !over.isEmpty else { return }
        let waits = hasUnsent
        let ended = over
        over = ended.filter { waits && $0.ending == .complete }
        isInside = true
        for (stream, ending) in ended where !(waits && ending == .complete) { stream.end(ending) }
        isInside = false
        if mustPump { pump() }
    }

    /// Goes idle, or ends where there is nothing more to say.
    private func endIfDone() {
        guard phase != .closed, phase != .lingering, let session else { return }
        if session.isOver, !hasUnsent { return linger() }
        guard streams.isEmpty, phase == .busy else { return }
        if server.isDraining, !hasUnsent { return linger() }
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
        guard phase != .closed else { return }
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
        unsent = []
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
        switch phase {
        case .opening, .idle, .busy:
            session?.goAway()
            runTurn()
            if phase == .idle || phase == .opening { linger() }
        case .lingering, .closed: break
        }
    }

    // MARK: Time

    private func enter(_ next: Phase) {
        guard next != phase else { return }
        phase = next
        let now = server.loop.now
        switch next {
        case .opening, .busy: phaseDeadline = now + server.limits.headTimeout
        case .idle: phaseDeadline = now + server.limits.idleTimeout
        case .lingering: phaseDeadline = now + server.limits.lingerTimeout
        case .closed: break
        }
    }

    /// Brings what the kernel watches and the timer into line with the state.
    private func settle() {
        guard phase != .closed else { return }
        var interest: Readiness = [.readable, .peerClosed]
        if hasUnsent || isTurnOver { interest.insert(.writable) }
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

    private var deadline: Monotonic? {
        var first: Monotonic?
        func take(_ next: Monotonic?) {
            if let next { first = first.map { min($0, next) } ?? next }
        }
        // While streams are busy only a head that is not whole runs against it.
        if phase != .busy || block != nil { take(phaseDeadline) }
        take(writeDeadline)
        take(streamsDue)
        return first
    }

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
        guard let deadline, phase != .closed else { return }
        let now = server.loop.now
        guard deadline <= now else { return armTimer() }
        if let writeDeadline, writeDeadline <= now { return close(.aborted) }
        if phase != .busy || block != nil, phaseDeadline <= now { return expire() }
        checkStreams(now)
        pump()
        settle()
    }

    private func expire() {
        guard phase == .idle else { return close(.aborted) }
        session?.goAway()
        pump()
        if phase == .idle { linger() }
    }

    private func checkStreams(_ now: Monotonic) {
        streamsDue = nil
        guard let session else { return }
        isInside = true
        for stream in Array(streams.values) {
            switch stream.check(now: now, isWindowOpen: session.isWindowOpen(stream.id)) {
            case .none: note(stream.deadline)
            case .answerTimeout:
                stream.answerInstead(.requestTimeout, "The request did not arrive in time.")
            case .abort: session.reset(stream.id, NGHTTP2_CANCEL)
            }
        }
        isInside = false
    }
}

// One client connection: performs what `RequestReader`, `ResponsePlan` and `ConnectionState` say.
import HTTP
import Posix
import Reactor
import TLS

/// One connection, on one loop.
///
/// The life cycle stands in `ConnectionState`; sending is in `Connection+Sending.swift`, requests'
/// content in `Connection+Body.swift`. While a request is being answered nothing but its content is
/// read: further requests wait in the kernel, or here where they came with the same read, so that
/// responses keep the order of requests.
///
/// The properties marked `exclusivity(unchecked)` are values that nothing changes but calls which lead
/// nowhere else: two changes of one cannot overlap, and to check that took a tenth of a small hit.
final class Connection: ReadinessHandler, ExchangeCarrier {
    let server: ServerLoop
    let peer: SocketAddress?
    /// The socket's number, valid until `closed`.
    let number: CInt
    /// Nil in the clear.
    let tls: TLSSession?
    /// Asked before `tls` where it is nearly always nil: to look at a reference costs counting it.
    let isClear: Bool

    @exclusivity(unchecked) var state: ConnectionState
    @exclusivity(unchecked) var reader: RequestReader
    /// The exchange that is open; nil between requests and for answers to no request.
    @exclusivity(unchecked) var exchange: Exchange?
    @exclusivity(unchecked) var response: ResponseInFlight?
    /// Heads, framing and short content on their way out, from `outputStart` on.
    @exclusivity(unchecked) var output: [UInt8] = []
    @exclusivity(unchecked) var outputStart = 0
    /// What may still be sent before others have their turn.
    @exclusivity(unchecked) var budget = 0
    @exclusivity(unchecked) var isPumping = false
    /// Whether requests are being taken up: what ends meanwhile must not start that again.
    @exclusivity(unchecked) var isProcessing = false
    @exclusivity(unchecked) var wasWokenWhilePumping = false
    /// Whether the kernel took anything since the last turn began.
    @exclusivity(unchecked) var madeProgress = false

    private var socket: OwnedDescriptor?
    @exclusivity(unchecked) private var registration: Registration?
    @exclusivity(unchecked) private var watched: Readiness
    @exclusivity(unchecked) private var timer: TimerID?
    @exclusivity(unchecked) private var timerDue = Monotonic(nanoseconds: 0)
    private var lingered = 0

    /// Takes over an accepted socket; `begin` comes next.
    init(
        _ socket: consuming OwnedDescriptor, peer: SocketAddress?, tls: TLSSession?,
        on server: ServerLoop
    ) {
        self.server = server
        self.peer = peer
        self.tls = tls
        isClear = tls == nil
        number = socket.number
        self.socket = consume socket
        state = ConnectionState(now: server.loop.now, limits: server.limits)
        reader = Self.reader(server.limits)
        watched = state.interest
    }

    /// Looks whether the request came with the connection, as it nearly always does.
    ///
    /// One that closes the connection as well is then answered without ever having the socket
    /// watched, or a timer set.
    func begin() {
        budget = server.limits.roundBytes
        read()
        settle()
    }

    private static func reader(_ limits: ServerLimits) -> RequestReader {
        RequestReader(
            limits: limits.request, bodyBytes: limits.bodyBytes, discardBytes: limits.lingerBytes)
    }

    // MARK: Readiness

    func ready(_ readiness: Readiness, on loop: EventLoop) {
        budget = server.limits.roundBytes
        if state.phase == .lingering {
            discardInput()
            if !readiness.isDisjoint(with: .broken) { close(.aborted) }
            return
        }
        guard readiness.isDisjoint(with: .broken) else {
            close(.aborted)
            return
        }
        if readiness.contains(.writable) { pump() }
        if !readiness.isDisjoint(with: .input) {
            inputIsReady(peerClosed: readiness.contains(.peerClosed))
        }
        settle()
    }

    private func inputIsReady(peerClosed: Bool) {
        if state.isReading {
            read()
        } else if state.isContentWanted {
            readContent()
        } else if state.isBusy {
            let isNews = peerClosed && !state.isPeerClosed
            state.pauseInput(peerClosed: peerClosed)
            if isNews { watchHalfClosed() }
        } else if state.phase == .lingering {
            discardInput()
        }
    }

    /// A client that closed for good looks, until it is sent something, like one that only shut its
    /// sending side (RFC 9112 section 9.6).
    ///
    /// Players do the former: one that closed while there is nothing to send it is given up after a
    /// while, so that its transfer does not go on for nobody. One that took bytes since has shown,
    /// by not resetting the connection, that it still reads.
    private func watchHalfClosed() {
        let sentBefore = response?.bodySent ?? 0
        server.loop.schedule(after: server.limits.halfCloseTimeout) { [weak self] _ in
            guard let self, self.state.isPeerClosed, self.state.isBusy, !self.state.isBlocked,
                !self.reader.hasOpenContent
            else { return }
            if (self.response?.bodySent ?? 0) == sentBefore { self.close(.aborted) }
        }
    }

    private func read() {
        switch receive() {
        case .bytes(let count):
            if state.mayBecomeHTTP2, speaksHTTP2(count) { return becomeMultiplexed(count) }
            process(fresh: count)
        case .wouldBlock: break
        // Between requests the usual end; within one there is nobody left to answer.
        case .end: close(.aborted)
        }
    }

    /// Reads what has arrived into the loop's buffer.
    func receive() -> ReadOutcome {
        guard !isClear, let tls else { return server.receive(from: number) }
        return server.receive(from: number, through: tls)
    }

    /// Whether the first bytes are those of HTTP/2: by agreement under TLS, by its preface in the
    /// clear (RFC 9113 sections 3.2 and 3.3).
    private func speaksHTTP2(_ count: Int) -> Bool {
        if let tls { return tls.isHTTP2 && state.phase == .fresh }
        let fresh = server.input
        let bytes = fresh.span.extracting(0..<count)
        if state.phase == .fresh { return HTTP2Connection.isPreface(bytes) }
        // The preface may have come in pieces; what has come of a longer head is none.
        guard reader.heldCount < HTTP2Connection.telling else { return false }
        var whole = reader.heldBytes
        for index in bytes.indices.prefix(HTTP2Connection.telling) { whole.append(bytes[index]) }
        return HTTP2Connection.isPreface(whole.span)
    }

    /// Hands the socket over to a connection of the other protocol.
    private func becomeMultiplexed(_ count: Int) {
        let held = reader.heldBytes
        enter(.closed)
        if let timer { server.loop.cancel(timer) }
        timer = nil
        if let registration { server.loop.cancel(registration) }
        registration = nil
        guard let socket = socket.take(),
            let multiplexed = HTTP2Connection(socket, peer: peer, tls: tls, on: server)
        else {
            server.forget(self)
            return
        }
        server.replace(self, with: multiplexed)
        multiplexed.begin(after: held, count)
    }

    /// Brings what the kernel watches and the timer into line with the state.
    func settle() {
        guard state.phase != .closed else { return }
        do throws(SystemError) {
            var interest = state.interest
            if !isClear, let tls, tls.hasUnsent { interest.insert(.writable) }
            try watch(for: interest)
        } catch {
            // The kernel is out of memory, or epoll at its own limit: better one connection less than
            // one without events.
            close(.aborted, reset: true)
            return
        }
        armTimer()
    }

    private func watch(for wanted: Readiness) throws(SystemError) {
        if let registration {
            if wanted != watched { try server.loop.update(registration, for: wanted) }
        } else {
            registration = try server.loop.watch(number, for: wanted, handler: self)
        }
        watched = wanted
    }

    // MARK: Requests

    /// Takes up whole requests, out of fresh bytes and then out of what is left, until one waits
    /// for its answer.
    ///
    /// A loop, not a recursion, however many requests came in one piece.
    func process(fresh count: Int = 0) {
        guard !isProcessing else { return }
        isProcessing = true
        var (outcome, repeated) = take(count)
        while perform(outcome, repeated), state.isReading {
            outcome = reader.next()
            repeated = nil
        }
        isProcessing = false
    }

    private func take(_ count: Int) -> (RequestReader.Outcome, RepeatedHead?) {
        // Held no longer than this call: reading into a shared array would copy it first.
        let buffer = server.input
        let input = buffer.span.extracting(0..<count)
        let transport = isClear ? RepeatedHeads.Transport.http1 : .http1OverTLS
        guard reader.isAtStart, let hash = RepeatedHeads.hash(input, over: transport) else {
            return (reader.take(input), nil)
        }
        if let known = server.repeatedHeads.find(input, hash: hash) {
            return (.request(known.head), known)
        }
        let outcome = reader.take(input)
        // Only where the bytes are one head and nothing else do they always mean the same.
        guard case .request(let head) = outcome, reader.isAtStart else { return (outcome, nil) }
        return (outcome, server.repeatedHeads.note(head, input, hash: hash))
    }

    /// - Returns: Whether to look at what is left.
    private func perform(_ outcome: RequestReader.Outcome, _ repeated: RepeatedHead?) -> Bool {
        switch outcome {
        case .needsMore:
            switch reader.place {
            case .betweenRequests: if state.phase == .body { enter(.idle) }
            case .head: enter(.head)
            case .body: enter(.body)
            }
            return false
        case .request(let head):
            enter(.handling)
            let exchange = Exchange(
                head, body: openBody(), repeated: repeated, on: self, of: server, to: peer)
            self.exchange = exchange
            server.handler.handle(head, body: exchange.body, exchange: exchange)
        case .failed(let error):
            // Content that nobody wanted is no request: it has been answered.
            if reader.hasOpenContent { linger() } else { answer(error.status, error.reason) }
        }
        return true
    }

    private func openBody() -> RequestBody? {
        guard reader.hasOpenContent else { return nil }
        return RequestBody(length: reader.remainingContent, on: self)
    }

    func enter(_ phase: ConnectionState.Phase) {
        state.enter(phase, now: server.loop.now, limits: server.limits)
    }

    // MARK: Ends

    /// Nothing more is sent: waits for the client to read the last answer and close, since closing
    /// over unread input would destroy what it has not read (RFC 9112 section 9.6).
    func linger() {
        if !isClear { tls?.sendEnd(to: number) }
        shutdownWrites(number)
        reader = Self.reader(server.limits)
        enter(.lingering)
        settle()
    }

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

    /// Ends the connection now, and the response under way with it; with `reset` the client sees
    /// that rather than an end.
    func close(_ ending: ResponseOutcome.Ending, reset: Bool = false) {
        guard state.phase != .closed else { return }
        enter(.closed)
        if let timer { server.loop.cancel(timer) }
        timer = nil
        if let registration { server.loop.cancel(registration, isClosing: true) }
        registration = nil
        if reset {
            resetOnClose(number)
        } else if !isClear {
            tls?.sendEnd(to: number)
        }
        if !isClear, tls?.isEstablished == false { server.handshakes.addFailure() }
        socket = nil
        server.forget(self)
        endResponse(ending)
        output = []
    }

    /// Closes if nothing has been asked; a request under way is still answered.
    func drain() {
        switch state.phase {
        // Its request may be on the way, and no client sends a first request again.
        case .fresh:
            state.hasten(now: server.loop.now)
            armTimer()
        case .idle, .body: close(.complete)
        case .head, .handling, .sending, .lingering, .closed: break
        }
    }

    // MARK: Time

    /// The timer is only ever moved forward here; a deadline that moved on is seen when it fires,
    /// so that a request costs no timer.
    private func armTimer() {
        guard let deadline = state.deadline else { return }
        if let timer {
            if timerDue <= deadline { return }
            server.loop.cancel(timer)
        }
        timerDue = deadline
        timer = server.loop.schedule(after: deadline - server.loop.now) { _ in self.timerFired() }
    }

    private func timerFired() {
        timer = nil
        guard let deadline = state.deadline else { return }
        if server.loop.now < deadline {
            armTimer()
            return
        }
        switch state.expiry {
        case .close: close(.aborted)
        case .abort: close(.aborted, reset: true)
        case .answerTimeout:
            contentFailed(.requestTimeout, "The request did not arrive in time.")
        }
    }
}

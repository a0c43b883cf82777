// One client connection: carries out the decisions of `RequestReader`, `ResponsePlan` and
// `ConnectionState`.
import HTTP
import Posix
import Reactor
import TLS

/// One connection of HTTP/1.x, on one loop.
///
/// Its life cycle is in `ConnectionState`, sending in `Connection+Sending.swift`, request content
/// in `Connection+Body.swift`. While a request is being answered only its content is read: further
/// requests wait in the kernel, or here if they came with the same read, so that responses are sent
/// in the order of requests.
///
/// The properties marked `exclusivity(unchecked)` are values that are changed only by calls which
/// lead nowhere else: two changes of one cannot overlap, and the checks took a tenth of the time of
/// a small hit.
final class Connection: ReadinessHandler, ClientConnection, ExchangeCarrier {
    let server: ServerLoop
    let peer: SocketAddress?
    /// The socket's number, valid until the phase `closed`.
    let number: CInt
    /// The TLS session; nil without TLS.
    let tls: TLSSession?
    /// True without TLS; checked before `tls`, since reading a reference costs reference counting.
    let isClear: Bool

    @exclusivity(unchecked) var state: ConnectionState
    @exclusivity(unchecked) var reader: RequestReader
    /// The open exchange; nil between requests and for responses to invalid requests.
    @exclusivity(unchecked) var exchange: Exchange?
    @exclusivity(unchecked) var response: ResponseInFlight?
    /// Heads, framing and short content to be sent, from `outputStart` on.
    @exclusivity(unchecked) var output: [UInt8] = []
    @exclusivity(unchecked) var outputStart = 0
    /// The number of bytes that may still be sent in this turn.
    @exclusivity(unchecked) var budget = 0
    @exclusivity(unchecked) var isPumping = false
    /// True while requests are being processed; a response that ends meanwhile must not restart
    /// that.
    @exclusivity(unchecked) var isProcessing = false
    @exclusivity(unchecked) var wasWokenWhilePumping = false
    /// True if the kernel accepted any bytes since the last turn began.
    @exclusivity(unchecked) var madeProgress = false

    private var socket: OwnedDescriptor?
    @exclusivity(unchecked) private var watch = SocketWatch()
    private var progress = LingerProgress()

    /// Takes ownership of an accepted socket; `begin` must be called next.
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
    }

    /// Checks whether the request arrived with the connection, as it nearly always does.
    ///
    /// If the request also closes the connection, it is answered without ever watching the socket
    /// or setting a timer.
    func begin() {
        budget = server.limits.roundBytes
        read()
        updateWatch()
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
        updateWatch()
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

    /// Checks later whether a client that shut its sending side still reads.
    ///
    /// A client that closed its socket looks, until something is sent to it, like one that shut
    /// only its sending side (RFC 9112 section 9.6). Players close: a client that closed while
    /// there is nothing to send is dropped after `halfCloseTimeout`, so that its transfer does not
    /// continue without a reader; sooner if the handler ends the exchange, since others wait. If it
    /// has accepted bytes since without resetting the connection, it still reads.
    private func watchHalfClosed() {
        let sentBefore = response?.bodySent ?? 0
        server.loop.schedule(after: server.limits.halfCloseTimeout) {
            [weak self, weak watched = exchange] _ in
            // The next request on the connection has a check of its own.
            guard let self, self.exchange === watched, self.state.isPeerClosed,
                self.state.isBusy, !self.state.isBlocked, !self.reader.hasOpenContent
            else { return }
            if (self.response?.bodySent ?? 0) == sentBefore { self.close(.aborted) }
        }
        guard let waiting = exchange, response == nil, !reader.hasOpenContent else { return }
        waiting.noteHalfClosed { [weak self, weak waiting] in
            guard let self, let waiting, self.exchange === waiting else { return }
            self.close(.aborted)
        }
    }

    private func read() {
        switch receive() {
        case .bytes(let count):
            if state.mayBecomeHTTP2, speaksHTTP2(count) { return becomeMultiplexed(count) }
            process(fresh: count)
        case .wouldBlock: break
        // Between requests this is the usual end; within one no client is left to answer.
        case .end: close(.aborted)
        }
    }

    /// Reads the bytes that have arrived into the loop's buffer.
    func receive() -> ReadOutcome {
        server.receive(from: number, through: isClear ? nil : tls)
    }

    /// True if the first bytes are those of HTTP/2: negotiated under TLS, or detected by the
    /// preface without TLS (RFC 9113 sections 3.2 and 3.3).
    private func speaksHTTP2(_ count: Int) -> Bool {
        if let tls { return tls.isHTTP2 && state.phase == .fresh }
        let fresh = server.input
        let bytes = fresh.span.extracting(0..<count)
        if state.phase == .fresh, reader.heldCount == 0 { return HTTP2Connection.isPreface(bytes) }
        // The preface may arrive in pieces; a longer incomplete head cannot be one.
        guard reader.heldCount < HTTP2Connection.distinctBytes else { return false }
        var whole = reader.heldBytes
        for index in bytes.indices.prefix(HTTP2Connection.distinctBytes) {
            whole.append(bytes[index])
        }
        return HTTP2Connection.isPreface(whole.span)
    }

    /// Hands the socket over to an HTTP/2 connection.
    private func becomeMultiplexed(_ count: Int) {
        let held = reader.heldBytes
        enter(.closed)
        watch.cancel(on: server.loop, isClosing: false)
        guard let socket = socket.take(),
            let multiplexed = HTTP2Connection(socket, peer: peer, tls: tls, on: server)
        else {
            server.forget(self)
            return
        }
        server.replace(self, with: multiplexed)
        multiplexed.begin(after: held, count)
    }

    /// Updates the watched events and the timer to match the state.
    func updateWatch() {
        guard state.phase != .closed else { return }
        do throws(SystemError) {
            let hasRecords = !isClear && tls?.hasUnsent == true
            try watch.update(
                number, for: hasRecords ? state.interestWithRecords : state.interest,
                on: server.loop, handler: self)
        } catch {
            // The kernel is out of memory, or epoll is at its limit: close the connection, since it
            // would get no events.
            close(.aborted, reset: true)
            return
        }
        armTimer()
    }

    // MARK: Requests

    /// Processes complete requests, first from fresh and then from held bytes, until one waits for
    /// its response.
    ///
    /// A loop instead of a recursion, however many requests came in one read.
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
        // A local reference for this call only: reading into a shared array would copy it first.
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
        // Only if the bytes are exactly one head do they always have the same meaning.
        guard case .request(let head) = outcome, reader.isAtStart else { return (outcome, nil) }
        return (outcome, server.repeatedHeads.note(head, input, hash: hash))
    }

    /// Carries out one outcome of the reader.
    ///
    /// - Returns: true if the remaining bytes should be processed.
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
            // The content was being discarded: its request has been answered already.
            if reader.hasOpenContent { linger() } else { answer(error) }
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

    /// Stops sending and waits for the client to read the last response and close, since closing
    /// with unread input would destroy the response (RFC 9112 section 9.6).
    func linger() {
        if !isClear { tls?.sendEnd(to: number) }
        shutdownWrites(number)
        reader = Self.reader(server.limits)
        enter(.lingering)
        updateWatch()
    }

    private func discardInput() {
        let limit = server.limits.lingerBytes
        if progress.discardInput(limit: limit, { receive() }) { close(.complete) }
    }

    /// Closes the connection immediately, together with a response in flight; with `reset` the
    /// client gets a reset instead of an end.
    func close(_ ending: ResponseOutcome.Ending, reset: Bool = false) {
        guard state.phase != .closed else { return }
        enter(.closed)
        watch.cancel(on: server.loop, isClosing: true)
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

    var idleSince: (Idleness, Monotonic)? { state.idleSince(limits: server.limits) }

    func giveWay() {
        ready(.readable, on: server.loop)
        guard idleSince != nil, unacknowledgedBytes(of: number) == 0 else { return }
        close(.complete)
    }

    func cut() { close(.aborted, reset: state.isBusy) }

    func drain() {
        switch state.phase {
        // Its first request may be on the way, and clients do not retry a first request.
        case .fresh:
            state.shortenDeadline(now: server.loop.now)
            armTimer()
        case .idle: close(.complete)
        // The client may not have read the response yet.
        case .body: linger()
        case .head, .handling, .sending, .lingering, .closed: break
        }
    }

    // MARK: Time

    /// Sets the timer, unless it is set for an earlier time.
    private func armTimer() {
        guard let deadline = state.deadline, watch.needsTimer(for: deadline, on: server.loop) else {
            return
        }
        let delay = deadline - server.loop.now
        watch.note(server.loop.schedule(after: delay) { _ in self.timerFired() }, for: deadline)
    }

    private func timerFired() {
        watch.noteFired()
        guard let deadline = state.deadline else { return }
        if server.loop.now < deadline {
            armTimer()
            return
        }
        switch state.expiry {
        case .close:
            if state.phase == .lingering, progress.isReading(unacknowledgedBytes(of: number)) {
                state.lingerLonger(now: server.loop.now, limits: server.limits)
                armTimer()
            } else {
                close(.aborted)
            }
        case .linger: linger()
        case .abort:
            let unread = unacknowledgedBytes(of: number) + (tls?.unsentCount ?? 0)
            if state.extendWriting(unread: unread, now: server.loop.now, limits: server.limits) {
                armTimer()
            } else {
                close(.aborted, reset: true)
            }
        case .answerTimeout: contentFailed(.late)
        }
    }
}

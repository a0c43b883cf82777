// One request of an HTTP/2 connection and its response.
import HTTP
import Posix
import Reactor
import TLS

/// One stream (RFC 9113 section 5), until its response is complete.
///
/// A stream is a reader like a connection of HTTP/1.1: it is limited by its flow control window,
/// that of the connection, and the socket; none of them slows down the flight that it reads.
final class HTTP2Stream: ExchangeCarrier {
    let id: Int32
    let server: ServerLoop
    let peer: SocketAddress?
    let tls: TLSSession?
    /// Nil once the stream is over.
    private(set) var connection: HTTP2Connection?
    private(set) var exchange: Exchange?
    /// True if the client stated the response's priority (RFC 9218).
    var hasPriority = false
    var content = RequestContent()
    private(set) var response: HTTP2Response?
    /// When to check whether the response makes progress; nil for never.
    private(set) var checkAt: Monotonic?
    private var sentAtCheck: Int64 = -1
    private var sentByAllAtCheck: Int64 = -1
    /// The time of the last check that found progress, or no need for it.
    private var movedAt = Monotonic(nanoseconds: 0)
    private var request = Request.none
    private var isRefused = false
    /// True while the request has a place among those that the server answers.
    private var hasPlace = false
    /// True if the server failed to complete the response.
    var isBroken = false

    /// The result of reading the request's fields.
    enum Request {
        /// The field block is not complete.
        case none
        case head(RequestHead, RepeatedHead?)
        case failed(RequestError)
    }

    init(_ id: Int32, on connection: HTTP2Connection) {
        self.id = id
        self.connection = connection
        server = connection.server
        peer = connection.peer
        tls = connection.tls
    }

    /// Reads the head; `open` handles the result.
    func read(_ block: HeaderBlock) {
        if let fault = block.fault {
            request = .failed(fault)
        } else {
            request = server.read(block, isSecure: tls != nil)
        }
    }

    /// True while content of the request is needed.
    var wantsContent: Bool {
        if case .failed = request { return false }
        return !isRefused
    }

    /// Hands the request to the handler.
    func open() {
        switch request {
        case .none: break
        case .failed(let error): refuse(error)
        case .head(let head, let repeated): open(head, repeated)
        }
    }

    private func open(_ head: RequestHead, _ repeated: RepeatedHead?) {
        // Bytes that follow on the stream would be a tunnel's, not content (RFC 9113 section 8.5).
        if head.method == .connect {
            return refuse(RequestError(.notImplemented, "CONNECT is not supported."))
        }
        guard let connection, connection.takePlace() else { return turnAway() }
        hasPlace = true
        var body: RequestBody?
        if !content.isEnded || content.count > 0 {
            var length: Int64?
            if case .length(let declared) = head.bodyFraming, declared > 0 {
                length = declared
            }
            if let length, length > Int64(server.limits.bodyBytes) {
                return refuse(.bodyTooLarge)
            }
            content.mustSendContinue = head.expectsContinue && content.total == 0
            body = RequestBody(length: length, on: self)
        }
        let exchange = Exchange(
            head, body: body, repeated: repeated, on: self, of: server, to: peer)
        self.exchange = exchange
        server.handler.handle(head, body: body, exchange: exchange)
    }

    // MARK: Response

    func respond(to exchange: Exchange, _ head: ResponseHead, _ body: ResponseBody) {
        precondition(exchange === self.exchange, "an answer to a request that is not open")
        send(head, body, isHead: exchange.request.method == .head)
    }

    func sendInterim(_ head: ResponseHead) {
        // Drops an ill-formed interim head, which is optional.
        guard let fields = try? FieldBlock(head, length: nil, dateLine: nil) else { return }
        connection?.submit(fields, on: self, response: nil, isInterim: true)
    }

    /// Answers in the handler's place, and ends the exchange as aborted.
    func answerInstead(_ error: RequestError) {
        let over = exchange
        exchange = nil
        over?.body?.end()
        refuse(error)
        over?.end(ResponseOutcome(status: nil, bodyBytes: 0, ending: .aborted))
    }

    private func refuse(_ error: RequestError) {
        let (head, body) = error.response
        refuse(head, body)
    }

    /// Rejects the request with the response that a connection over the limit gets.
    private func turnAway() {
        var head = ResponseHead(status: .serviceUnavailable)
        head.fields.append(.retryAfter, "1")
        refuse(head, .none)
    }

    /// Sends a response for which no content of the request is needed.
    private func refuse(_ head: ResponseHead, _ body: ResponseBody) {
        isRefused = true
        content.step.end()
        send(head, body, isHead: false)
    }

    private func send(_ head: ResponseHead, _ body: ResponseBody, isHead: Bool) {
        let hasContent = !isHead && !head.status.neverHasContent
        var length: Int64?
        let made = HTTP2Response(status: head.status)
        switch body {
        case .none: length = 0
        case .bytes(let bytes):
            length = Int64(bytes.count)
            if hasContent { made.bytes = bytes[...] }
        case .source(let source, let known):
            length = known
            if hasContent, known != 0 { made.source = source } else { source.cancel() }
        }
        made.length = hasContent ? length : 0
        let showsLength = !head.status.neverHasContent && !(isHead && Self.isNone(body))
        do throws(ResponseHeadError) {
            let fields = try FieldBlock(
                head, length: showsLength ? length : nil, dateLine: server.dateLine())
            response = made
            checkAt = server.loop.now + server.limits.writeTimeout
            connection?.note(checkAt)
            connection?.submit(fields, on: self, response: made, isInterim: false)
        } catch {
            // Rejects a field that would inject a line: the client gets a 500 response instead.
            made.source?.cancel()
            send(ResponseHead(status: .internalServerError), .none, isHead: isHead)
        }
    }

    /// True if there is no body; then a `Content-Length` written by the handler is kept.
    private static func isNone(_ body: ResponseBody) -> Bool {
        if case .none = body { return true }
        return false
    }

    /// Writes the next content into `room`.
    func fill(_ room: UnsafeMutableRawBufferPointer) -> HTTP2Response.Step {
        while let response {
            let step = response.fill(room)
            guard self.response === response else { return .broken }
            guard case .wait = step else { return step }
            response.isWaiting = true
            response.source?.wake = { [weak self] _ in self?.wake() }
            // The source may have called `wake` already.
            if response.isWaiting { return .wait }
        }
        return .broken
    }

    private func wake() {
        guard response?.isWaiting == true else { return }
        response?.isWaiting = false
        connection?.resume(self)
    }

    // MARK: Request content

    func nextContent(of body: RequestBody, limit: Int) -> RequestBody.Step {
        guard body === exchange?.body, let connection else { return .gone }
        if content.total > server.limits.bodyBytes, response == nil {
            answerInstead(.bodyTooLarge)
            return .gone
        }
        let taken = content.take(limit)
        if !taken.isEmpty {
            connection.consume(taken.count, on: self)
            return .bytes(taken)
        }
        if content.isEnded { return .end }
        if content.mustSendContinue, response == nil {
            content.mustSendContinue = false
            sendInterim(ResponseHead(status: .continue))
        }
        return exchange == nil ? .gone : .wait
    }

    func contentIsWanted(of body: RequestBody) {
        guard body === exchange?.body, let connection else { return }
        content.step.want(now: server.loop.now, limits: server.limits)
        connection.note(content.step.deadline)
        if content.hasNews { contentArrived() }
    }

    /// Wakes the handler if it waits for content that has arrived, or for its end.
    func contentArrived() {
        guard content.hasNews, let body = exchange?.body, let wake = body.wake else { return }
        content.step.pause(now: server.loop.now)
        body.wake = nil
        wake(server.loop)
    }

    // MARK: Time

    /// The action for a passed deadline.
    enum Expiry {
        case none, answerTimeout, abort
    }

    /// Checks the stream's deadlines.
    ///
    /// A stream without progress is stuck if the client keeps its window closed, or keeps the
    /// connection's window closed while no stream makes progress; otherwise it waits for its turn.
    /// A window stays closed while the client reads what the window has allowed.
    ///
    /// - Parameters:
    ///   - now: the current time.
    ///   - isWindowOpen: whether the stream's own window allows content to be sent.
    ///   - isSharedWindowOpen: the same for the connection's window.
    ///   - sentByAll: the bytes of content put into frames, of all streams of the connection.
    /// - Returns: the action to take.
    func check(
        now: Monotonic, isWindowOpen: Bool, isSharedWindowOpen: Bool, sentByAll: Int64
    ) -> Expiry {
        if let deadline = content.step.deadline, deadline <= now {
            return response == nil ? .answerTimeout : .abort
        }
        guard let due = checkAt, due <= now, let response else { return .none }
        let isClosed =
            !isWindowOpen || (!isSharedWindowOpen && sentByAll == sentByAllAtCheck)
        let isStuck = isClosed && !response.isWaiting && response.sent == sentAtCheck
        sentAtCheck = response.sent
        sentByAllAtCheck = sentByAll
        checkAt = now + server.limits.writeTimeout
        guard isStuck else {
            movedAt = now
            return .none
        }
        let allowed = isWindowOpen ? sentByAll : response.sent
        return now - movedAt >= Self.readingTime(of: allowed) ? .abort : .none
    }

    /// The bytes per second of the slowest reader that is waited for: audio at 64 kbit/s.
    private static let slowestReading: Int64 = 8 << 10
    /// The largest window that is waited for; browsers have 6 to 12 MiB.
    private static let mostWindow: Int64 = 8 << 20

    /// Returns how long a closed window may stay closed although the client reads.
    ///
    /// Clients send WINDOW_UPDATE once they have read half a window. The size of the window is not
    /// known; it is at most what was sent.
    private static func readingTime(of sent: Int64) -> Interval {
        .seconds(min(sent, mostWindow) / 2 / slowestReading)
    }

    /// The next time to check the stream; nil for never.
    var deadline: Monotonic? {
        guard let due = content.step.deadline else { return checkAt }
        return checkAt.map { min($0, due) } ?? due
    }

    // MARK: End

    /// Releases everything and ends the exchange, once.
    func end(_ ending: ResponseOutcome.Ending) {
        let over = exchange
        let ended = response
        if hasPlace { connection?.leavePlace() }
        hasPlace = false
        exchange = nil
        response = nil
        connection = nil
        checkAt = nil
        over?.body?.end()
        ended?.source?.release()
        over?.end(
            ResponseOutcome(status: ended?.status, bodyBytes: ended?.sent ?? 0, ending: ending))
    }
}

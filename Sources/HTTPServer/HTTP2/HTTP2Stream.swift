// One request of an HTTP/2 connection and its response.
import HTTP
import Posix
import Reactor
import TLS

/// One stream (RFC 9113 section 5), while a response is owed.
///
/// It is a reader like any connection of HTTP/1.1: what holds it back is its flow control window, the
/// connection's, and the socket; none of them holds back the flight that it reads.
final class HTTP2Stream: ExchangeCarrier {
    let id: Int32
    let server: ServerLoop
    let peer: SocketAddress?
    let tls: TLSSession?
    /// Nil once the stream is over.
    private(set) var connection: HTTP2Connection?
    private(set) var exchange: Exchange?
    /// Whether the client said how urgent the response is (RFC 9218).
    var hasPriority = false
    var content = RequestContent()
    private(set) var response: HTTP2Response?
    /// When to look whether content or room for it came; nil for never.
    private(set) var checkAt: Monotonic?
    private var sentAtCheck: Int64 = -1
    private var request = Request.none
    private var isRefused = false
    /// Whether our side could not go on.
    var isBroken = false

    /// What the fields of the request came to.
    enum Request {
        /// They are not whole.
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

    /// Reads the head; what came of it is taken up by `open`.
    func read(_ block: HeaderBlock) {
        if block.isTooLarge {
            request = .failed(
                RequestError(.requestHeaderFieldsTooLarge, "The head is too large."))
        } else if let fault = block.fault {
            request = .failed(RequestError(.badRequest, fault))
        } else {
            request = server.read(block, isSecure: tls != nil)
        }
    }

    /// Whether content of the request is of any use.
    var wantsContent: Bool {
        if case .failed = request { return false }
        return !isRefused
    }

    /// Hands the request to the handler.
    func open() {
        switch request {
        case .none: break
        case .failed(let error): answer(error.status, error.reason)
        case .head(let head, let repeated): open(head, repeated)
        }
    }

    private func open(_ head: RequestHead, _ repeated: RepeatedHead?) {
        // What follows on the stream would be no content of a request (RFC 9113 section 8.5).
        if head.method == .connect {
            return refuse(.notImplemented, "This server opens no tunnels.")
        }
        var body: RequestBody?
        if !content.isEnded || content.count > 0 {
            var length: Int64?
            if case .length(let told) = head.bodyFraming, told > 0 { length = told }
            if let length, length > Int64(server.limits.bodyBytes) {
                return refuse(.contentTooLarge, "The request body is too large.")
            }
            content.owesContinue = head.expectsContinue && content.total == 0
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
        // An ill-formed interim head is left out: it was optional.
        guard let fields = try? FieldBlock(head, length: nil, dateLine: nil) else { return }
        connection?.submit(fields, on: self, response: nil, isInterim: true)
    }

    /// Answers what is no request.
    func answer(_ status: HTTPStatus, _ reason: String) {
        var head = ResponseHead(status: status)
        head.fields.append(.contentType, "text/plain; charset=utf-8")
        send(head, .bytes(Array("client error: \(reason)\n".utf8)), isHead: false)
    }

    /// Ends the exchange, if it is not being answered, and answers in the handler's place.
    func answerInstead(_ status: HTTPStatus, _ reason: String) {
        let over = exchange
        exchange = nil
        over?.body?.end()
        refuse(status, reason)
        over?.end(ResponseOutcome(status: nil, bodyBytes: 0, ending: .aborted))
    }

    private func refuse(_ status: HTTPStatus, _ reason: String) {
        isRefused = true
        content.stop()
        answer(status, reason)
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
        case .source(let source, let told):
            length = told
            if hasContent, told != 0 { made.source = source } else { source.cancel() }
        }
        made.length = hasContent ? length : 0
        let isTold = !head.status.neverHasContent && !(isHead && Self.isNone(body))
        do throws(ResponseHeadError) {
            let fields = try FieldBlock(
                head, length: isTold ? length : nil, dateLine: server.dateLine())
            response = made
            checkAt = server.loop.now + server.limits.writeTimeout
            connection?.note(checkAt)
            connection?.submit(fields, on: self, response: made, isInterim: false)
        } catch {
            // A field that would forge a line: the client gets an answer, but not that one.
            made.source?.cancel()
            send(ResponseHead(status: .internalServerError), .none, isHead: isHead)
        }
    }

    /// A length that the handler wrote itself stands where there is no body to measure.
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
            // It may have been called already.
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
            answerInstead(.contentTooLarge, "The request body is too large.")
            return .gone
        }
        let taken = content.take(limit)
        if !taken.isEmpty {
            connection.consume(taken.count, on: self)
            return .bytes(taken)
        }
        if content.isEnded { return .end }
        if content.owesContinue, response == nil {
            content.owesContinue = false
            sendInterim(ResponseHead(status: .continue))
        }
        return exchange == nil ? .gone : .wait
    }

    func contentIsWanted(of body: RequestBody) {
        guard body === exchange?.body, let connection else { return }
        content.want(now: server.loop.now, limits: server.limits)
        connection.note(content.deadline)
        if content.hasNews { contentArrived() }
    }

    /// Content came, or its end.
    func contentArrived() {
        guard content.hasNews, let body = exchange?.body, let wake = body.wake else { return }
        content.settle(now: server.loop.now)
        body.wake = nil
        wake(server.loop)
    }

    // MARK: Time

    /// What a passed deadline leads to.
    enum Expiry {
        case none, answerTimeout, abort
    }

    /// Looks at the stream's deadlines.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - isWindowOpen: Whether the client lets content be sent.
    /// - Returns: What is to be done.
    func check(now: Monotonic, isWindowOpen: Bool) -> Expiry {
        if let deadline = content.deadline, deadline <= now {
            return response == nil ? .answerTimeout : .abort
        }
        guard let due = checkAt, due <= now, let response else { return .none }
        let isStuck =
            !isWindowOpen && !response.isWaiting && response.sent == sentAtCheck
        sentAtCheck = response.sent
        checkAt = now + server.limits.writeTimeout
        return isStuck ? .abort : .none
    }

    /// When the stream has to be looked at; nil for never.
    var deadline: Monotonic? {
        guard let content = content.deadline else { return checkAt }
        return checkAt.map { min($0, content) } ?? content
    }

    // MARK: End

    /// Lets go of everything and tells the exchange, once.
    func end(_ ending: ResponseOutcome.Ending) {
        let over = exchange
        let ended = response
        exchange = nil
        response = nil
        connection = nil
        checkAt = nil
        over?.body?.end()
        if let source = ended?.source {
            source.wake = nil
            source.cancel()
        }
        over?.end(
            ResponseOutcome(status: ended?.status, bodyBytes: ended?.sent ?? 0, ending: ending))
    }
}

// One request and its response, on one loop.
package import HTTP
package import Posix
package import Reactor
import TLS

/// The response side of one request.
///
/// It belongs to its loop; use a `LoopBound` to carry it through other threads. It may be kept
/// longer than the connection lives; calls then have no effect.
///
/// The properties marked `exclusivity(unchecked)` are read and replaced as a whole, so that
/// accesses cannot overlap.
///
/// Life cycle: open until `respond`; responding until the body is sent; over.
package final class Exchange {
    package let request: RequestHead
    /// The request's content; nil for none.
    package let body: RequestBody?
    package let loop: EventLoop
    /// The client's address; nil for a family other than IPv4 and IPv6.
    package let peer: SocketAddress?
    /// When the request's head was complete.
    package let receivedAt: Monotonic

    /// Called once, on the loop, if the client disconnects before the response is complete.
    @exclusivity(unchecked) package var onCancel: (() -> Void)?
    /// Called once, on the loop, when the response is over, whatever its ending.
    package var onFinish: ((ResponseOutcome) -> Void)? {
        get { finishing }
        set { finishing = newValue }
    }

    /// The head's entry among repeated heads; nil if it has none.
    package let repeated: RepeatedHead?

    /// The log record of the exchange; its `finish` is called after `onFinish`.
    package var record: (any ExchangeRecord)? {
        get { recording }
        set { recording = newValue }
    }

    // As in `EventLoop`: other modules would check accesses to the properties themselves.
    @exclusivity(unchecked) private var finishing: ((ResponseOutcome) -> Void)?
    @exclusivity(unchecked) private var recording: (any ExchangeRecord)?

    /// The properties of the request that the framing of the response depends on.
    let askedFraming: ResponsePlan.AskedFraming
    @exclusivity(unchecked) private var carrier: (any ExchangeCarrier)?
    @exclusivity(unchecked) private var hasResponded = false
    /// Called once if the client shuts its sending side before it is answered.
    @exclusivity(unchecked) private var onHalfClose: (() -> Void)?
    /// Closes the connection of such a client; nil as long as it has not done so.
    @exclusivity(unchecked) private var closeHalfClosed: (() -> Void)?

    init(
        _ request: RequestHead, body: RequestBody?, repeated: RepeatedHead?,
        on carrier: any ExchangeCarrier, of server: ServerLoop, to peer: SocketAddress?
    ) {
        self.request = request
        self.body = body
        self.repeated = repeated
        askedFraming = repeated?.askedFraming ?? ResponsePlan.AskedFraming(request)
        self.carrier = carrier
        loop = server.loop
        self.peer = peer
        receivedAt = server.loop.now
    }

    /// False once the response is over or the client has disconnected.
    package var isAlive: Bool { carrier != nil }

    /// True if the client's connection uses TLS; false once the response is over.
    package var isEncrypted: Bool { carrier?.tls != nil }

    /// The TLS version of the client's connection, such as `TLSv1.3`; nil without TLS and once the
    /// response is over.
    package var tlsVersion: String? { carrier?.tls?.version }

    /// Sends the response; must be called exactly once, never blocks.
    ///
    /// The server writes `Date`, `Connection` and the framing fields. A body that the method or the
    /// status forbids is not sent, although a response to HEAD states its length.
    package func respond(_ head: ResponseHead, body: ResponseBody) {
        precondition(!hasResponded, "a request is answered once")
        precondition(!head.status.isInformational, "an interim response is no answer")
        hasResponded = true
        (onHalfClose, closeHalfClosed) = (nil, nil)
        guard let carrier else {
            if case .source(let source, _) = body { source.cancel() }
            return
        }
        carrier.respond(to: self, head, body)
    }

    /// Sends an interim response (RFC 9110 section 15.2).
    ///
    /// HTTP/1.0 clients, which do not understand it, get none. Neither does one that was answered: an
    /// origin can send one at any time, also to a request that continues a body. It has no content,
    /// and states no length (RFC 9110 section 8.6): clients of HTTP/2 reject one that does.
    package func sendInterim(_ head: ResponseHead) {
        guard !hasResponded, head.status.isInformational, request.version >= .http11 else { return }
        var head = head
        head.fields.remove(.contentLength)
        carrier?.sendInterim(head)
    }

    // MARK: Half-closed clients

    /// Has `body` called, on the loop, once the client has shut its sending side without having been
    /// answered: it has probably closed, which shows only when something is sent to it.
    ///
    /// Replaces the former `body`.
    package func whenHalfClosed(_ body: @escaping () -> Void) {
        guard !hasResponded, carrier != nil else { return }
        onHalfClose = closeHalfClosed == nil ? body : nil
        if closeHalfClosed != nil { body() }
    }

    /// Disconnects a client that has shut its sending side, unless it was answered.
    package func endHalfClosed() { if !hasResponded { closeHalfClosed?() } }

    /// Notes that the client has shut its sending side; `close` disconnects it.
    func noteHalfClosed(_ close: @escaping () -> Void) {
        guard !hasResponded else { return }
        closeHalfClosed = close
        let noticed = onHalfClose
        onHalfClose = nil
        noticed?()
    }

    /// Ends the exchange and calls its callbacks.
    func end(_ outcome: ResponseOutcome) {
        carrier = nil
        (onHalfClose, closeHalfClosed) = (nil, nil)
        hasResponded = hasResponded || outcome.status != nil
        let cancelled = onCancel
        let finished = onFinish
        onCancel = nil
        onFinish = nil
        if outcome.ending == .aborted { cancelled?() }
        finished?(outcome)
        let written = record
        record = nil
        written?.finish(outcome)
    }
}

/// A log record of an exchange.
package protocol ExchangeRecord: AnyObject {
    /// Completes the record when the exchange is over.
    func finish(_ outcome: ResponseOutcome)
}

/// The carrier of an exchange: a connection of HTTP/1.x, or a stream of HTTP/2.
protocol ExchangeCarrier: AnyObject {
    /// The TLS session; nil without TLS.
    var tls: TLSSession? { get }

    /// Starts the response of the open exchange.
    func respond(to exchange: Exchange, _ head: ResponseHead, _ body: ResponseBody)
    /// Sends an interim head; the exchange stays open.
    func sendInterim(_ head: ResponseHead)
    /// Returns the next content of the open request.
    func nextContent(of body: RequestBody, limit: Int) -> RequestBody.Step
    /// Reads more content from the client, since the handler waits for it.
    func contentIsWanted(of body: RequestBody)
}

// One request and its response, on one loop.
package import HTTP
package import Posix
package import Reactor
import TLS

/// Where the answer to one request goes.
///
/// It belongs to its loop; carry it through other threads in a `LoopBound`. It may be kept longer
/// than the connection lives: every call is then without effect.
///
/// The properties marked `exclusivity(unchecked)` are read and replaced as a whole, so that accesses
/// cannot overlap.
///
/// Life: open, until `respond`; responding, until the body is out; over.
package final class Exchange {
    package let request: RequestHead
    /// The content; nil for none.
    package let body: RequestBody?
    package let loop: EventLoop
    /// The client's address; nil for a family other than IPv4 and IPv6.
    package let peer: SocketAddress?
    /// When the request's head was whole.
    package let receivedAt: Monotonic

    /// Called once, on the loop, when the client is gone before the response was complete.
    @exclusivity(unchecked) package var onCancel: (() -> Void)?
    /// Called once, on the loop, when the response is over, in whichever way.
    @exclusivity(unchecked) package var onFinish: ((ResponseOutcome) -> Void)?

    /// The head among those that come again and again; nil where it is none of them.
    package let repeated: RepeatedHead?

    /// What is written down about the exchange; told of its end after `onFinish`.
    @exclusivity(unchecked) package var record: (any ExchangeRecord)?

    /// What the framing of the answer goes by.
    let asked: ResponsePlan.Asked
    @exclusivity(unchecked) private var carrier: (any ExchangeCarrier)?
    @exclusivity(unchecked) private var hasResponded = false

    init(
        _ request: RequestHead, body: RequestBody?, repeated: RepeatedHead? = nil,
        on carrier: any ExchangeCarrier, of server: ServerLoop, to peer: SocketAddress?
    ) {
        self.request = request
        self.body = body
        self.repeated = repeated
        asked = repeated?.asked ?? ResponsePlan.Asked(request)
        self.carrier = carrier
        loop = server.loop
        self.peer = peer
        receivedAt = server.loop.now
    }

    /// False once the response is over or the client gone: nothing more can reach it.
    package var isAlive: Bool { carrier != nil }

    /// Whether the client's connection is under TLS; false once the response is over.
    package var isEncrypted: Bool { carrier?.tls != nil }

    /// Sends the response; exactly once, never blocking.
    ///
    /// The server writes `Date`, `Connection` and the framing fields. A body that the method or
    /// the status forbids is not sent, though its length is told where HEAD asked for it.
    package func respond(_ head: ResponseHead, body: ResponseBody) {
        precondition(!hasResponded, "a request is answered once")
        precondition(!head.status.isInformational, "an interim response is no answer")
        hasResponded = true
        guard let carrier else {
            if case .source(let source, _) = body { source.cancel() }
            return
        }
        carrier.respond(to: self, head, body)
    }

    /// Sends an interim response (RFC 9110 section 15.2), before `respond`; HTTP/1.0 clients,
    /// which cannot read it, get none.
    package func sendInterim(_ head: ResponseHead) {
        precondition(!hasResponded, "an interim response precedes the answer")
        precondition(head.status.isInformational, "only a 1xx status is interim")
        guard request.version >= .http11 else { return }
        carrier?.sendInterim(head)
    }

    /// Ends the exchange and tells its owner.
    func end(_ outcome: ResponseOutcome) {
        carrier = nil
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

/// Writes an exchange down.
package protocol ExchangeRecord: AnyObject {
    /// The exchange is over.
    func finish(_ outcome: ResponseOutcome)
}

/// What an exchange came on: a connection of HTTP/1.x, or a stream of HTTP/2.
protocol ExchangeCarrier: AnyObject {
    /// Nil in the clear.
    var tls: TLSSession? { get }

    /// Starts the response of the open exchange.
    func respond(to exchange: Exchange, _ head: ResponseHead, _ body: ResponseBody)
    /// Sends an interim head; the exchange stays open.
    func sendInterim(_ head: ResponseHead)
    /// The next content of the open request.
    func nextContent(of body: RequestBody, limit: Int) -> RequestBody.Step
    /// Somebody waits for more content: the client may send again, and has to.
    func contentIsWanted(of body: RequestBody)
}

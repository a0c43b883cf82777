// One request that no cache may answer: it is sent to a mount's origin once, with its body, and the
// origin's response is returned unchanged.
//
// Bodies run through two pipes of bounded size and are not stored: the receiver's speed limits the
// sender. Nothing is ever sent twice: a request that failed after its first byte may have taken
// effect (RFC 9110 section 9.2.2).
import CachePolicy
import HTTP
import HTTPServer
import Logging
import Model
import Origin
import Reactor
import Routing
import Upstream
import URISyntax

/// The destination of a passed-through request.
struct PassthroughTarget: Sendable {
    let mount: Mount
    let url: AbsoluteURL
    /// What the request moves or copies its resource to, at the origin; nil for nothing.
    let destination: AbsoluteURL?
    /// The end-to-end fields of the request, with those that Sluice adds.
    let fields: Fields
}

/// The server half of a passed-through request.
///
/// Bound to its server loop; `PassthroughFlight` is its half on the upstream loop.
final class Passthrough {
    private let core: ProxyCore
    private let exchange: Exchange
    private let target: PassthroughTarget
    private let upload: BytePipe?
    private let download = BytePipe()
    private let id = FetchID()
    private var isOver = false

    init(core: ProxyCore, exchange: Exchange, target: PassthroughTarget) {
        self.core = core
        self.exchange = exchange
        self.target = target
        upload = exchange.body == nil ? nil : BytePipe()
    }

    /// Sends the request on.
    func start() {
        exchange.accessRecord?.note(passing: target.url)
        let request = transferRequest()
        let bound = LoopBound(self, to: exchange.loop)
        // The client's body is read, with 100 Continue if needed, once the origin accepts it.
        upload?.whenWanted { bound.enqueue { this, _ in this.passBody() } }
        exchange.onFinish = { [self] outcome in finish(outcome) }
        core.flights.passThrough(request, id: id, into: download) { event in
            bound.enqueue { this, _ in this.receive(event) }
        }
    }

    private func transferRequest() -> TransferRequest {
        let method = exchange.request.method
        let user = core.keys.mountUsers.user(of: target.url)
        var request = TransferRequest(url: target.url.authorized(as: user))
        request.method = method
        request.fields = target.fields
        if let user { request.originFields = user.fields(for: target.url) }
        request.upload = upload.map {
            Upload(
                pipe: $0, length: exchange.body?.length,
                expectsContinue: exchange.request.expectsContinue)
        }
        request.isTransparent = true
        request.usesFreshConnection = upload != nil || !method.isSafe
        request.followsRedirects = false
        request.timeouts = core.settings.timeouts
        // The client sees each interim response.
        request.timeouts.head = nil
        if exchange.record != nil {
            let trace = TransferTrace()
            request.trace = trace
            exchange.note { trace }
        }
        return request
    }

    // MARK: The request's body

    private func passBody() {
        guard let body = exchange.body, let upload, !isOver else { return }
        while true {
            switch body.next() {
            case .bytes(let bytes):
                let bound = LoopBound(self, to: exchange.loop)
                let hasRoom = bytes.withUnsafeBytes { raw in
                    upload.write(raw) { bound.enqueue { this, _ in this.passBody() } }
                }
                if !hasRoom { return }
            case .wait:
                body.wake = { [self] _ in passBody() }
                return
            case .end:
                return upload.end(isWhole: true)
            case .gone:
                return upload.end(isWhole: false)
            }
        }
    }

    // MARK: The response

    private func receive(_ event: PassthroughEvent) {
        guard exchange.isAlive, !isOver else { return }
        switch event {
        // Once the body is read, which this leads to, the client is sent one of its own.
        case .interim(let head) where head.status == .continue: break
        case .interim(let head):
            // Hop-by-hop fields are removed from interim heads too.
            exchange.sendInterim(
                ResponseHead(status: head.status, fields: endToEndFields(head.fields)))
        case .head(let head):
            answer(head)
        case .failed(let error):
            fail(ProxyFailure(error, subject: target.url.redacted))
        }
    }

    private func answer(_ head: TransferHead) {
        let method = exchange.request.method
        core.invalidate(after: method, head.status, head.fields, url: target.url)
        if let destination = target.destination {
            core.invalidate(after: method, head.status, Fields(), url: destination)
        }
        core.counters.add(.bypassed)
        exchange.accessRecord?.notePassed(.method)
        core.log.debug(
            "forwarded",
            metadata: [
                "url": "\(target.url.redacted)", "method": "\(method)",
                "status": "\(head.status.rawValue)",
            ])
        var fields = endToEndFields(head.fields)
        // A 204 must not have Content-Length (RFC 9110 section 8.6).
        if head.status == .noContent { fields.remove(.contentLength) }
        target.mount.localise(&fields, of: target.url, for: exchange.request, core.settings)
        var status = CacheStatus(cache: "sluice", forward: .method)
        status.forwardStatus = head.status
        status.append(to: &fields)
        let length = head.contentLength
        let response = ResponseHead(status: head.status, fields: fields)
        guard !head.status.neverHasContent, length != 0 else {
            return exchange.respond(response, body: .none)
        }
        let source = PipeSource(download, on: exchange.loop)
        exchange.respond(response, body: .source(source, length: length))
    }

    private func fail(_ failure: ProxyFailure) {
        core.counters.add(failure.fault == .us ? .ownErrors : .originErrors)
        exchange.accessRecord?.note(failure, nil)
        core.log.notice(
            "request not forwarded",
            metadata: [
                "status": "\(failure.status.rawValue)", "reason": "\(failure.message)",
                "error": "\(failure.proxyError?.rawValue ?? "-")",
            ])
        let (made, body) = AnswerHead.failure(
            failure, request: exchange.request, settings: core.settings)
        var head = made
        let status = CacheStatus(cache: "sluice", forward: .method)
        head.fields.set(.cacheStatus, status.serialised)
        exchange.respond(head, body: .bytes(body))
    }

    /// Ends everything behind the exchange once that is over, however it ended.
    private func finish(_ outcome: ResponseOutcome) {
        isOver = true
        core.counters.noteLeft(outcome)
        core.counters.add(.bytesToPlayers, outcome.bodyBytes)
        upload?.end(isWhole: false)
        download.close()
        core.flights.cancelPassthrough(id)
    }
}

/// A response body that is read from a pipe.
private final class PipeSource: BodySource {
    private let pipe: BytePipe
    private let loop: EventLoop
    private var current: ArraySlice<UInt8> = []
    private var isOver = false

    var wake: ((EventLoop) -> Void)? {
        didSet { if wake != nil, hasNews { wakeNow() } }
    }

    /// True if the pipe has called since it was last found empty.
    private var hasNews = false

    init(_ pipe: BytePipe, on loop: EventLoop) {
        self.pipe = pipe
        self.loop = loop
    }

    func next(limit: Int) -> BodyStep {
        if current.isEmpty {
            hasNews = false
            let bound = LoopBound(self, to: loop)
            switch pipe.take(whenMore: { bound.enqueue { source, _ in source.moreCame() } }) {
            case .bytes(let bytes): current = bytes[...]
            case .wait: return .wait
            case .end: return .end
            case .broken: return .broken
            }
        }
        return .bytes(current.prefix(limit))
    }

    func advance(by count: Int) { current.removeFirst(count) }

    func cancel() {
        isOver = true
        wake = nil
        pipe.close()
    }

    private func moreCame() {
        guard !isOver else { return }
        hasNews = true
        wakeNow()
    }

    private func wakeNow() {
        let wake = self.wake
        self.wake = nil
        wake?(loop)
    }
}

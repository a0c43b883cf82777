// The periodic events of `/api/events`; requests are reported by their records.
import Ahead
import Console
import HLS
import HTTP
import HTTPServer
import Library
import Model
import Origin
import Posix
import Reactor
import Routing
import Upstream
import URISyntax

/// The periodic events to one listener; bound to its loop.
///
/// | event | every | is |
/// |---|---|---|
/// | `figures` | second | the members of `/api/stats`, and the origins that do not answer |
/// | `origins` | 2 s | the first rows of `/api/origins` |
/// | `downloads` | 2 s | the answer of `/api/downloads` with at most 200 of them |
/// | `disk` | 30 s, after the former one | the answer of `/api/df` |
final class ConsoleEvents {
    private static let period = Interval.seconds(1 as Int64)
    private static let mostOrigins = 32
    /// Of more downloads the event would be longer than what may be pending for a listener.
    private static let downloads = "/api/downloads?limit=200"

    private let core: ProxyCore
    private let status: StatusSource
    private var turn = 0
    /// True while the answer about the disk has not come: a walk through a large index takes longer
    /// than a turn if purges wait before it.
    private var awaitsDisk = false

    init(_ core: ProxyCore, _ status: StatusSource) {
        self.core = core
        self.status = status
    }

    /// Answers a request for the events.
    func begin(_ exchange: Exchange) {
        guard let stream = core.events.join(on: exchange.loop) else {
            var fields = Fields()
            fields.append(.contentType, "text/plain; charset=utf-8")
            fields.append(.cacheControl, "no-store")
            fields.append(.retryAfter, "10")
            let failure = ProxyFailure(
                .client, .serviceUnavailable,
                "\(EventFeed.mostListeners) pages listen already; close one of them")
            core.counters.add(.clientErrors)
            exchange.accessRecord?.note(refusedPage: failure)
            return exchange.respond(
                ResponseHead(status: failure.status, fields: fields),
                body: .bytes(Array(failure.text.utf8)))
        }
        var fields = Fields()
        fields.append(.contentType, "text/event-stream")
        fields.append(.cacheControl, "no-store")
        fields.append("X-Accel-Buffering", "no")
        fields.append("X-Content-Type-Options", "nosniff")
        core.respond(
            exchange, own: ResponseHead(status: .ok, fields: fields),
            body: .source(stream, length: nil))
        let hasToken = core.settings.token != nil
        stream.send(
            "hello",
            .object([
                .init("version", .text(status.version)), .init("token", .truth(hasToken)),
                .init("base", .text(core.settings.basePath)),
            ]))
        tick(stream, exchange.loop)
    }

    private func tick(_ stream: EventStream, _ loop: EventLoop) {
        guard !stream.isOver else { return }
        let (core, turn) = (core, turn)
        Figures.gather(core, status, on: loop) { figures in
            guard !stream.isOver else { return }
            stream.send("figures", Self.figures(figures, core.origins.health))
            if turn % 2 == 0 {
                let rows = figures.transfers.originsJSON(
                    core.origins, hostLimits: core.settings.hostLimits,
                    limit: Self.mostOrigins)
                stream.send("origins", rows)
            }
        }
        if turn % 2 == 0 {
            status.downloads.answer(.get, Self.downloads, to(stream, loop, "downloads"))
        }
        if turn % 30 == 0 { askDisk(stream, loop) }
        self.turn += 1
        loop.schedule(after: Self.period) { [self] loop in tick(stream, loop) }
    }

    private func askDisk(_ stream: EventStream, _ loop: EventLoop) {
        guard !awaitsDisk else { return }
        awaitsDisk = true
        let events = LoopBound(self, to: loop)
        let send = to(stream, loop, "disk")
        let done: @Sendable (AdministrationAnswer) -> Void = { answer in
            events.enqueue { events, _ in events.awaitsDisk = false }
            send(answer)
        }
        status.administration.answer(.get, "/api/df", done)
    }

    /// Returns a callback that passes another thread's answer to the listener; failures are
    /// dropped, since the next turn asks again.
    private func to(
        _ stream: EventStream, _ loop: EventLoop, _ event: String
    ) -> @Sendable (AdministrationAnswer) -> Void {
        let bound = LoopBound(stream, to: loop)
        return { answer in
            guard case .value(_, let value) = answer else { return }
            bound.enqueue { stream, _ in
                if !stream.isOver { stream.send(event, value) }
            }
        }
    }

    private static func figures(_ figures: Figures, _ health: OriginHealth) -> JSONValue {
        let now = Monotonic.now()
        let outages = health.marked.prefix(mostOrigins).map { origin, mark in
            JSONValue.object([
                .init("origin", .text(origin.description)), .init("state", .text("\(mark.state)")),
                .init("seconds", .number((now - mark.since).nanoseconds / 1_000_000_000)),
                .init("reason", .text(mark.reason)),
            ])
        }
        return .object([
            .init("at", .number(WallTime.now().nanoseconds / 1_000_000)),
            .init("figures", figures.json), .init("outages", .list(Array(outages))),
        ])
    }
}

extension EventFeed {
    /// Reports a finished ahead fetch, with the members of a request.
    func publish(_ fetch: AheadFetch) {
        guard hasListeners else { return }
        let came = WallTime.now().nanoseconds - fetch.took.nanoseconds
        let resource = fetch.resource
        let role = resource.role.map { String(UnicodeScalar($0.letter)) }
        publish(
            "request",
            .object([
                .init("at", .number(came / 1_000_000)), .init("method", .text("GET")),
                .init("status", .optional(fetch.status)), .init("bytes", .number(fetch.bytes)),
                .init("ms", .fraction(fetch.took.inMilliseconds)), .init("outcome", .text("ahead")),
                .init("role", role.map(JSONValue.text) ?? .null),
                .init("title", .text(resource.session.id.text)),
                .init("url", .text(resource.url.redacted)),
                .init("origin", fetch.report?.fields.json ?? .null),
            ]))
    }
}

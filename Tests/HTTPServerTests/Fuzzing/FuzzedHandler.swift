// A handler that answers in every possible way, and an account of the reports to it.
import HTTP
import HTTPServer
import Posix
import Reactor
import Synchronization

/// The outcomes of exchanges and sources, over all loops.
final class ExchangeAccount: Sendable {
    struct Counts: Equatable {
        var exchanges = 0
        var ends = 0
        var sources = 0
        var cancels = 0
        /// Exchanges whose end was reported, and sources that were cancelled, more than once.
        var repeats = 0

        var isSettled: Bool { exchanges == ends && sources == cancels }
    }

    private let held = Mutex(Counts())

    var counts: Counts { held.withLock { $0 } }

    func note(_ change: (inout Counts) -> Void) { held.withLock { change(&$0) } }
}

/// Answers by the path.
final class FuzzedHandler: RequestHandler {
    enum Kind: String, CaseIterable {
        case bytes, long, none, interim, file, shortFile, pieces, breaks, endless, stalled, hasty
        case late, never, collect, sip, illFormed, noContent
    }

    private let account: ExchangeAccount
    private let loop: EventLoop
    private let file: SharedDescriptor
    private static let long = pattern(300_000)

    init(_ account: ExchangeAccount, file: SharedDescriptor, on loop: EventLoop) {
        self.account = account
        self.file = file
        self.loop = loop
    }

    func handle(_ request: RequestHead, body: RequestBody?, exchange: Exchange) {
        account.note { $0.exchanges += 1 }
        let account = account
        var isOver = false
        exchange.onFinish = { _ in
            account.note {
                $0.ends += 1; if isOver { $0.repeats += 1 }
            }
            isOver = true
        }
        let kind = Kind(rawValue: String(request.path.dropFirst())) ?? .bytes
        switch kind {
        case .bytes: exchange.respond(ok(), body: .bytes(Array(request.path.utf8)))
        case .long: exchange.respond(ok(), body: .bytes(Self.long))
        case .none: exchange.respond(ok(), body: .none)
        case .noContent:
            let source = CountedSource(EndlessSource(Record()), account)
            exchange.respond(ResponseHead(status: .noContent), body: .source(source, length: nil))
        case .interim:
            exchange.sendInterim(ResponseHead(status: .earlyHints))
            exchange.sendInterim(ResponseHead(status: .earlyHints))
            exchange.respond(ok(("x-a", "b")), body: .bytes([0x2A]))
        case .illFormed: exchange.respond(ok(("x-a", "b\r\nc: d")), body: .bytes([0x2A]))
        case .late:
            loop.schedule(after: .milliseconds(3)) { _ in
                exchange.respond(ok(), body: .bytes(Self.long))
            }
        case .never:
            // Long enough for its client to leave; the handler must answer all the same.
            loop.schedule(after: .milliseconds(200)) { [self] _ in
                answer(exchange, EndlessSource(Record()), length: 100_000)
            }
        case .file: answer(exchange, FileSource(file, 0..<200_000), length: 200_000)
        case .shortFile: answer(exchange, FileSource(file, 0..<300_000), length: 300_000)
        case .pieces, .breaks:
            let source = PieceSource(
                [pattern(1000), pattern(70_000)], pause: .milliseconds(1),
                breaks: kind == .breaks, on: loop)
            answer(exchange, source, length: nil)
        case .endless: answer(exchange, EndlessSource(Record()), length: nil)
        case .stalled: answer(exchange, StalledSource(Record()), length: 5)
        case .hasty: answer(exchange, HastySource(waits: 20, on: loop), length: 20)
        case .collect: collect(body, exchange)
        case .sip:
            _ = body?.next(limit: 1)
            exchange.respond(ok(), body: .bytes([0x2A]))
        }
    }

    private func answer(_ exchange: Exchange, _ source: any BodySource, length: Int64?) {
        exchange.respond(ok(), body: .source(CountedSource(source, account), length: length))
    }

    /// Answers when all content has come.
    private func collect(_ body: RequestBody?, _ exchange: Exchange) {
        guard let body else { return exchange.respond(ok(), body: .none) }
        while true {
            switch body.next() {
            case .bytes: continue
            case .wait:
                body.wake = { [self] _ in collect(body, exchange) }
                return
            case .end: return exchange.respond(ok(), body: .bytes([0x2A]))
            case .gone: return
            }
        }
    }
}

/// Counts how often a source is cancelled.
private final class CountedSource: BodySource {
    private let source: any BodySource
    private let account: ExchangeAccount
    private var isOver = false

    init(_ source: any BodySource, _ account: ExchangeAccount) {
        self.source = source
        self.account = account
        account.note { $0.sources += 1 }
    }

    var wake: ((EventLoop) -> Void)? {
        get { source.wake }
        set { source.wake = newValue }
    }

    func next(limit: Int) -> BodyStep { source.next(limit: limit) }
    func advance(by count: Int) { source.advance(by: count) }

    func cancel() {
        account.note {
            $0.cancels += 1; if isOver { $0.repeats += 1 }
        }
        isOver = true
        source.cancel()
    }
}

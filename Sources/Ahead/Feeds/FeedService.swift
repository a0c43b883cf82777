// Responds to `/api/feeds`: directly where a server loop can, otherwise through the thread of the
// feeds.
import DurableState
import HTTP
package import HTTPServer
package import Library
import Lookahead
import Model
import Numbers
import Routing
import Store
import Synchronization
import URISyntax

/// The requests for feeds; one instance for all loops, usable from any thread.
package final class FeedService: Sendable {
    /// The number of entries of each feed, known without its thread, so that a swipe gets an
    /// immediate response.
    private let entryCounts = Mutex<[String: Int]>([:])
    /// The reasons of feeds that are paused after a restart, by name.
    private let paused = Mutex<[String: String]>([:])
    /// The feeds of the previous run that are not restored yet.
    ///
    /// Requests for them are answered after the restore, which takes seconds for many long feeds.
    private let unread = Mutex<Set<String>>([])

    /// The most feeds; further ones are rejected.
    private static let mostFeeds = 64
    /// The largest body of an order in bytes.
    private static let mostBytes = 16 << 20
    private static let path = "/api/feeds"

    private let observer: LookaheadObserver
    private let services: AheadServices

    package init(_ observer: LookaheadObserver, _ services: AheadServices) {
        self.observer = observer
        self.services = services
    }

    package static func answers(_ path: String) -> Bool {
        path == Self.path || path.hasPrefix(Self.path + "/")
    }

    // MARK: Requests

    /// Responds to a request; `reply` is called once, on any thread.
    package func answer(
        _ exchange: Exchange,
        _ reply: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        let request = exchange.request
        let rest = request.path.dropFirst(Self.path.utf8.count).drop { $0 == "/" }
        let parts = rest.split(separator: "/", omittingEmptySubsequences: false).map {
            PercentCoding.decode($0)
        }
        guard let name = parts.first, !name.isEmpty else {
            guard request.method == .get || request.method == .head else {
                return reply(
                    .methodNotAllowed(
                        allowed: [.get, .head], "the list of feeds can only be read"))
            }
            return observer.enqueue { driver, _ in
                reply(.value(.ok, .list(driver.feeds.values.map { $0.comparedState() })))
            }
        }
        guard Self.isName(name) else {
            return reply(
                .failure(.badRequest, "a feed's name has 1 to 64 letters, digits and -._~"))
        }
        switch (parts.count, parts.last ?? "", request.method) {
        case (1, _, .put): put(name, exchange, reply)
        case (1, _, .get), (1, _, .head):
            observer.enqueue { driver, _ in
                guard let feed = driver.feeds[name] else { return reply(Self.unknown(name)) }
                reply(.value(.ok, feed.comparedState()))
            }
        case (1, _, .delete): remove(name, reply)
        case (2, "position", .post): move(name, request, reply)
        case (1, _, _):
            reply(
                .methodNotAllowed(
                    allowed: [.get, .head, .put, .delete], "a feed takes GET, PUT and DELETE"))
        case (2, "position", _):
            reply(.methodNotAllowed(allowed: [.post], "the position is set with POST"))
        default: reply(.failure(.notFound, "a feed has a position, and nothing else"))
        }
    }

    private static func isName(_ name: String) -> Bool {
        name.utf8.count <= 64
            && name.utf8.allSatisfy { PercentCoding.Allowed.unreserved.contains($0) }
    }

    private static func unknown(_ name: String) -> AdministrationAnswer {
        .failure(.notFound, "there is no feed \(name); PUT \(path)/\(name) makes one")
    }

    /// Handles a swipe; responds immediately, even while the planner is busy.
    private func move(
        _ name: String, _ request: RequestHead,
        _ reply: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        let items = request.queryItems
        guard let text = items.first(where: { $0.rawName == "index" })?.value(),
            let index = ExternalNumber.integer(text, in: 0...ExternalNumber.largest)
        else { return reply(.failure(.badRequest, "a position needs ?index=<place in the list>")) }
        var direction: FeedPlanner.Direction?
        if let text = items.first(where: { $0.rawName == "direction" })?.value() {
            guard let parsed = FeedPlanner.Direction(rawValue: text) else {
                return reply(.failure(.badRequest, "direction is forward or backward"))
            }
            direction = parsed
        }
        let moved = AdministrationAnswer.value(
            .ok, .object([.init("name", .text(name)), .init("index", .number(Int64(index)))]))
        if isUnread(name) {
            return observer.enqueue { [self, direction] driver, _ in
                if let refusal = refusal(of: name, at: index) { return reply(refusal) }
                driver.feeds[name]?.move(to: index, direction)
                reply(moved)
            }
        }
        if let refusal = refusal(of: name, at: index) { return reply(refusal) }
        observer.enqueue { [direction] driver, _ in
            driver.feeds[name]?.move(to: index, direction)
        }
        reply(moved)
    }

    /// Returns why a feed cannot be moved to a place; nil if it can.
    private func refusal(of name: String, at index: Int) -> AdministrationAnswer? {
        guard let count = entryCounts.withLock({ $0[name] }) else { return Self.unknown(name) }
        guard (0..<count).contains(index) else {
            return .failure(
                .badRequest, "index \(index) is outside of the feed: 0...\(count - 1)")
        }
        guard let reason = paused.withLock({ $0[name] }) else { return nil }
        return .failure(
            .conflict, "the feed \(name) is paused: \(reason), by PUT \(Self.path)/\(name)")
    }

    private func remove(
        _ name: String, _ reply: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        let ended = AdministrationAnswer.value(
            .ok, .object([.init("name", .text(name)), .init("ended", .truth(true))]))
        if isUnread(name) {
            return observer.enqueue { [self] driver, _ in
                guard driver.feeds[name] != nil else { return reply(Self.unknown(name)) }
                remove(name, driver)
                reply(ended)
            }
        }
        guard entryCounts.withLock({ $0.removeValue(forKey: name) }) != nil else {
            return reply(Self.unknown(name))
        }
        // An order that was given before may be installed first.
        observer.enqueue { [self] driver, _ in remove(name, driver) }
        reply(ended)
    }

    private func remove(_ name: String, _ driver: LookaheadDriver) {
        driver.feeds.removeValue(forKey: name)?.end()
        entryCounts.withLock { $0[name] = nil }
        paused.withLock { $0[name] = nil }
        services.store.state.remove(FeedRecord.self, key: [.text(name)])
    }

    /// True until a feed of the previous run is restored; must be checked before other facts about
    /// it.
    private func isUnread(_ name: String) -> Bool { unread.withLock { $0.contains(name) } }

    // MARK: Orders

    private func put(
        _ name: String, _ exchange: Exchange,
        _ reply: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        var agent = Fields()
        if let text = exchange.request.fields.first(.userAgent) { agent.append(.userAgent, text) }
        let isOneTooMany = entryCounts.withLock { $0[name] == nil && $0.count >= Self.mostFeeds }
        guard !isOneTooMany else { return reply(Self.tooMany) }
        collect(exchange, Collected()) { [self, agent] body in
            guard let body else {
                return reply(
                    .failure(.contentTooLarge, "an order has at most \(Self.mostBytes) bytes"))
            }
            observer.enqueue { [self] driver, _ in
                reply(take(body, name, agent, driver))
            }
        }
    }

    private static let tooMany = AdministrationAnswer.failure(
        .serviceUnavailable,
        "there are \(mostFeeds) feeds already; DELETE one that is not used")

    /// The part of a body received so far.
    private final class Collected {
        var bytes: [UInt8] = []
    }

    /// Reads the body to its end; nil if it is too long.
    ///
    /// `sofar` is shared by all calls, so that a body that arrives byte by byte is not copied each
    /// time.
    private func collect(
        _ exchange: Exchange, _ sofar: Collected, _ done: @escaping ([UInt8]?) -> Void
    ) {
        guard let body = exchange.body else { return done(sofar.bytes) }
        while true {
            switch body.next() {
            case .bytes(let chunk):
                sofar.bytes += chunk
                guard sofar.bytes.count <= Self.mostBytes else { return done(nil) }
            case .wait:
                body.wake = { [self] _ in collect(exchange, sofar, done) }
                return
            case .end: return done(sofar.bytes)
            case .gone: return
            }
        }
    }

    private func take(
        _ body: [UInt8], _ name: String, _ agent: Fields, _ driver: LookaheadDriver
    ) -> AdministrationAnswer {
        // Others may have been made since the request came.
        guard driver.feeds[name] != nil || driver.feeds.count < Self.mostFeeds else {
            return Self.tooMany
        }
        let order: FeedOrder
        do throws(FeedOrder.Fault) {
            order = try self.order(body)
        } catch {
            return .failure(.badRequest, error.description)
        }
        services.store.state.put(FeedRecord(name: name, body: body))
        let feed = install(order, name, agent, driver)
        feed.start()
        return .value(.ok, feed.state)
    }

    /// Parses an order; URLs of this daemon, which the client plays, mean the origin's.
    private func order(
        _ body: [UInt8], isSaved: Bool = false
    ) throws(FeedOrder.Fault) -> FeedOrder {
        try FeedOrder(parsing: body, isSaved: isSaved) { [services] url in
            guard services.addresses.contains(url) else { return Entry(url: url) }
            guard let entry = services.titleStart(url.text)?.entry,
                !services.addresses.contains(entry.url)
            else { return nil }
            return entry
        }
    }

    private func install(
        _ order: FeedOrder, _ name: String, _ agent: Fields, _ driver: LookaheadDriver
    ) -> Feed {
        driver.feeds[name]?.end()
        paused.withLock { $0[name] = nil }
        let feed = Feed(name, order, driver: driver, agent: agent)
        driver.feeds[name] = feed
        entryCounts.withLock { $0[name] = order.items.count }
        observer.turnOn()
        return feed
    }

    /// Restores the feeds of the previous run; nothing is fetched for them until their client
    /// reports its position.
    ///
    /// Must be called before the server listens: its requests then come after the restoring, which
    /// runs on the thread of the feeds.
    package func restore() {
        let records = services.store.state.records(FeedRecord.self)
        unread.withLock { $0 = Set(records.map(\.name)) }
        observer.enqueue { [self] driver, _ in
            for record in records { restore(record, driver) }
            unread.withLock { $0 = [] }
        }
    }

    private func restore(_ record: FeedRecord, _ driver: LookaheadDriver) {
        let name = record.name
        guard !name.isEmpty, Self.isName(name),
            let order = try? self.order(record.body, isSaved: true)
        else { return }
        let feed = install(order, name, Fields(), driver)
        guard let reason = services.crashes.verdict(on: .feed, name) else { return }
        feed.pauseReason = reason
        paused.withLock { $0[name] = reason }
    }
}

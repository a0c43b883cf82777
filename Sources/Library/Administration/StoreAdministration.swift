// Administration of the store: list, pin, purge, verify, disk usage. Used by the daemon's pages and
// by the commands that open a folder while no daemon runs.
package import HTTP
import Model
import Posix
import Routing
package import Store
import Synchronization
import URISyntax

/// Responds to the requests under `/api/` that read or change the store.
///
/// Every response blocks on the disk, a long listing for up to two seconds: it needs a thread of
/// its own, never a server loop.
package final class StoreAdministration: Sendable {
    /// Returns the entry of the title that a text names, an origin's URL or one of this daemon with
    /// its headers; nil if it names none.
    package typealias NamedStart = @Sendable (_ text: String) -> TitleStart?
    /// Whether everything that a purge or clear must spare is pinned.
    package enum Pinning: Sendable {
        case done, underWay
        /// Something cannot be pinned, with the reason in words.
        case failed(String)
    }

    /// Called with purges before anything is removed, and with none before a clear that spares
    /// pinned titles.
    package typealias WillPurge = @Sendable (_ orders: [PurgeOrder]) -> Pinning
    /// Called with the numbers of titles after objects of theirs, or objects that their pins name,
    /// were removed, or may have been.
    package typealias DidRemove = @Sendable (_ titles: Set<UInt64>) -> Void

    /// The other caches that may have what is purged or unpinned here.
    package struct Others: Sendable {
        /// True with a shared store: the nodes that use it repeat the change.
        package let hasNodes: Bool
        /// True if parents are asked past what they had stored of what was purged.
        package let hasParents: Bool

        package init(hasNodes: Bool = false, hasParents: Bool = false) {
            self.hasNodes = hasNodes
            self.hasParents = hasParents
        }
    }

    package let catalogue: TitleCatalogue
    /// The limits from the settings, if they differ from those the store was opened with.
    package let allowance: StoreConfiguration?
    private let namedStart: NamedStart
    /// True if the daemon makes pictures of titles.
    let hasPictures: Bool
    let verification: StoreVerification
    let purging: StorePurge
    let willPurge: WillPurge?
    let others: Others
    let removals = RemovalNotices()
    /// The order of the titles in the last listing.
    private let listing = Mutex(
        CostlyResult<[TitlePlace]>(usedAtLeast: .seconds(60 as Int64)))
    private let figures = TitleFigures()
    let lastUse = KnownDiskUse()

    package var store: ObjectStore { catalogue.store }

    package init(
        catalogue: TitleCatalogue, allowance: StoreConfiguration? = nil,
        hasPictures: Bool = false, others: Others = Others(), origin: @escaping NamedStart,
        willPurge: WillPurge? = nil
    ) {
        self.catalogue = catalogue
        self.allowance = allowance
        namedStart = origin
        self.hasPictures = hasPictures
        self.others = others
        self.willPurge = willPurge
        verification = StoreVerification(store: catalogue.store, use: lastUse)
        purging = StorePurge(
            store: catalogue.store, willPurge: willPurge, removals: removals, use: lastUse)
    }

    /// Tells which titles lose objects, before the answer that reports it; on any thread.
    package func follow(removals listener: @escaping DidRemove) { removals.follow(listener) }

    /// Stops background work; blocks until it has ended.
    package func stop() {
        store.endWaits()
        purging.stop()
        verification.stop()
    }

    /// True if this service responds to a path.
    package static func answers(_ path: String) -> Bool {
        path.hasPrefix("/api/titles/") || methods[path] != nil
    }

    /// True if a request changes something, so that pages of other sites must not send it.
    package static func changes(_ method: HTTPMethod) -> Bool {
        method != .get && method != .head
    }

    /// True for a request that walks through titles or the whole index and changes nothing.
    static func lists(_ method: HTTPMethod, _ target: String) -> Bool {
        let path = target.prefix { $0 != "?" }
        return !changes(method)
            && (path == "/api/titles" || path == "/api/df" || path.hasPrefix("/api/titles/"))
    }

    private static let methods: [String: [HTTPMethod]] = [
        "/api/titles": [.get, .head], "/api/df": [.get, .head], "/api/pin": [.post],
        "/api/unpin": [.post], "/api/purge": [.get, .head, .post],
        "/api/clear": [.get, .head, .post], "/api/verify": [.get, .head, .post],
    ]

    /// Responds to a request; blocks.
    package func answer(_ method: HTTPMethod, _ target: String) -> AdministrationAnswer {
        let request = RequestHead(method: method, target: target)
        store.catchUp(within: .seconds(2 as Int64))
        let arguments = AdministrationQuery(request.query ?? "")
        defer { if Self.changes(method) { lastUse.forget() } }
        // HEAD is answered as GET; the server leaves the body out.
        let asked = method == .head ? .get : method
        do throws(AdministrationRefusal) {
            switch (request.path, asked) {
            case ("/api/titles", .get): return try titles(arguments)
            case ("/api/df", .get): return diskUse()
            case ("/api/verify", .get): return verification.answer
            case ("/api/verify", .post): return verification.start()
            case ("/api/pin", .post): return try pin(arguments)
            case ("/api/unpin", .post): return try unpin(arguments)
            case ("/api/purge", .post): return try purge(arguments)
            case ("/api/purge", .get): return purging.answer
            case ("/api/clear", .post): return try clear(arguments)
            case ("/api/clear", .get): return clearing
            case (let path, .get) where path.hasPrefix("/api/titles/"):
                // The rest may be a URL with its own query, not encoded.
                let text = PercentCoding.decode(target.dropFirst("/api/titles/".utf8.count))
                return .value(.ok, try find(text)[0].json)
            case (let path, _):
                let allowed = Self.methods[path] ?? [.get, .head]
                let names = allowed.map(\.description).joined(separator: ", ")
                return .methodNotAllowed(allowed: allowed, "\(path) takes \(names) only")
            }
        } catch {
            return error.answer
        }
    }

    // MARK: Titles

    private func titles(
        _ arguments: AdministrationQuery
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        guard let limit = arguments.number("limit", in: 1...1_000, default: 100) else {
            throw AdministrationRefusal(.badRequest, "limit is a number in 1...1000")
        }
        var after: TitlePlace?
        if let text = arguments["after"] {
            after = TitlePlace(text)
            if after == nil {
                throw AdministrationRefusal(
                    .badRequest, "after is what a former answer gave as next")
            }
        }
        let page = catalogue.page(
            of: places(continued: after != nil), after: after, limit: limit, figures,
            within: .seconds(2 as Int64))
        return .value(
            .ok,
            .object([
                .init("titles", .list(page.titles.map(\.json))),
                .init("next", page.next.map { .text($0.text) } ?? .null),
                .init("total", .number(Int64(page.total))),
                .init("pictures", .truth(hasPictures)),
            ]))
    }

    /// Returns the positions of all titles; those of the last listing if that is continued.
    private func places(continued: Bool) -> [TitlePlace] {
        let start = Monotonic.now()
        if continued, let known = listing.withLock({ $0.value(at: start) }) { return known }
        let made = catalogue.places()
        listing.withLock { $0.keep(made, from: start, to: .now()) }
        return made
    }

    /// Finds the titles that a text names, at least one: by number, or by the URL that they start
    /// from.
    package func find(_ text: String) throws(AdministrationRefusal) -> [Title] {
        if let id = SessionID(text: text) {
            guard let title = catalogue.title(id) else {
                throw AdministrationRefusal(.notFound, "no title \(text) is kept")
            }
            return [title]
        }
        let noURL = AdministrationRefusal(
            .badRequest,
            "a title is named by its 12 hexadecimal digits or by its http or https URL")
        let start = try start(text, orElse: noURL)
        let titles = catalogue.titles(startingAt: start.url, in: start.session)
        let known = titles.filter { $0.objects > 0 || $0.isPinned || !$0.variants.isEmpty }
        guard !known.isEmpty else {
            throw AdministrationRefusal(.notFound, "nothing of \(start.url.redacted) is kept")
        }
        return known
    }

    /// Returns the entry of the titles that a URL names, with the headers in the URL and behind it.
    func start(
        _ text: String, orElse refusal: AdministrationRefusal = .noURL
    ) throws(AdministrationRefusal) -> TitleStart {
        let (plain, headers) = PlayerHeaders.cut(text)
        guard var start = namedStart(plain) else {
            // `namedStart` takes any other URL for an origin's.
            let isURL = (try? AbsoluteURL(given: Array(plain.utf8))) != nil
            throw isURL ? AdministrationRefusal.leadsNowhere : refusal
        }
        if let fault = PlayerHeaders.fault(of: headers) {
            throw AdministrationRefusal(.badRequest, fault)
        }
        start.entry.headers += headers
        return start
    }
}

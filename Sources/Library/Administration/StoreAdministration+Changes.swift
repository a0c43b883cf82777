import DurableState
import HTTP
import Logging
import Model
package import Posix
import Routing
import Store
import URISyntax

/// Pinning and purging.
extension StoreAdministration {
    // MARK: Pins

    /// Pins titles against eviction: their stored objects, those shared with other titles, and
    /// those fetched for them later.
    package func pin(_ arguments: AdministrationQuery) -> AdministrationAnswer {
        let titles: [Title]
        switch pinnable(arguments) {
        case .success(let found): titles = found
        case .failure(let refusal): return .failure(refusal.status, refusal.reason)
        }
        var pinned: [JSONValue] = []
        for var title in titles {
            let number = title.id.number
            // What a download or recording pinned for it stays pinned.
            let keys = Set(title.sharedKeys).union(store.pin(of: number)?.keys ?? [])
            do {
                try store.pin(
                    title: number, url: title.url?.normalisedForKey ?? "", keys: Array(keys))
            } catch {
                return .failure(.insufficientStorage, "the pin cannot be saved: \(error)")
            }
            title.isPinned = true
            pinned.append(title.json)
        }
        return .value(.ok, .object([.init("titles", .list(pinned))]))
    }

    /// Returns the titles to pin: those found, or the one that a player would start at the URL.
    private func pinnable(_ arguments: AdministrationQuery) -> Result<[Title], Refusal> {
        if let text = arguments["title"] { return find(text) }
        guard let text = arguments["url"] else { return .failure(.missing("url or title")) }
        return start(text, orElse: .noURL).map { start in
            let titles = catalogue.titles(startingAt: start.url, in: start.session)
            let known = titles.filter { $0.objects > 0 || !$0.variants.isEmpty }
            return known.isEmpty ? [titles[0]] : known
        }
    }

    /// Allows eviction of titles again; with a shared store, the other nodes also unpin a title
    /// that is not stored here.
    package func unpin(_ arguments: AdministrationQuery) -> AdministrationAnswer {
        guard let text = arguments["title"] ?? arguments["url"] else {
            return .missing("url or title")
        }
        switch find(text) {
        case .failure(let refusal):
            guard others.hasNodes, absentTitle(text, refusal) != nil else {
                return .failure(refusal.status, refusal.reason)
            }
            return .value(.ok, .object([.init("unpinned", .number(0))]))
                .noting("nothing of it is kept here; the other nodes are told to unpin it")
        case .success(let titles):
            var count: Int64 = 0
            for title in titles where title.isPinned {
                do {
                    if try store.unpin(title: title.id.number) { count += 1 }
                } catch {
                    return .failure(
                        .insufficientStorage, "the removal of the pin cannot be saved: \(error)")
                }
            }
            return .value(.ok, .object([.init("unpinned", .number(count))]))
        }
    }

    // MARK: Purging

    /// Removes the objects that a single argument names.
    ///
    /// Pins stay, so that objects fetched again are kept. A purge by URL or title also removes
    /// pinned objects, but one by title none that the pin of another title names; one by host,
    /// prefix or age removes none. A title of which nothing is kept here is purged from the other
    /// caches.
    package func purge(_ arguments: AdministrationQuery) -> AdministrationAnswer {
        switch purgeSubject(arguments) {
        case .success(let subject): return purging.start([PurgeOrder(subject)])
        case .failure(let refusal):
            guard let note = purgeNote, let id = absentTitle(arguments["title"], refusal) else {
                return .failure(refusal.status, refusal.reason)
            }
            // The order makes requests to parents rule out what they have stored.
            return purging.start([PurgeOrder(.titles([id.number]))]).noting(note)
        }
    }

    /// What happens to a purge of a title of which nothing is kept here; nil without other caches.
    private var purgeNote: String? {
        let told = others.hasNodes ? ["the other nodes are told to purge it"] : []
        let asked = others.hasParents ? ["parents are asked for it past what they had stored"] : []
        guard !(told + asked).isEmpty else { return nil }
        return "nothing of it is kept here; " + (told + asked).joined(separator: ", and ")
    }

    /// Returns the number that other caches know a title by, of which nothing is kept here.
    ///
    /// - Parameters:
    ///   - text: its number or URL.
    ///   - refusal: why `find` has refused the text.
    /// - Returns: nil if the text names no title.
    private func absentTitle(_ text: String?, _ refusal: Refusal) -> SessionID? {
        guard refusal.status == .notFound, let text else { return nil }
        if let id = SessionID(text: text) { return id }
        return start(text).map { ($0.session ?? Session(startingAt: $0.url)).id }
    }

    private func purgeSubject(
        _ arguments: AdministrationQuery
    ) -> Result<PurgeOrder.Subject, Refusal> {
        func refusal(_ reason: String) -> Result<PurgeOrder.Subject, Refusal> {
            .failure(Refusal(status: .badRequest, reason: reason))
        }
        let names = ["url", "title", "host", "prefix", "older-than"].filter { arguments[$0] != nil }
        guard names.count == 1, let text = arguments[names[0]] else {
            return refusal("one argument of url, title, host, prefix and older-than is needed")
        }
        switch names[0] {
        case "url":
            // The keys of all sessions are meant, whatever headers stand behind the URL.
            return start(text, orElse: .noURL).map {
                .texts(Set(catalogue.keys.texts(of: $0.url)))
            }
        case "title":
            return find(text).map { .titles(Set($0.map(\.id.number))) }
        case "host":
            guard let host = PurgeHost(text) else {
                return refusal(
                    "host is a whole host name or address, with or without a port, or a web origin such as http://cdn.example:8080"
                )
            }
            return .success(.host(host))
        case "prefix": return prefixes(text).map { .prefixes($0) }
        default:
            guard let age = AdministrationQuery.duration(text) else {
                return refusal(
                    "older-than is a length of time such as 90s, 15m, 12h, 30d or 8w")
            }
            let limit = WallTime.now() + Interval(nanoseconds: -age.nanoseconds)
            return .success(.unusedSince(limit))
        }
    }

    /// Returns the prefixes that a URL stands for, an origin's or one of this daemon.
    private func prefixes(_ text: String) -> Result<Set<PurgePrefix>, Refusal> {
        // Else the parser of URLs would drop it.
        guard !text.utf8.contains(UInt8(ascii: "#")) else { return .failure(.longPrefix) }
        return start(text, orElse: .noPrefix).flatMap { start in
            guard start.url.query == nil else { return .failure(.longPrefix) }
            let prefixes = PurgePrefix.all(of: start.url, catalogue.keys)
            return prefixes.isEmpty ? .failure(.noPrefix) : .success(prefixes)
        }
    }

    // MARK: Other nodes

    /// Returns the queries by which other nodes make the same change: the origin's URL instead of a
    /// link of this daemon, a host as stored URLs have it; blocks on the disk.
    ///
    /// Must be called before the change, which may leave nothing by which a title could be found.
    ///
    /// - Parameters:
    ///   - path: of a request to purge, pin or unpin.
    ///   - query: its query.
    /// - Returns: none if it concerns this node alone.
    package func queriesForNodes(_ path: String, _ query: String) -> [String] {
        let arguments = AdministrationQuery(query)
        let named = arguments["title"] ?? (path == "/api/purge" ? nil : arguments["url"])
        guard arguments["host"] == nil, let named, let session = start(named)?.session else {
            return queryForNodes(path, arguments).map { [$0] } ?? []
        }
        store.catchUp(within: .seconds(2 as Int64))
        // The headers of the session must not leave this node, and a URL without them would mean
        // other sessions too. With another signature in the URL, what is stored of the title has
        // another number.
        let found = (try? find(named).get()) ?? []
        return Set(found.map(\.id) + [session.id]).map { "title=\($0.text)" }.sorted()
    }

    private func queryForNodes(_ path: String, _ arguments: AdministrationQuery) -> String? {
        func argument(_ name: String, _ value: String?) -> String? {
            value.map { "\(name)=\(PercentCoding.queryComponent($0))" }
        }
        if let text = arguments["host"] { return argument("host", PurgeHost(text)?.text) }
        if let text = arguments["prefix"] {
            return argument("prefix", originURL(text)?.withoutUserinfo.text)
        }
        guard let text = arguments["title"] else {
            return argument("url", arguments["url"].flatMap(originURL)?.text)
        }
        let id = SessionID(text: text)
        let url = id.map { catalogue.title($0)?.url } ?? originURL(text)
        let own = url.map { SessionTable.unkept(for: Entry(url: $0)).id }
        let isPin = path == "/api/pin"
        if let url, url.userinfo == nil, id == nil || isPin && id == own {
            // A node that has nothing of the title cannot tell which one is to be pinned.
            return argument(isPin ? "url" : "title", url.text)
        }
        // The number names the title without the password of its URL, which must not leave this
        // node.
        return argument("title", (id ?? own)?.text)
    }

    private func start(_ text: String) -> TitleStart? { try? start(text, orElse: .noURL).get() }

    private func originURL(_ text: String) -> AbsoluteURL? { start(text)?.url }

    /// Repeats purges of other nodes, all in one pass.
    ///
    /// Each removes what was stored before it was given; one that names nothing is skipped. One of
    /// a title that is not stored here is carried out, since a parent may have stored something of
    /// it.
    ///
    /// - Parameter purges: their queries, and when they were given.
    /// - Returns: the outcome, or the progress.
    package func purge(_ purges: [(query: String, given: WallTime)]) -> AdministrationAnswer {
        store.catchUp(within: .seconds(2 as Int64))
        let orders = purges.compactMap { query, given -> PurgeOrder? in
            let arguments = AdministrationQuery(query)
            if let id = arguments["title"].flatMap({ SessionID(text: $0) }) {
                return PurgeOrder(.titles([id.number]), given: given)
            }
            switch purgeSubject(arguments) {
            case .success(let subject): return PurgeOrder(subject, given: given)
            case .failure(let refusal):
                return absentTitle(arguments["title"], refusal).map {
                    PurgeOrder(.titles([$0.number]), given: given)
                }
            }
        }
        guard !orders.isEmpty else { return .value(.ok, .object([])) }
        return purging.start(orders, isGivenNow: false)
    }

    // MARK: Unused content

    /// Purges by age, and logs and counts what that has removed.
    ///
    /// Nobody waits for it: it is left out while another purge runs, and while recordings have not
    /// pinned what they need of other titles.
    func removeUnused(since time: WallTime, _ counters: Counters) {
        guard !purging.isRunning else { return }
        let log = store.state.log
        switch willPurge?([]) ?? .done {
        case .done: break
        case .underWay:
            return log.notice(
                """
                what nobody has used for the time in max-unused stays for another hour: recordings \
                still pin what they need of other titles
                """)
        case .failed(let reason):
            return log.warning(
                """
                what nobody has used for the time in max-unused stays for another hour, since what \
                a recording needs of other titles cannot be pinned
                """, metadata: ["reason": "\(reason)"])
        }
        let answer = purging.start([PurgeOrder(.unusedSince(time))]) { removal in
            guard removal.objects > 0 else { return }
            counters.add(.unusedRemoved, Int64(removal.objects))
            log.notice(
                "removed what nobody has used for the time in max-unused",
                metadata: ["objects": "\(removal.objects)", "bytes": "\(removal.bytes)"])
        }
        guard case .failure(_, let reason) = answer else { return }
        log.warning(
            "what nobody has used for the time in max-unused stays for another hour",
            metadata: ["reason": "\(reason)"])
    }

    // MARK: Clearing

    /// Removes everything except pinned titles immediately, and also these with `pinned=true`; the
    /// files are deleted in the background.
    package func clear(_ arguments: AdministrationQuery) -> AdministrationAnswer {
        let sparesPinned: Bool
        switch arguments["pinned"] {
        case nil, "false": sparesPinned = true
        case "true": sparesPinned = false
        default:
            return .failure(
                .badRequest, "pinned is true, to remove pinned titles too, or false")
        }
        // What recordings need of other titles is to be spared too, and they pin late.
        let pinning: Pinning = sparesPinned ? willPurge?([]) ?? .done : .done
        switch pinning {
        case .done: break
        case .underWay:
            return .failure(
                .serviceUnavailable,
                "nothing was removed: recordings still pin what they need of other titles; ask again"
            )
        case .failed(let reason):
            return .failure(
                .serviceUnavailable,
                "nothing was removed, since what a recording needs of other titles cannot be pinned: \(reason); check the disk, make room with a purge, and ask again"
            )
        }
        let pins = store.pins()
        // Of a title without a pin, nothing but its objects tells that it has lost them.
        let pinned = Set(pins.map(\.title))
        let others = store.titleNumbers().subtracting(pinned)
        do {
            let removed = try store.clear(sparingPinned: sparesPinned)
            removals.tell(sparesPinned ? others : others.union(pinned))
            return .value(
                .ok,
                .object([
                    .init("removed", .number(Int64(removed.objects))),
                    .init("bytes", .number(removed.bytes)),
                    .init("deleting", .number(Int64(store.deletion.objects))),
                    .init("pinned_titles_kept", .number(Int64(sparesPinned ? pins.count : 0))),
                ]))
        } catch {
            return .failure(.serviceUnavailable, "nothing was removed: \(error)")
        }
    }

    /// The files that were cleared and are still to be deleted.
    var clearing: AdministrationAnswer {
        let left = store.deletion
        return .value(
            .ok,
            .object([
                .init("state", .text(left == Deletion() ? "none" : "running")),
                .init("deleting", .number(Int64(left.objects))),
                .init("deleting_bytes", .number(left.bytes)),
            ]))
    }
}

extension StoreAdministration.Refusal {
    static let noURL = Self(status: .badRequest, reason: "the argument url is no http or https URL")
    static let noPrefix = Self(
        status: .badRequest,
        reason:
            "prefix is an http or https URL with scheme and host and without blanks, such as http://cdn.example/show7"
    )
    static let longPrefix = Self(
        status: .badRequest,
        reason:
            "prefix has no query and no fragment: what is below its path is purged with any query")
    /// For a URL of this daemon, or a link of another node, that names no URL of an origin.
    static let leadsNowhere = Self(
        status: .badRequest,
        reason:
            "the URL is one of this daemon or of another node, and no origin's URL is known for it here; give the origin's URL, or for a title its number"
    )

    package static func missing(_ what: String) -> Self {
        Self(status: .badRequest, reason: "the argument \(what) is missing")
    }
}

extension AdministrationAnswer {
    /// Returns the same with a note for the user, unless it is a failure.
    fileprivate func noting(_ note: String) -> AdministrationAnswer {
        guard case .value(let status, .object(let members)) = self else { return self }
        return .value(status, .object(members + [.init("note", .text(note))]))
    }

    package static func missing(_ what: String) -> AdministrationAnswer {
        .failure(.badRequest, "the argument \(what) is missing")
    }
}

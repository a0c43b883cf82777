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
    func pin(
        _ arguments: AdministrationQuery
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        var pinned: [JSONValue] = []
        for var title in try pinnable(arguments) {
            let number = title.id.number
            // What a download or recording pinned for it stays pinned.
            let keys = Set(title.sharedKeys).union(store.pin(of: number)?.keys ?? [])
            do throws(StateFault) {
                try store.pin(
                    title: number, url: title.url?.normalisedForKey ?? "", keys: Array(keys))
            } catch {
                throw AdministrationRefusal(
                    .insufficientStorage, "the pin cannot be saved: \(error)")
            }
            title.isPinned = true
            pinned.append(title.json)
        }
        return .value(.ok, .object([.init("titles", .list(pinned))]))
    }

    /// Returns the titles to pin: those found, or the one that a player would start at the URL.
    private func pinnable(
        _ arguments: AdministrationQuery
    ) throws(AdministrationRefusal) -> [Title] {
        if let text = arguments["title"] { return try find(text) }
        guard let text = arguments["url"] else { throw .missing("url or title") }
        let start = try start(text)
        let titles = catalogue.titles(startingAt: start.url, in: start.session)
        let known = titles.filter { $0.objects > 0 || !$0.variants.isEmpty }
        return known.isEmpty ? [titles[0]] : known
    }

    /// Allows eviction of titles again; with a shared store, the other nodes also unpin a title
    /// that is not stored here.
    func unpin(
        _ arguments: AdministrationQuery
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        guard let text = arguments["title"] ?? arguments["url"] else {
            throw .missing("url or title")
        }
        let titles: [Title]
        do throws(AdministrationRefusal) {
            titles = try find(text)
        } catch {
            guard others.hasNodes, absentTitle(text, error) != nil else { throw error }
            return .value(.ok, .object([.init("unpinned", .number(0))]))
                .noting("nothing of it is kept here; the other nodes are told to unpin it")
        }
        var count: Int64 = 0
        for title in titles where title.isPinned {
            do throws(StateFault) {
                if try store.unpin(title: title.id.number) { count += 1 }
            } catch {
                throw AdministrationRefusal(
                    .insufficientStorage, "the removal of the pin cannot be saved: \(error)")
            }
        }
        return .value(.ok, .object([.init("unpinned", .number(count))]))
    }

    // MARK: Purging

    /// Removes the objects that a single argument names.
    ///
    /// Pins stay, so that objects fetched again are kept. A purge by URL or title also removes
    /// pinned objects, but one by title none that the pin of another title names; one by host,
    /// prefix or age removes none. A title of which nothing is kept here is purged from the other
    /// caches.
    func purge(
        _ arguments: AdministrationQuery
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        do throws(AdministrationRefusal) {
            return try purging.start([PurgeOrder(purgeSubject(arguments))])
        } catch {
            guard let note = purgeNote, let id = absentTitle(arguments["title"], error) else {
                throw error
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
    private func absentTitle(_ text: String?, _ refusal: AdministrationRefusal) -> SessionID? {
        guard refusal.status == .notFound, let text else { return nil }
        if let id = SessionID(text: text) { return id }
        return (try? start(text)).map { ($0.session ?? Session(startingAt: $0.url)).id }
    }

    private func purgeSubject(
        _ arguments: AdministrationQuery
    ) throws(AdministrationRefusal) -> PurgeOrder.Subject {
        let names = ["url", "title", "host", "prefix", "older-than"].filter { arguments[$0] != nil }
        guard names.count == 1, let text = arguments[names[0]] else {
            throw AdministrationRefusal(
                .badRequest, "one argument of url, title, host, prefix and older-than is needed")
        }
        switch names[0] {
        case "url":
            // The keys of all sessions are meant, whatever headers stand behind the URL.
            return try .texts(Set(catalogue.keys.texts(of: start(text).url)))
        case "title": return try .titles(Set(find(text).map(\.id.number)))
        case "host":
            guard let host = PurgeHost(text) else {
                throw AdministrationRefusal(
                    .badRequest,
                    "host is a whole host name or address, with or without a port, or a web origin such as http://cdn.example:8080"
                )
            }
            return .host(host)
        case "prefix": return try .prefixes(prefixes(text))
        default:
            guard let age = AdministrationQuery.duration(text) else {
                throw AdministrationRefusal(
                    .badRequest, "older-than is a length of time such as 90s, 15m, 12h, 30d or 8w")
            }
            return .unusedSince(WallTime.now() + Interval(nanoseconds: -age.nanoseconds))
        }
    }

    /// Returns the prefixes that a URL stands for, an origin's or one of this daemon.
    private func prefixes(_ text: String) throws(AdministrationRefusal) -> Set<PurgePrefix> {
        // Else the parser of URLs would drop it.
        guard !text.utf8.contains(UInt8(ascii: "#")) else { throw .longPrefix }
        let url = try start(text, orElse: .noPrefix).url
        guard url.query == nil else { throw .longPrefix }
        let prefixes = PurgePrefix.all(of: url, catalogue.keys)
        guard !prefixes.isEmpty else { throw .noPrefix }
        return prefixes
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
        guard arguments["host"] == nil, let named, let session = (try? start(named))?.session
        else {
            return queryForNodes(path, arguments).map { [$0] } ?? []
        }
        store.catchUp(within: .seconds(2 as Int64))
        // The headers of the session must not leave this node, and a URL without them would mean
        // other sessions too. With another signature in the URL, what is stored of the title has
        // another number.
        let found = (try? find(named)) ?? []
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

    private func originURL(_ text: String) -> AbsoluteURL? { (try? start(text))?.url }

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
            do throws(AdministrationRefusal) {
                return try PurgeOrder(purgeSubject(arguments), given: given)
            } catch {
                return absentTitle(arguments["title"], error).map {
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
    func clear(
        _ arguments: AdministrationQuery
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        let sparesPinned: Bool
        switch arguments["pinned"] {
        case nil, "false": sparesPinned = true
        case "true": sparesPinned = false
        default:
            throw AdministrationRefusal(
                .badRequest, "pinned is true, to remove pinned titles too, or false")
        }
        // What recordings need of other titles is to be spared too, and they pin late.
        let pinning: Pinning = sparesPinned ? willPurge?([]) ?? .done : .done
        switch pinning {
        case .done: break
        case .underWay:
            throw AdministrationRefusal(
                .serviceUnavailable,
                "nothing was removed: recordings still pin what they need of other titles; ask again"
            )
        case .failed(let reason):
            throw AdministrationRefusal(
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

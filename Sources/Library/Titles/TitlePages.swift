// A listing of many titles, last played first, in pages.
//
// The order is determined for the first page and used for the next ones: it takes a walk through
// the whole index, and a listing of 100,000 titles has 1,000 pages.
import HLS
import Model
import Numbers
import Posix
import Routing
import Store

/// A position in the listing that stays valid when titles are added or removed.
package struct TitlePlace: Sendable, Comparable {
    /// Titles used later come first.
    let lastUsed: WallTime
    package let title: UInt64

    package static func < (left: TitlePlace, right: TitlePlace) -> Bool {
        left.lastUsed == right.lastUsed
            ? left.title < right.title : right.lastUsed < left.lastUsed
    }
}

extension TitlePlace {
    /// Parses a `text`; nil for anything else.
    init?(_ text: String) {
        let parts = text.split(separator: "-", maxSplits: 1)
        guard parts.count == 2,
            let nanoseconds = ExternalNumber.integer(parts[0], in: 0...Int64.max),
            let id = SessionID(text: String(parts[1]))
        else { return nil }
        lastUsed = WallTime(nanoseconds: nanoseconds)
        title = id.number
    }

    /// The text form, for the next request.
    package var text: String { "\(lastUsed.nanoseconds)-\(SessionID(title).text)" }
}

extension TitleCatalogue {
    /// One page of the listing.
    package struct Page: Sendable {
        package var titles: [Title]
        /// The start of the next page; nil at the end.
        package var next: TitlePlace?
        /// The number of all titles, including those of other pages.
        package var total: Int
    }

    /// Returns the positions of all titles, in order; pinned titles without stored objects come
    /// last.
    ///
    /// Walks through the whole index: some seconds for a million objects.
    func places() -> [TitlePlace] {
        let pins = store.pins()
        let totals = store.titleTotals().filter { $0.title != 0 }
        let known = Set(totals.map(\.title))
        let left = leftToOthers(among: known, pins)
        var places = totals.filter { !left.contains($0.title) }
            .map { TitlePlace(lastUsed: $0.lastUsed, title: $0.title) }
        places += pins.filter { !known.contains($0.title) }
            .map { TitlePlace(lastUsed: WallTime(nanoseconds: 0), title: $0.title) }
        return places.sorted()
    }

    /// Returns the titles after a position.
    ///
    /// - Parameters:
    ///   - places: the positions of all titles, in order.
    ///   - after: the position; nil for the start.
    ///   - limit: the most titles of a page.
    ///   - figures: what earlier pages have read.
    ///   - time: a page that takes longer ends early, with at least one title.
    /// - Returns: titles, last played first.
    func page(
        of places: [TitlePlace], after: TitlePlace?, limit: Int, _ figures: TitleFigures,
        within time: Interval
    ) -> Page {
        let deadline = Monotonic.now() + time
        var page = Page(titles: [], next: nil, total: places.count)
        let wanted = places[(after.map { Self.end(of: $0, in: places) } ?? 0)...]
        for place in wanted {
            // Removed meanwhile, or without an object that a player could start from.
            guard let title = listed(SessionID(place.title), figures) else { continue }
            page.titles.append(title)
            guard page.titles.count < limit, .now() < deadline else {
                page.next = place
                break
            }
        }
        if page.next?.title == wanted.last?.title { page.next = nil }
        return page
    }

    /// Returns the index of the first position after another one, in ascending positions.
    static func end(of place: TitlePlace, in places: [TitlePlace]) -> Int {
        var (low, high) = (0, places.count)
        while low < high {
            let middle = (low + high) / 2
            if place < places[middle] { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// Returns the forgotten recordings of which only objects are left that other titles pin, and
    /// show as shared bytes, or that, without a playlist, windows of players use.
    private func leftToOthers(among titles: Set<UInt64>, _ pins: [Pin]) -> Set<UInt64> {
        let recordings = titles.subtracting(pins.map(\.title)).filter {
            sessions.recording(of: SessionID($0)) != nil
        }
        guard !recordings.isEmpty else { return [] }
        let named = Set(pins.flatMap(\.keys))
        return recordings.filter { title in
            let rows = store.rows(ofTitle: title)
            return rows.allSatisfy { $0.role != ResourceRole.playlist.letter }
                || rows.allSatisfy { named.contains($0.key) }
        }
    }
}

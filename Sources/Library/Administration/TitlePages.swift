// Listing many titles: the last played first, a page at a time.
import Numbers
package import Posix
import Routing
import Store

/// A place in the listing, which stays right when titles come and go.
package struct TitlePlace: Sendable, Comparable {
    /// Later use comes earlier in the listing.
    let lastUsed: WallTime
    package let title: UInt64

    package static func < (left: TitlePlace, right: TitlePlace) -> Bool {
        left.lastUsed == right.lastUsed
            ? left.title < right.title : right.lastUsed < left.lastUsed
    }
}

extension TitlePlace {
    /// As `text` gave it; nil for anything else.
    init?(_ text: String) {
        let parts = text.split(separator: "-", maxSplits: 1)
        guard parts.count == 2,
            let nanoseconds = OutsideNumber.integer(parts[0], in: 0...Int64.max),
            let id = SessionID(text: String(parts[1]))
        else { return nil }
        lastUsed = WallTime(nanoseconds: nanoseconds)
        title = id.number
    }

    /// For the next request.
    package var text: String { "\(lastUsed.nanoseconds)-\(SessionID(title).text)" }
}

extension TitleCatalogue {
    /// A part of the listing.
    package struct Page: Sendable {
        package var titles: [Title]
        /// Where the next page goes on; nil at the end.
        package var next: TitlePlace?
        /// All titles, those of other pages too.
        package var total: Int
    }

    /// The titles behind a place, pinned ones of which nothing is kept at the end.
    ///
    /// - Parameters:
    ///   - after: the place; nil for the start.
    ///   - limit: the most titles of a page.
    ///   - time: a page ends early when it takes longer, with one title at least.
    /// - Returns: titles, the last played first.
    package func page(after: TitlePlace?, limit: Int, within time: Interval) -> Page {
        let deadline = Monotonic.now() + time
        var places = store.titleTotals().filter { $0.title != 0 }
            .map { TitlePlace(lastUsed: $0.lastUsed, title: $0.title) }
        let known = Set(places.map(\.title))
        places += store.pins().filter { !known.contains($0.title) }
            .map { TitlePlace(lastUsed: WallTime(nanoseconds: 0), title: $0.title) }
        var page = Page(titles: [], next: nil, total: places.count)
        let wanted = places.filter { place in after.map { $0 < place } ?? true }.sorted()
        for place in wanted {
            // Removed meanwhile, or nothing that a player starts from.
            guard let title = title(SessionID(place.title)) else { continue }
            page.titles.append(title)
            guard page.titles.count < limit, .now() < deadline else {
                page.next = place
                break
            }
        }
        if page.next?.title == wanted.last?.title { page.next = nil }
        return page
    }
}

// Which rules a node looks at: the latest ones in the bucket, without listing all each time.
import Numbers
package import Posix

/// The listings of rules, page by page.
///
/// Names are those after the prefix of the location. They sort by time, and stores list them in
/// that order, the oldest first. While the bucket has no more rules than are followed, each listing
/// shows all of them. If it has more, a listing starts an hour before the latest, since the clocks
/// of nodes differ; every ten minutes it shows all, since a node that was away writes what it
/// accepted before.
package struct RuleListing {
    /// The name that this listing starts after; nil if it shows all.
    package private(set) var start: String?
    private let most: Int
    /// The latest names of this listing.
    private var names: [String] = []
    private var count = 0
    private var pages = 0
    private var greatest = ""
    /// Where a listing that does not show all starts.
    private var nextStart: String?
    /// The time from which a listing has to show all; nil if each one does.
    private var wholeAt: Monotonic?

    private static let overlap = Interval.seconds(3_600)
    private static let pause = Interval.seconds(600)
    /// The most pages that are read although they bring nothing later: gateways that ignore the
    /// token of a page repeat it for ever.
    static let mostRepeated = 200
    /// The most pages of all.
    private static let mostPages = 10_000

    /// Follows the latest `most` rules.
    package init(most: Int) { self.most = most }

    /// Begins a listing at `start`.
    package mutating func begin(now: Monotonic) {
        let showsAll = wholeAt.map { now >= $0 } ?? true
        start = showsAll ? nil : nextStart
        (names, count, pages, greatest) = ([], 0, 0, "")
    }

    /// Takes the names of a page.
    ///
    /// - Returns: false if no further page is to be read.
    package mutating func add(_ page: [String]) -> Bool {
        pages += 1
        let last = page.max() ?? ""
        let isLater = last > greatest
        greatest = max(greatest, last)
        // Some stores ignore where a listing is to start.
        let new = if let start { page.filter { $0 > start } } else { page }
        names += new
        count += new.count
        if names.count > 2 * most { dropOldest() }
        return pages < Self.mostRepeated || isLater && pages < Self.mostPages
    }

    /// Ends a listing.
    ///
    /// - Returns: the latest names of it, sorted.
    package mutating func end(now: Monotonic, wall: WallTime) -> [String] {
        dropOldest()
        if start == nil { wholeAt = count > most ? now + Self.pause : nil }
        // A rule of a clock that is ahead says nothing about where later ones are.
        if let latest = names.reversed().lazy.compactMap(Self.given).first(where: { $0 <= wall }) {
            let time = latest.nanoseconds - Self.overlap.nanoseconds
            nextStart = SharedNames.rules + String(max(0, time), width: 19)
        }
        return names
    }

    /// Notes that a listing failed: some stores refuse to start anywhere but at the first name.
    package mutating func fail() { wholeAt = nil }

    private mutating func dropOldest() {
        // Pages that are repeated bring the same names again; others are in order already.
        let isInOrder = zip(names, names.dropFirst()).allSatisfy { $0 < $1 }
        if !isInOrder { names = Set(names).sorted() }
        names.removeFirst(max(0, names.count - most))
    }

    private static func given(_ name: String) -> WallTime? {
        guard name.hasPrefix(SharedNames.rules) else { return nil }
        let digits = name.dropFirst(SharedNames.rules.count).prefix { $0 != "-" }
        guard digits.utf8.count == 19 else { return nil }
        return ExternalNumber.integer(digits, in: 1...Int64.max).map { WallTime(nanoseconds: $0) }
    }
}

import CachePolicy
import Model
import Posix
import Store

/// Tells which objects some purges remove: by one lookup of each kind, however many purges there
/// are.
struct PurgeSelection: Sendable {
    /// The latest time of a purge of each subject; what was stored later stays.
    private var texts: [String: WallTime] = [:]
    private var titles: [UInt64: WallTime] = [:]
    /// By the name of the host, with the purges of its origins.
    private var hosts: [Substring: [PurgeHost: WallTime]] = [:]
    /// By the texts of prefixes.
    private var prefixes: [Substring: WallTime] = [:]
    /// The lengths of these texts in bytes: few parts of a URL are looked up.
    private var prefixLengths: Set<Int> = []
    private var unused: [(since: WallTime, given: WallTime)] = []
    private var objects: [ObjectKey: WallTime] = [:]
    /// The pins that are spared, as are those that are set later: by purges by host, prefix and
    /// age, and by title as far as they name objects of another title.
    let pins: [Pin]
    /// True if a pin that may be newer than `pins` holds an object of a title.
    private let isPinnedNow: @Sendable (_ key: ObjectKey, _ title: UInt64) -> Bool
    /// Returns how many pins name an object now.
    private let namingsNow: @Sendable (_ key: ObjectKey) -> Int
    /// What the pin of each title names.
    private let pinnedKeys: [UInt64: [ObjectKey]]
    /// For each key that pins name, how many these are.
    private let namings: [ObjectKey: Int]
    /// The purged titles among those whose pins these are, one for each naming: a purge of the
    /// title that a key was fetched for leaves it to the others.
    ///
    /// Apart from `namings`, which copies share: pins may name millions of keys.
    private var purgedNamings: [ObjectKey: [UInt64]] = [:]

    /// Creates a selection of nothing.
    ///
    /// - Parameters:
    ///   - pins: the present pins.
    ///   - isPinnedNow: called for each object that a purge by host, prefix or age selects, on any
    ///     thread.
    ///   - namingsNow: called for each object that a purge by title selects, on any thread; returns
    ///     how many pins name it.
    init(
        pins: [Pin],
        isPinnedNow: @escaping @Sendable (_ key: ObjectKey, _ title: UInt64) -> Bool = { _, _ in
            false
        },
        namingsNow: @escaping @Sendable (_ key: ObjectKey) -> Int = { _ in 0 }
    ) {
        self.pins = pins
        self.isPinnedNow = isPinnedNow
        self.namingsNow = namingsNow
        pinnedKeys = Dictionary(pins.map { ($0.title, $0.keys) }, uniquingKeysWith: +)
        var namings: [ObjectKey: Int] = [:]
        for pin in pins {
            for key in pin.keys { namings[key, default: 0] += 1 }
        }
        self.namings = namings
    }

    /// Adds purges.
    ///
    /// - Parameters:
    ///   - orders: the purges.
    ///   - isGivenNow: false spares what was stored after the time of its order.
    mutating func add(_ orders: [PurgeOrder], isGivenNow: Bool = false) {
        for order in orders {
            let given = isGivenNow ? WallTime(nanoseconds: .max) : order.given
            switch order.subject {
            case .texts(let all): for text in all { Self.add(given, to: &texts[text]) }
            case .titles(let all): for title in all { add(title, given) }
            case .host(let host): Self.add(given, to: &hosts[host.name[...], default: [:]][host])
            case .prefixes(let all):
                for prefix in all {
                    Self.add(given, to: &prefixes[prefix.text[...]])
                    prefixLengths.insert(prefix.text.utf8.count)
                }
            case .unusedSince(let time): unused.append((time, given))
            case .objects(let keys): for key in keys { Self.add(given, to: &objects[key]) }
            }
        }
    }

    private mutating func add(_ title: UInt64, _ given: WallTime) {
        if titles[title] == nil {
            for key in pinnedKeys[title] ?? [] { purgedNamings[key, default: []].append(title) }
        }
        Self.add(given, to: &titles[title])
    }

    private static func add(_ given: WallTime, to latest: inout WallTime?) {
        latest = max(given, latest ?? given)
    }

    /// Keys of objects that are to be removed; a URL has further ones, of responses to credentials
    /// and of variants.
    var keys: [ObjectKey] { texts.keys.map { ObjectKey(sha256Of: $0) } + objects.keys }

    /// Titles whose objects are to be removed.
    var titleNumbers: [UInt64] { Array(titles.keys) }

    /// True if other objects may be among those that are to be removed.
    var needsSearch: Bool {
        !texts.isEmpty || !hosts.isEmpty || !prefixes.isEmpty || !unused.isEmpty
    }

    /// True if one of the pins names an object, whether or not its title is purged.
    func isPinned(_ key: ObjectKey) -> Bool { namings[key] != nil }

    /// True if a pin names an object whose title is not purged, or was purged before that was
    /// stored, or if a pin was set since that names it.
    private func isNeeded(_ entry: StoreEntry) -> Bool {
        let purged = (purgedNamings[entry.key] ?? []).count { title in
            titles[title].map { entry.created <= $0 } ?? false
        }
        return namings[entry.key, default: 0] > purged || namingsNow(entry.key) > purged
    }

    /// True if an object is to be removed.
    func fits(_ entry: StoreEntry) -> Bool {
        func isBefore(_ given: WallTime?) -> Bool { given.map { entry.created <= $0 } ?? false }
        if isBefore(objects[entry.key]) { return true }
        if isBefore(texts[CacheKey.url(ofText: entry.url)]) { return true }
        if isBefore(titles[entry.title]), !isNeeded(entry) { return true }
        let isOfHost =
            PurgeHost.name(inURL: entry.url).flatMap { hosts[$0] }?
            .contains { isBefore($1) && $0.matches(entry.url) } ?? false
        let isBelow =
            !prefixes.isEmpty
            && PurgePrefix.texts(inURL: entry.url, ofLengths: prefixLengths)
                .contains { isBefore(prefixes[$0]) }
        let isUnused = unused.contains { isBefore($0.given) && entry.lastUsed < $0.since }
        guard isOfHost || isBelow || isUnused else { return false }
        let isSpared = pinnedKeys[entry.title] != nil || isPinned(entry.key)
        // A pass takes long, and an order may wait for hours: what is pinned meanwhile stays.
        return !isSpared && !isPinnedNow(entry.key, entry.title)
    }
}

/// How much a long URL counts against the limit of those that are saved.
enum LongURLSize {
    /// A page of the index holds the row of a URL up to about this length.
    private static let unit = 2_048

    /// Returns the units of a URL: one, and one more for each whole 2 KiB.
    static func units(of url: String) -> Int { 1 + url.utf8.count / unit }

    /// The units of a row of `long_urls` beyond the first one, in SQL.
    static let furtherUnits = "length(CAST(url AS BLOB)) / \(unit)"
}

/// Long URLs that are not in the index yet, by ID.
///
/// Bounded in bytes, whether the index is slow or rejects them. `hasRoom` tells callers in time to
/// do without a short name, so that only URLs that fit in no link can displace others.
struct UnsavedLongURLs: Sendable {
    /// The estimated memory of one entry besides its URL, in bytes: the ID twice, and headers.
    static let overhead = 200
    /// The maximum number saved in one transaction.
    static let mostAtOnce = 1_024

    /// The maximum for all entries, in bytes.
    private let limit: Int
    private(set) var urls: [[UInt8]: String] = [:]
    /// The IDs, first added first; from `first` on also some that were saved meanwhile.
    private var order: [[UInt8]] = []
    /// The index in `order` of the oldest ID that waits.
    private var first = 0
    private var bytes = 0
    /// True while the store thread is to save them.
    private var isScheduled = false
    /// True from a failure until one of them is saved.
    private var isFailing = false

    /// 64 MiB are some 45,000 URLs of 1,200 bytes: all renditions of several films.
    init(limit: Int = 64 << 20) {
        self.limit = limit
    }

    /// True if the index takes URLs, and as fast as they come.
    var hasRoom: Bool { !isFailing && bytes <= limit / 2 }

    /// Adds a URL; beyond the limit, drops those added first.
    ///
    /// - Returns: true if the store thread must be told. While saving fails, it tries by itself.
    mutating func add(_ url: String, id: [UInt8]) -> Bool {
        let former = urls.updateValue(url, forKey: id)
        bytes += Self.size(of: url) - (former.map(Self.size) ?? 0)
        if former == nil { order.append(id) }
        while bytes > limit, first < order.count {
            remove(order[first])
            first += 1
        }
        compact()
        guard !isFailing, !isScheduled else { return false }
        isScheduled = true
        return true
    }

    /// Returns those to save next, only one while saving fails; none ends the work.
    mutating func next() -> [(id: [UInt8], url: String)] {
        let most = isFailing ? 1 : Self.mostAtOnce
        var batch: [(id: [UInt8], url: String)] = []
        for id in order[first...] {
            guard batch.count < most else { break }
            if let url = urls[id] { batch.append((id, url)) }
        }
        if batch.isEmpty {
            isScheduled = false
            isFailing = false
        }
        return batch
    }

    /// Removes URLs that were saved.
    mutating func noteSaved(_ batch: [(id: [UInt8], url: String)]) {
        isFailing = false
        for (id, _) in batch { remove(id) }
        while first < order.count, urls[order[first]] == nil { first += 1 }
        compact()
    }

    /// Keeps what could not be saved for the next attempt.
    mutating func noteFailure() {
        isScheduled = false
        isFailing = true
    }

    private mutating func remove(_ id: [UInt8]) {
        guard let url = urls.removeValue(forKey: id) else { return }
        bytes -= Self.size(of: url)
    }

    /// Drops the IDs before `first` once they are the greater half, so that each is moved once.
    private mutating func compact() {
        guard first > order.count / 2 else { return }
        order.removeFirst(first)
        first = 0
    }

    private static func size(of url: String) -> Int { url.utf8.count + overhead }
}

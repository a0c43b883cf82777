/// Long URLs that are not in the index yet, by ID.
struct UnsavedLongURLs: Sendable {
    /// The maximum number kept while the index cannot be written; a list may bring more at once
    /// while it can.
    static let mostWhileFailing = 1_024
    /// The maximum number saved in one transaction.
    static let mostAtOnce = 1_024

    private(set) var urls: [[UInt8]: String] = [:]
    /// The IDs, first added first; also some that were saved.
    private var order: [[UInt8]] = []
    /// True while the store thread is to save them.
    private var isScheduled = false

    /// Adds a URL.
    ///
    /// - Returns: true if the store thread must be told.
    mutating func add(_ url: String, id: [UInt8]) -> Bool {
        if urls.updateValue(url, forKey: id) == nil { order.append(id) }
        defer { isScheduled = true }
        return !isScheduled
    }

    /// Returns those to save next; none ends the work.
    mutating func next() -> [(id: [UInt8], url: String)] {
        order.removeAll { urls[$0] == nil }
        if order.isEmpty { isScheduled = false }
        return order.prefix(Self.mostAtOnce).map { ($0, urls[$0] ?? "") }
    }

    /// Removes URLs that were saved.
    mutating func noteSaved(_ batch: [(id: [UInt8], url: String)]) {
        for (id, _) in batch { urls[id] = nil }
    }

    /// Keeps what could not be saved for the next attempt, the newest up to the limit.
    mutating func noteFailure() {
        isScheduled = false
        order.removeAll { urls[$0] == nil }
        let surplus = order.prefix(max(0, order.count - Self.mostWhileFailing))
        for id in surplus { urls[id] = nil }
        order.removeFirst(surplus.count)
    }
}

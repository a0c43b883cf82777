// The names of live lists that the last text does not show: those that delta updates skip, and
// those that have left their windows. Pure.
import Store

/// The names of a list's window that its delta updates skip, in the order in which they leave it.
///
/// The list still has them: its next full text shows them again, with the same meaning.
struct SkippedNames: Sendable {
    struct Name: Sendable {
        let key: ObjectKey
        /// The media sequence number with which it leaves the window.
        let lastNumber: Int
        /// The time at which the last text that showed it was received.
        let lastSeen: Moment
    }

    private var names: [Name] = []
    private var first = 0

    /// The estimated memory in bytes.
    var byteCount: Int { names.count * MemoryLayout<Name>.stride }

    /// The most names of one list; a delta update may claim to skip any number.
    static let most = 65_536

    var isEmpty: Bool { first == names.count }
    var count: Int { names.count - first }
    var keys: [ObjectKey] { names[first...].map(\.key) }

    func contains(_ key: ObjectKey) -> Bool { names[first...].contains { $0.key == key } }

    /// Adds the names that the newest delta update skips first.
    ///
    /// - Parameters:
    ///   - new: the names, in any order; none leaves the window before those added earlier.
    ///   - start: the number of the first segment of its window.
    /// - Returns: the names that are not kept any more, since they are before the window or too
    ///   many.
    mutating func add(_ new: [Name], windowFrom start: Int) -> [Name] {
        names.append(contentsOf: new.sorted { $0.lastNumber < $1.lastNumber })
        let end = names[first...].firstIndex { $0.lastNumber >= start } ?? names.count
        let next = max(end, names.count - Self.most)
        let gone = Array(names[first..<next])
        first = next
        // Done seldom, so that each name is moved once on average.
        if first > names.count / 2 {
            names.removeFirst(first)
            first = 0
        }
        return gone
    }
}

/// The names that have left their windows, in the order of leaving.
struct LeftNames: Sendable {
    private var names: [(key: ObjectKey, lastSeen: Moment)] = []
    private var first = 0

    mutating func add(_ key: ObjectKey, lastSeen: Moment) { names.append((key, lastSeen)) }

    /// Adds the names of a window that were not seen at a time; without one, all of them.
    ///
    /// - Parameters:
    ///   - keys: the names, repeated as often as they were listed.
    ///   - names: what is known of them.
    ///   - received: the time.
    ///   - noted: the names that were added already; those added here are inserted.
    mutating func add(
        _ keys: ArraySlice<ObjectKey>, of names: [ObjectKey: EpochTable.Name],
        unlessAt received: Moment?, _ noted: inout Set<ObjectKey>
    ) {
        for key in keys {
            guard let name = names[key], name.last.time != received, noted.insert(key).inserted
            else { continue }
            add(key, lastSeen: name.last.time)
        }
    }

    /// Removes the name that left first; nil if there are no more than `EpochTable.mostLeft`.
    mutating func removeExcess() -> (key: ObjectKey, lastSeen: Moment)? {
        guard names.count - first > EpochTable.mostLeft else { return nil }
        let oldest = names[first]
        first += 1
        if first > EpochTable.mostLeft {
            names.removeFirst(first)
            first = 0
        }
        return oldest
    }
}

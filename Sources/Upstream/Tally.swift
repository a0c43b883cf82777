/// How many use each of some things; forgets a thing that nobody uses.
struct Tally<Key: Hashable> {
    private var counts: [Key: Int] = [:]

    /// The number of users; 0 for a thing that is unknown.
    subscript(key: Key) -> Int { counts[key] ?? 0 }

    /// Adds a user.
    ///
    /// - Returns: the number of users, with this one.
    @discardableResult
    mutating func add(_ key: Key) -> Int {
        // One lookup, since each request comes here.
        Self.increment(&counts[key, default: 0])
    }

    private static func increment(_ count: inout Int) -> Int {
        count += 1
        return count
    }

    /// Removes a user, if there is one.
    mutating func remove(_ key: Key) {
        let left = self[key] - 1
        counts[key] = left > 0 ? left : nil
    }
}

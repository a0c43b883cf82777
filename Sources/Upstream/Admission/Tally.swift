/// How many use each of some things; forgets a thing that nobody uses.
struct Tally<Key: Hashable> {
    /// The number of users of each thing in use.
    private(set) var all: [Key: Int] = [:]

    /// The number of users; 0 for a thing that is unknown.
    subscript(key: Key) -> Int { all[key] ?? 0 }

    /// Adds a user.
    ///
    /// - Returns: the number of users, with this one.
    @discardableResult
    mutating func add(_ key: Key) -> Int { change(key, by: 1) }

    /// Removes a user, if there is one.
    mutating func remove(_ key: Key) { if self[key] > 0 { change(key, by: -1) } }

    /// Adds users, or removes some that were added; traps if there are not so many.
    ///
    /// - Returns: the number of users after that.
    @discardableResult
    mutating func change(_ key: Key, by change: Int) -> Int {
        // One lookup, since each request comes here.
        Self.change(&all[key], by: change)
    }

    private static func change(_ count: inout Int?, by change: Int) -> Int {
        let sum = (count ?? 0) + change
        precondition(sum >= 0, "a user was removed twice")
        count = sum == 0 ? nil : sum
        return sum
    }
}

extension Tally: Sendable where Key: Sendable {}

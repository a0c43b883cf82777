import Model

/// Which items of a feed are read past the cache, since the origin refuses what their stored
/// playlists name.
///
/// An item is read past the cache once, and again only `pause` seconds after that, so that an
/// origin that refuses is not asked repeatedly.
struct FeedRenewals {
    /// The seconds after a reading past the cache during which refused URLs of the item do not
    /// count as expired: the origin has another reason to refuse them.
    static let pause = 300.0

    /// How far the reading of an item past the cache is.
    private enum State {
        case due, begun
        case done(at: Double)
    }

    /// What a failure means for an item.
    enum Verdict: Equatable {
        /// Its stored playlists are out of date: it is read past the cache.
        case expired
        /// The origin has it, but does not let this player have it, or not in a form that it can use.
        case refused
        /// It cannot be fetched now; with `forGood`, not before something changes.
        case dead(forGood: Bool)
    }

    private var states: [Int: State] = [:]

    /// True if an item is being read past the cache.
    func isRenewing(_ content: Int) -> Bool {
        if case .begun? = states[content] { true } else { false }
    }

    /// Decides what a failure means for an item, and notes that the item is due if it has expired.
    ///
    /// - Parameters:
    ///   - failure: why something of it could not be fetched.
    ///   - content: the item.
    ///   - isEntry: true if its own URL failed; false if one that its playlists name did.
    ///   - now: the time in seconds.
    /// - Returns: what becomes of the item.
    mutating func judge(
        _ failure: ProxyFailure, of content: Int, isEntry: Bool, now: Double
    ) -> Verdict {
        // A stored playlist stays fresh for as long as it is kept, its tokens do not.
        if failure.isOfToken, !isEntry, mayRenew(content, now: now) {
            states[content] = .due
            return .expired
        }
        // A player with a new token renews the stored playlist, which has the same key.
        if failure.isOfContent || failure.isOfToken { return .refused }
        return .dead(forGood: failure.isForGood)
    }

    /// True if an item may be read past the cache; several of its URLs may be refused before it is.
    private func mayRenew(_ content: Int, now: Double) -> Bool {
        switch states[content] {
        case nil, .due?: true
        case .begun?: false
        case .done(let time)?: now - time >= Self.pause
        }
    }

    /// Notes that an item is read: past the cache if that is due.
    mutating func begin(_ content: Int) {
        if case .due? = states[content] { states[content] = .begun }
    }

    /// Notes that the playlists of an item were read.
    mutating func end(_ content: Int, now: Double) {
        if isRenewing(content) { states[content] = .done(at: now) }
    }
}

// Which connections without a request are closed for new ones; pure.
import Posix

/// What a connection without a request in progress waits for.
enum Idleness: Int {
    /// The request after one that was answered.
    case served
    /// Its first request, or the end of its TLS handshake before it.
    case unused
}

/// The connections of one loop that give way to new ones next, chosen when all places are taken.
///
/// Those that wait for another request come first, the longest idle before the others: their
/// clients have their responses, and open a new connection for the next request (RFC 9112 section
/// 9.3.1). Connections before their first request come last, and none of them before `grace`: if
/// they gave way at once, a crowd of new clients would keep each other from finishing a handshake.
///
/// The candidates are gathered by passes over all connections, so that requests and idle
/// connections cost nothing until the limit is reached. Candidates that were returned and have not
/// given way come after all others in later passes, so that they do not hide those.
struct IdleChoice<Key> {
    /// A connection as it was in a pass; it may have got a request, or be closed, since.
    struct Candidate {
        let key: Key
        let idleness: Idleness
        let since: Monotonic
        /// True if it was returned before and has not given way.
        fileprivate let isKnown: Bool

        /// Tells whether the connection still waits as it did in the pass.
        ///
        /// - Parameter idleSince: what it waits for now, and since when.
        /// - Returns: true if it does.
        func isUnchanged(_ idleSince: (Idleness, Monotonic)?) -> Bool {
            guard let (idleness, since) = idleSince else { return false }
            return idleness == self.idleness && since == self.since
        }

        fileprivate func precedes(_ other: Candidate) -> Bool {
            if isKnown != other.isKnown { return other.isKnown }
            if idleness != other.idleness { return idleness == .served }
            return since < other.since
        }
    }

    /// One look at all connections, which keeps those that give way first.
    struct Pass {
        private let now: Monotonic
        private let returned: [Monotonic]
        /// In the order in which they give way.
        fileprivate private(set) var candidates: [Candidate] = []

        fileprivate init(now: Monotonic, returned: [Monotonic]) {
            self.now = now
            self.returned = returned
        }

        /// Looks at a connection.
        ///
        /// - Parameters:
        ///   - key: the connection.
        ///   - idleSince: what it waits for, and since when; nil while it has a request.
        mutating func consider(_ key: Key, _ idleSince: (Idleness, Monotonic)?) {
            guard let (idleness, since) = idleSince,
                idleness == .served || now - since >= IdleChoice<Key>.grace
            else { return }
            let candidate = Candidate(
                key: key, idleness: idleness, since: since,
                isKnown: since <= returned[idleness.rawValue])
            if candidates.count == IdleChoice<Key>.mostCandidates {
                guard candidate.precedes(candidates[candidates.count - 1]) else { return }
                candidates.removeLast()
            }
            var low = 0, high = candidates.count
            while low < high {
                let middle = (low + high) / 2
                if candidate.precedes(candidates[middle]) {
                    high = middle
                } else {
                    low = middle + 1
                }
            }
            candidates.insert(candidate, at: low)
        }
    }

    /// In the order in which they give way.
    private var candidates: [Candidate] = []
    /// Until when the returned candidates had become idle, by `Idleness.rawValue`: those who did so
    /// later are not known.
    ///
    /// Within a kind the longest idle are returned first, so that two times are enough.
    private var returned = Array(repeating: Monotonic(nanoseconds: .min), count: 2)
    /// The time of the last pass; nil before the first one.
    private var lastPass: Monotonic?
    /// True if the last pass found nothing that is not known.
    private var isExhausted = false

    /// How long a connection before its first request is left alone.
    static var grace: Interval { ConnectionState.lastWord }

    /// The maximum number of candidates of a pass.
    static var mostCandidates: Int { 64 }

    /// The time to the next pass after one that found nothing new: a crowd of new clients must not
    /// cost one pass each while all connections are in use.
    static var pause: Interval { .milliseconds(100) }

    /// Returns the connection that gives way next; it comes after all others from now on.
    ///
    /// - Parameters:
    ///   - now: the current time, which must not be before that of an earlier call.
    ///   - look: hands all connections to `Pass.consider`; called only if the candidates are used
    ///     up, or others may precede them.
    /// - Returns: nil if there is none, or none was found just before.
    mutating func next(now: Monotonic, look: (inout Pass) -> Void) -> Candidate? {
        if needsPass(now) {
            var pass = Pass(now: now, returned: returned)
            look(&pass)
            candidates = pass.candidates
            lastPass = now
            isExhausted = candidates.first?.isKnown ?? true
        }
        guard !candidates.isEmpty else { return nil }
        let next = candidates.removeFirst()
        let kind = next.idleness.rawValue
        returned[kind] = max(returned[kind], next.since)
        return next
    }

    private func needsPass(_ now: Monotonic) -> Bool {
        guard let lastPass else { return true }
        let isPauseOver = now - lastPass >= Self.pause
        guard let first = candidates.first else { return isPauseOver || !isExhausted }
        // Connections that have got their responses since the pass come before this one.
        return first.idleness == .unused && isPauseOver
    }
}

// The hosts that get one transfer at a time since they refused a second one: pure.
//
//     unknown ──begin──▶ trial ──good──▶ suspected ──begin──▶ trial ──good──▶ learned
//        ▲                 │                 └ two at a time ──▶ several ──begin──▶ trial
//        │                 └ bad ──▶ refuted                        ▲ good or bad ────┘
//        └── 1 to 16 minutes ──────────┘
//
// A host is suspected for ten minutes. One that is known to serve several stays so, and is not
// tried within a minute of its last trial, or longer after refused ones.
//
// One trial proves nothing: an origin that refuses requests by chance answers the next one too. It
// also answers while another transfer runs, which an account for one viewer never gets.
import Posix

/// What is known of hosts that may allow one transfer at a time.
struct SingleHosts: Sendable {
    private enum Mark: Equatable {
        /// A refused request is sent once more, with no other transfer beside it; with the trials
        /// before that went well, nil if the host has served two transfers at a time, and those
        /// that were refused since one went well.
        case trial(after: Int?, refusals: Int)
        /// With the trials that went well, and the time of the last one.
        case suspected(Int, since: Monotonic)
        /// It gets one transfer at a time.
        case learned
        /// It has served two transfers at a time: what it refuses is no matter of their number.
        /// Since it may refuse requests by chance, trials pause also after one that went well; with
        /// those that were refused since.
        case several(pausedUntil: Monotonic, refusals: Int)
        /// The last trials were refused too.
        case refuted(until: Monotonic, refusals: Int)
    }

    /// The most hosts that are remembered.
    static let most = 64
    /// The number of trials that must go well.
    private static let needed = 2
    /// The time after which a trial that went well says nothing of the next one.
    private static let suspicion = Interval.seconds(600 as Int64)
    /// The time without trials after so many in a row that were refused: 1, 2, 4, 8 and then 16
    /// minutes.
    ///
    /// A host that refuses for another reason must not cut off downloads for ever.
    private static func pause(after refusals: Int) -> Interval {
        let minutes: Int64 = 1 << Int64(min(refusals - 1, 4))
        return Interval.seconds(60 * minutes)
    }

    private var marks: [String: Mark] = [:]

    /// True if nothing is known of any host.
    var isEmpty: Bool { marks.isEmpty }
    /// The hosts that get one transfer at a time for the rest of the run.
    var learned: Set<String> {
        Set(marks.filter { if case .learned = $0.value { true } else { false } }.keys)
    }

    /// True if a host gets one transfer at a time, at least during a trial.
    func isSingle(_ host: String) -> Bool {
        switch marks[host] {
        case .trial, .learned: true
        case nil, .suspected, .several, .refuted: false
        }
    }

    /// True if a host gets one transfer at a time for the rest of the run.
    func isLearned(_ host: String) -> Bool {
        if case .learned = marks[host] { true } else { false }
    }

    /// True while a trial runs: nothing that no player waits for may start.
    func isTried(_ host: String) -> Bool {
        if case .trial = marks[host] { true } else { false }
    }

    /// True if a request that a host refused may be sent once more.
    ///
    /// - Parameters:
    ///   - host: the host.
    ///   - hasOthers: whether other transfers to it can be ended, and no further ones run.
    ///   - now: the time.
    /// - Returns: false if its refusal is an answer.
    func mayTry(_ host: String, hasOthers: Bool, now: Monotonic) -> Bool {
        switch marks[host] {
        case nil: hasOthers && (marks.count < Self.most || replaceable != nil)
        case .suspected: hasOthers
        case .several(let until, _), .refuted(let until, _): hasOthers && now >= until
        case .trial, .learned: false
        }
    }

    /// A host that may be forgotten for another one.
    private var replaceable: String? { marks.keys.first { !isSingle($0) } }

    /// Begins a trial, which `end` must end; for a host that is learned, none is needed.
    ///
    /// - Parameters:
    ///   - host: the host.
    ///   - hasLimit: whether a limit is configured for it: it is never learned then.
    ///   - now: the time.
    mutating func begin(_ host: String, hasLimit: Bool = false, now: Monotonic) {
        switch marks[host] {
        case nil:
            if marks.count >= Self.most, let other = replaceable { marks[other] = nil }
            marks[host] = .trial(after: hasLimit ? nil : 0, refusals: 0)
        case .suspected(let count, let since):
            let isRecent = now - since < Self.suspicion
            marks[host] = .trial(after: isRecent ? count : 0, refusals: 0)
        case .several(_, let refusals): marks[host] = .trial(after: nil, refusals: refusals)
        case .refuted(_, let refusals): marks[host] = .trial(after: 0, refusals: refusals)
        case .trial, .learned: break
        }
    }

    /// Ends a trial.
    ///
    /// - Parameters:
    ///   - host: the host.
    ///   - isGood: whether the request was answered this time; nil if that is not known.
    ///   - now: the time.
    /// - Returns: true if the host is learned by it.
    mutating func end(_ host: String, isGood: Bool?, now: Monotonic) -> Bool {
        guard case .trial(let before, let refusals) = marks[host] else { return false }
        if isGood == false {
            let until = now + Self.pause(after: refusals + 1)
            marks[host] =
                before == nil
                ? .several(pausedUntil: until, refusals: refusals + 1)
                : .refuted(until: until, refusals: refusals + 1)
            return false
        }
        guard let before else {
            marks[host] = .several(
                pausedUntil: now + Self.pause(after: 1), refusals: isGood == true ? 0 : refusals)
            return false
        }
        let count = before + (isGood == true ? 1 : 0)
        if count >= Self.needed {
            marks[host] = .learned
            return true
        }
        if count > 0 {
            marks[host] = .suspected(count, since: now)
        } else {
            marks[host] = refusals > 0 ? .refuted(until: now, refusals: refusals) : nil
        }
        return false
    }

    /// True if two transfers at a time would show that the host was suspected wrongly.
    func isSuspected(_ host: String) -> Bool {
        if case .suspected = marks[host] { true } else { false }
    }

    /// Notes that a suspected host serves two transfers at a time.
    mutating func noteSeveral(_ host: String) {
        guard case .suspected(_, let since) = marks[host] else { return }
        marks[host] = .several(pausedUntil: since + Self.pause(after: 1), refusals: 0)
    }
}

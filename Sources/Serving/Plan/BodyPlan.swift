import CachePolicy
import Model
import Store

/// What is done about the bytes of an answer before its head is sent.
enum BodyPlan: Equatable, Sendable {
    /// The head goes out; bytes that are missing are fetched as the reader comes to them.
    case send(Disposition)
    /// The first byte is missing and not on its way. It is asked for before a head is promised: an
    /// origin that fails then gives an error, not a broken body, and one that has another
    /// representation by now gives that. `stop` is where the hole ends, nil for the end of the body.
    case fetchFirst(stop: Int64?)
    /// Only the first byte of the range, or the end of the body, tells whether the range can be
    /// satisfied, since nobody knows the length.
    case awaitFirst
    case refuse(Refusal)
}

/// What that is decided from.
struct BodyFacts {
    /// How the answer came about so far.
    let disposition: Disposition
    let policy: Policy
    let origin: OriginHealth.State
    /// True once an origin was asked for this answer.
    let wasAsked: Bool
    /// True where the origin was asked for the first bytes only, to learn the type.
    var learnsTypeFirst = false
    var isHead = false
    /// Whether a range is sent, and not the whole.
    var isRange = false
    /// Whether a byte that tells if the range can be satisfied was waited for.
    var hasAwaited = false
    /// The stretch that is sent; nil for an end that is not known.
    let start: Int64
    let end: Int64?
    /// The length of the stored response, where it is known.
    let total: Int64?
    /// Whether the whole stretch is stored.
    let isPresent: Bool
    /// What is missing from `start` on; nil where that byte is there.
    var hole: Hole?
    /// Bytes that a reader waits for rather than ask for them by itself.
    let joinDistance: Int64

    var plan: BodyPlan {
        var disposition = disposition
        if disposition == .hit, !isPresent { disposition = .partial }
        if !isPresent, !wasAsked {
            if policy == .offline { return .refuse(.partNotStored) }
            if disposition == .partial, origin == .down { return .refuse(.partOfSilentOrigin) }
        }
        guard !isHead, let hole else { return .send(disposition) }
        let isEmpty = end.map { $0 <= start } ?? false
        if !wasAsked || learnsTypeFirst, !isEmpty,
            hole.fill == nil || hole.fillDistance > joinDistance
        {
            let stop = Self.earlier(end, hole.end)
            return .fetchFirst(stop: stop == total ? nil : stop)
        }
        return isRange && total == nil && !hasAwaited ? .awaitFirst : .send(disposition)
    }

    /// The lesser of two offsets, of which either may not be known.
    private static func earlier(_ one: Int64?, _ other: Int64?) -> Int64? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }
}

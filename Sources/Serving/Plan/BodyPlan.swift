import CachePolicy
import Model
import Posix
import Store

/// What must happen to the body of a response before its head is sent.
enum BodyPlan: Equatable, Sendable {
    /// The head is sent; missing bytes are fetched when the reader gets there.
    case send(Disposition)
    /// The first byte is missing and not on its way.
    ///
    /// It is fetched before a head is sent: an origin that fails then causes an error, not an
    /// incomplete body, and one that now has another representation delivers that. `stop` is the
    /// end of the hole, nil for the end of the body.
    case fetchFirst(stop: Int64?)
    /// The length is unknown, so only the first byte of the range or the end of the body shows
    /// whether the range is satisfiable.
    case awaitFirst
    /// The length is unknown, and a transfer will soon show whether the body reaches the end of the
    /// range, which the head states.
    case awaitLast
    case refuse(Refusal)
}

/// The facts that decide about the body.
struct BodyFacts {
    /// How the response was obtained so far.
    let disposition: Disposition
    let policy: Policy
    let origin: OriginHealth.State
    /// True if the return of an origin that is down is waited for.
    var isAwaited = false
    /// True once an origin was contacted for this response.
    let wasAsked: Bool
    /// True if the origin may be asked once more, for the requested range: only the first bytes
    /// were fetched, to learn the type, or a revalidation asked for the whole.
    var mayAskAgain = false
    var isHead = false
    /// True if a range is sent, not the whole body.
    var isRange = false
    /// True if the byte that shows whether the range is satisfiable was waited for.
    var hasAwaited = false
    /// The stretch that is sent; `end` is nil if unknown.
    let start: Int64
    let end: Int64?
    /// The length of the stored response, if known.
    let total: Int64?
    /// True if the whole stretch is stored.
    let isPresent: Bool
    /// The hole at `start`; nil if that byte is present.
    var hole: Hole?
    /// The first hole in the stretch, if one is known; it may be `hole`.
    var firstHole: Hole?
    /// The hole at the last byte of a range, if that byte is to be waited for and was not yet.
    var lastHole: Hole?
    /// The distance to a flight, in bytes, up to which a reader waits for it instead of starting
    /// its own.
    let joinDistance: Int64

    var plan: BodyPlan {
        var disposition = disposition
        if disposition == .hit, !isPresent { disposition = isArriving ? .collapsed : .partial }
        if !isPresent, !wasAsked {
            if policy == .offline { return .refuse(.partNotStored) }
            let needsOrigin = disposition == .partial || disposition == .collapsed
            if needsOrigin, origin == .down, isHead || !isAwaited {
                return .refuse(.partOfSilentOrigin)
            }
        }
        guard !isHead, let hole else { return awaitsLast ? .awaitLast : .send(disposition) }
        let isEmpty = end.map { $0 <= start } ?? false
        if !wasAsked || mayAskAgain, !isEmpty,
            hole.fill == nil || hole.fillDistance > joinDistance
        {
            let stop = Self.earlier(end, hole.end)
            return .fetchFirst(stop: stop == total ? nil : stop)
        }
        if isRange, total == nil, !hasAwaited { return .awaitFirst }
        return awaitsLast ? .awaitLast : .send(disposition)
    }

    /// True if another request's fetch brings what is missing, so that this one needs none.
    private var isArriving: Bool {
        guard let firstHole, firstHole.fill != nil, firstHole.fillDistance <= joinDistance else {
            return false
        }
        guard let fillEnd = firstHole.fillEnd else { return true }
        return Self.earlier(end, firstHole.end).map { $0 <= fillEnd } ?? false
    }

    /// Returns how long the head of a range of a body of unknown length may wait for the last byte
    /// of the range.
    ///
    /// A short range has arrived before its player misses the head, unless the transfer has
    /// stopped. A longer one gets two seconds, as long as a player bears; its head may then state
    /// more bytes than the body has.
    ///
    /// - Parameter length: the length of the range.
    /// - Returns: nil for a range that is too long.
    static func patience(forLength length: Int64) -> Interval? {
        if length <= 64 << 10 { return .seconds(60) }
        return length <= 1 << 20 ? .seconds(2) : nil
    }

    private var awaitsLast: Bool {
        guard isRange, total == nil, let lastHole else { return false }
        // A partial response states the bytes that it has.
        if lastHole.fillEnd != nil { return false }
        return lastHole.fill != nil && lastHole.fillDistance <= joinDistance
    }

    /// Returns the lesser of two offsets, either of which may be unknown.
    private static func earlier(_ one: Int64?, _ other: Int64?) -> Int64? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }
}

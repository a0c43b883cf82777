import HTTP
import Model

/// The comparison of a response with stored bytes, which proves what no validator does: that both
/// belong to the same version.
extension FlightMachine {
    /// Starts comparing the beginning of a response with stored bytes, if it begins before the
    /// wanted bytes.
    ///
    /// - Returns: false if it does not, or if there is nothing to compare.
    mutating func compares(
        _ placement: Placement, _ known: KnownFacts, _ attempt: Attempt
    ) -> Bool {
        guard case .span(let wantedStart, _) = wanted, let body = known.compared,
            let proven = body.provenStart(of: placement, wanted: wantedStart)
        else { return false }
        var behind = placement
        behind.start = proven
        behind.isProvenRest = true
        enter(
            .comparing(
                attempt,
                Comparison(position: placement.start, start: proven, placement: behind)))
        return true
    }

    /// The progress of the comparison; nil if none is under way.
    var comparison: Comparison? {
        if case .comparing(_, let comparison) = state { comparison } else { nil }
    }

    /// Handles the result of comparing bytes of the response with the stored ones.
    mutating func compared(_ count: Int64, areSame: Bool) -> [Action] {
        guard case .comparing(let attempt, var comparison) = state else { return [] }
        guard areSame else { return foundOtherVersion() }
        comparison.position += count
        enter(.comparing(attempt, comparison))
        guard comparison.position == comparison.start else { return [] }
        return [.begin(comparison.placement)]
    }

    /// Handles stored bytes that were lost when they were to be compared: they prove nothing, and
    /// the next request finds them missing.
    mutating func lostCompared() -> [Action] {
        guard case .comparing = state else { return [] }
        guard fill == nil, !waiters.isEmpty, !job.wantsRest else { return foundOtherVersion() }
        return [.drop, .count(.originRetries)] + becomeDue()
    }

    /// Handles a new version at the origin: the stored object is discarded, and waiters that have
    /// received nothing of it get the new version.
    mutating func foundOtherVersion() -> [Action] {
        let first: [Action] = [.drop, .noteOtherVersion, .discardObject]
        guard fill == nil, !waiters.isEmpty, !job.wantsRest else {
            return first
                + fail(
                    ProxyFailure(
                        .origin, .badGateway,
                        "\(job.subject): the origin has another version now"),
                    cause: FillEnd.representationChanged)
        }
        return first + [.forgetObject, .count(.originRetries)] + becomeDue()
    }
}

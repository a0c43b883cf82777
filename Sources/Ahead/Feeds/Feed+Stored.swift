import HLS
import Lookahead
import Model
import Store

/// How much of a feed's items is in the store.
extension Feed {
    /// Checks how much of the active item its player has fetched.
    func noticePlayed() {
        for (part, piece) in planner.awaited {
            guard let bytes = storedBytes(of: piece, planner.active) else { continue }
            planner.noticed(part: part, bytes: bytes)
        }
    }

    /// Compares with the store, unless that was done some seconds ago or nobody uses the feed.
    func compareAgain() {
        guard comparisons.isDue(at: now) else { return }
        compare()
    }

    /// Has the planner fetch again pieces that it counts as stored but the store has lost.
    func compare() {
        guard isAwake, !isOver else { return }
        comparisons.make(at: now)
        let lost = planner.claims(at: now).filter { claim in
            (storedBytes(of: claim.piece, claim.content) ?? 0) < claim.bytes
        }
        perform(planner.lost(lost, at: now))
    }

    /// Returns the stored bytes from the start of a piece on, `.max` for all; nil if nothing of its
    /// resource is stored.
    private func storedBytes(of piece: MediaPiece, _ content: Int) -> Int64? {
        guard let resource = resource(of: piece, content),
            let object = services.store.peek(resource.key)
        else { return nil }
        let start = piece.range?.lowerBound ?? 0
        let end = object.spans.contiguousEnd(from: start)
        if object.isComplete { return .max }
        // A range may reach beyond the end of its file.
        if let range = piece.range, end >= min(range.upperBound, object.total ?? .max) {
            return .max
        }
        return end - start
    }
}

// How writes of orders and claims ended.
import Posix

extension OrderBoard {
    /// Reports how the write of an order ended.
    package mutating func wrote(_ order: SharedOrder, _ isWritten: Bool) {
        entries[order.id]?.isWriting = false
        guard isWritten, var entry = entries[order.id], entry.order?.given == order.given else {
            return
        }
        entry.isUnwritten = false
        // Another key may have come to seal while it was written.
        entry.hasFormerSeal = entry.seal != seal
        entry.listed = order.given
        entries[order.id] = entry
        newest[order.id] = order.name
    }

    /// Reports how the write of a claim ended.
    package mutating func claimed(
        _ id: SharedOrderID, turn: Int, _ result: ClaimResult
    ) -> [Action] {
        guard var entry = entries[id], entry.isClaiming else { return [] }
        defer { entries[id] = entry }
        switch result {
        case .unsupported where isConditional:
            isConditional = false
            fallthrough
        case .unsupported:
            return [.writeClaim(id, turn: turn, isConditional: false)]
        case .lost, .failed:
            entry.isClaiming = false
            return []
        case .won:
            entry.isClaiming = false
            guard turn > entry.turn else { return [] }
            // The next listing brings a tag that is not known, so that it is read once: a store that
            // ignores the condition may have another node's by then.
            (entry.turn, entry.holder, entry.claimTag) = (turn, node, nil)
            guard let order = entry.order, order.wish.needsNode, !entry.isHere else { return [] }
            entry.isHere = true
            entry.applied = order.given
            return [.take(order)]
        }
    }
}

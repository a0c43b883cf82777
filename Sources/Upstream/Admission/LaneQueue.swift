// The waiters of one lane: FIFO inside a party, parties taking turns, any waiter removable. A party
// is a session, or a host for what waits for an extra slot.
import DequeModule

/// Holds ids only; the owner of the ids decides which may go.
///
/// A removed waiter leaves its id behind in its party's queue; such remains are swept when they
/// outnumber the live ids, so that removal costs O(1) on average and memory stays bounded.
struct LaneQueue<Party: Hashable> {
    private struct PartyQueue {
        /// Distinguishes this queue from an earlier one of the same party.
        let serial: UInt64
        var ids: Deque<UInt64> = []
        var live = 0
    }

    private struct Turn {
        let party: Party
        let serial: UInt64
    }

    private var parties: [Party: PartyQueue] = [:]
    private var turns: Deque<Turn> = []
    /// The party of each waiter; a waiter is in the lane exactly if it is in this table.
    private var owners: [UInt64: Party] = [:]
    private var nextSerial: UInt64 = 0

    /// The number of waiters.
    var count: Int { owners.count }

    /// Ids kept in all queues, removed ones included; for tests of the sweeping.
    var footprint: Int { parties.values.reduce(turns.count) { $0 + $1.ids.count } }

    /// Adds a waiter.
    mutating func add(_ id: UInt64, of party: Party) {
        precondition(owners[id] == nil, "waiter \(id) is already in the lane")
        owners[id] = party
        if parties[party] == nil {
            nextSerial += 1
            parties[party] = PartyQueue(serial: nextSerial)
            turns.append(Turn(party: party, serial: nextSerial))
        }
        parties[party]?.ids.append(id)
        parties[party]?.live += 1
    }

    /// Removes a waiter at any position; returns false if it is not here.
    mutating func remove(_ id: UInt64) -> Bool {
        guard let party = owners.removeValue(forKey: id) else { return false }
        parties[party]?.live -= 1
        sweep(party)
        return true
    }

    /// Removes and returns the next waiter that `mayGo`, and passes the turn to the next party.
    mutating func take(where mayGo: (UInt64) -> Bool) -> UInt64? {
        // A single waiter, the usual case: no turns need to be kept.
        if owners.count == 1, let id = owners.keys.first {
            guard mayGo(id) else { return nil }
            owners.removeAll(keepingCapacity: true)
            parties.removeAll(keepingCapacity: true)
            turns.removeAll(keepingCapacity: true)
            return id
        }
        return take(of: { _ in true }, where: mayGo)
    }

    /// Removes and returns the next waiter that `mayGo`, of the parties that `hasTurn`, and passes
    /// the turn to the next party.
    mutating func take(
        of hasTurn: (Party) -> Bool, where mayGo: (UInt64) -> Bool
    ) -> UInt64? {
        guard let (index, id) = find(hasTurn, mayGo) else { return nil }
        turns.append(turns.remove(at: index))
        _ = remove(id)
        return id
    }

    /// Returns the first waiter, in the order of taking, that `isWanted`.
    func first(where isWanted: (UInt64) -> Bool) -> UInt64? {
        find({ _ in true }, isWanted)?.id
    }

    private func find(
        _ hasTurn: (Party) -> Bool, _ isWanted: (UInt64) -> Bool
    ) -> (index: Int, id: UInt64)? {
        for index in turns.indices {
            let turn = turns[index]
            guard let queue = parties[turn.party], queue.serial == turn.serial,
                hasTurn(turn.party)
            else { continue }
            for id in queue.ids where owners[id] == turn.party && isWanted(id) {
                return (index, id)
            }
        }
        return nil
    }

    private mutating func sweep(_ party: Party) {
        guard let live = parties[party]?.live else { return }
        if live == 0 {
            parties[party] = nil
            if turns.count > 2 * parties.count + 16 {
                turns = turns.filter { parties[$0.party]?.serial == $0.serial }
            }
            return
        }
        while let id = parties[party]?.ids.first, owners[id] != party {
            parties[party]?.ids.removeFirst()
        }
        if let count = parties[party]?.ids.count, count > 2 * live + 16 {
            parties[party]?.ids.removeAll { owners[$0] != party }
        }
    }
}

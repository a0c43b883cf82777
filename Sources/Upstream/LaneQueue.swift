// The waiters of one lane: FIFO inside a session, sessions taking turns, any waiter removable. What
// waits for an extra slot is queued by host in the same way, with the host as its session.
import DequeModule

/// Holds ids only; the owner of the ids decides which may go.
///
/// A removed waiter leaves its id behind in its session's queue; such remains are swept when they
/// outnumber the live ids, so that removal costs O(1) on average and memory stays bounded.
struct LaneQueue<Session: Hashable> {
    private struct SessionQueue {
        /// Distinguishes this queue from an earlier one of the same session.
        let serial: UInt64
        var ids: Deque<UInt64> = []
        var live = 0
    }

    private struct Turn {
        let session: Session
        let serial: UInt64
    }

    private var sessions: [Session: SessionQueue] = [:]
    private var turns: Deque<Turn> = []
    /// The session of each waiter; a waiter is in the lane exactly if it is in this table.
    private var owners: [UInt64: Session] = [:]
    private var nextSerial: UInt64 = 0

    /// The number of waiters.
    var count: Int { owners.count }

    /// Ids kept in all queues, removed ones included; for tests of the sweeping.
    var footprint: Int { sessions.values.reduce(turns.count) { $0 + $1.ids.count } }

    /// Adds a waiter.
    mutating func add(_ id: UInt64, session: Session) {
        precondition(owners[id] == nil, "waiter \(id) is already in the lane")
        owners[id] = session
        if sessions[session] == nil {
            nextSerial += 1
            sessions[session] = SessionQueue(serial: nextSerial)
            turns.append(Turn(session: session, serial: nextSerial))
        }
        sessions[session]?.ids.append(id)
        sessions[session]?.live += 1
    }

    /// Removes a waiter at any position; returns false if it is not here.
    mutating func remove(_ id: UInt64) -> Bool {
        guard let session = owners.removeValue(forKey: id) else { return false }
        sessions[session]?.live -= 1
        sweep(session)
        return true
    }

    /// Removes and returns the next waiter that `mayGo`, and passes the turn to the next session.
    mutating func take(where mayGo: (UInt64) -> Bool) -> UInt64? {
        // A single waiter, the usual case: no turns need to be kept.
        if owners.count == 1, let id = owners.keys.first {
            guard mayGo(id) else { return nil }
            owners.removeAll(keepingCapacity: true)
            sessions.removeAll(keepingCapacity: true)
            turns.removeAll(keepingCapacity: true)
            return id
        }
        return take(of: { _ in true }, where: mayGo)
    }

    /// Removes and returns the next waiter that `mayGo`, of the sessions that `hasTurn`, and passes
    /// the turn to the next session.
    mutating func take(
        of hasTurn: (Session) -> Bool, where mayGo: (UInt64) -> Bool
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
        _ hasTurn: (Session) -> Bool, _ isWanted: (UInt64) -> Bool
    ) -> (index: Int, id: UInt64)? {
        for index in turns.indices {
            let turn = turns[index]
            guard let queue = sessions[turn.session], queue.serial == turn.serial,
                hasTurn(turn.session)
            else { continue }
            for id in queue.ids where owners[id] == turn.session && isWanted(id) {
                return (index, id)
            }
        }
        return nil
    }

    private mutating func sweep(_ session: Session) {
        guard let live = sessions[session]?.live else { return }
        if live == 0 {
            sessions[session] = nil
            if turns.count > 2 * sessions.count + 16 {
                turns = turns.filter { sessions[$0.session]?.serial == $0.serial }
            }
            return
        }
        while let id = sessions[session]?.ids.first, owners[id] != session {
            sessions[session]?.ids.removeFirst()
        }
        if let count = sessions[session]?.ids.count, count > 2 * live + 16 {
            sessions[session]?.ids.removeAll { owners[$0] != session }
        }
    }
}

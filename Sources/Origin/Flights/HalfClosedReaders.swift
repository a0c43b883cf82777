// Requests of clients that have probably closed make way for those of other players.
import Model
import Upstream

/// The requests whose clients have shut their sending side, and how each is ended.
///
/// A client that has closed looks like one that only shut its sending side (RFC 9112 section 9.6),
/// so that the server keeps it for half a second. It is ended sooner if it keeps another player
/// from a slot.
struct HalfClosedReaders {
    private var ends: [FetchID: @Sendable () -> Void] = [:]

    var isEmpty: Bool { ends.isEmpty }

    func contains(_ id: FetchID) -> Bool { ends[id] != nil }

    mutating func add(_ id: FetchID, _ end: @escaping @Sendable () -> Void) { ends[id] = end }

    /// Removes a request that was answered or has been cancelled.
    mutating func remove(_ id: FetchID) { if !ends.isEmpty { ends[id] = nil } }

    /// Ends the requests that are in the way of others.
    mutating func end(where isInTheWay: (FetchID) -> Bool) {
        for (id, end) in ends where isInTheWay(id) {
            ends[id] = nil
            end()
        }
    }
}

/// What the requests of players wait for.
struct AwaitedSlots {
    /// The hosts of these requests.
    let hosts: Set<String>
    /// True if all slots are in use: any transfer that ends makes room.
    let areSlotsTaken: Bool

    /// Whether the end of a transfer may let one of the requests begin.
    ///
    /// - Parameters:
    ///   - host: the host of the transfer.
    ///   - first: the host that it was sent to first, which may count it though it has redirected
    ///     it; nil for the same.
    /// - Returns: true if it is in the way of one of them.
    func include(_ host: String, redirectedBy first: String? = nil) -> Bool {
        hosts.contains(host) || first.map { hosts.contains($0) } ?? false
            || (areSlotsTaken && !hosts.isEmpty)
    }
}

extension FlightTable {
    /// Notes that the client of a request has shut its sending side; `end` ends the request, unless
    /// it has been answered.
    func noteHalfClosed(_ id: FetchID, _ end: @escaping @Sendable () -> Void) {
        guard flight(of: id) != nil || positions.waits(id) else { return }
        halfClosed.add(id, end)
        // Settling reports whether a player waits for a slot.
        client.scheduleRoundEnd()
    }

    /// Handles the report of a half-closed client, if there is one, that came while its request
    /// waited for a list: the request has been answered since, or is fetched now.
    func settleHalfClosed(_ id: FetchID) {
        guard halfClosed.contains(id) else { return }
        guard flight(of: id) != nil else { return halfClosed.remove(id) }
        client.scheduleRoundEnd()
    }

    /// Ends requests of half-closed clients that keep another player from a slot.
    func endHalfClosed() {
        guard !halfClosed.isEmpty else { return }
        let waiting = playerFlights.values.filter { flight in
            flight.transfer?.state == .waiting && hasOpenReader(flight)
        }
        let now = client.statistics()
        let awaited = AwaitedSlots(
            hosts: Set(waiting.compactMap(\.transfer).flatMap { [$0.host, $0.firstHost] }),
            areSlotsTaken: now.slotsInUse >= now.slotLimit)
        var ending = halfClosed
        // Each flight is looked through once: thousands of half-closed clients may wait for it.
        var areNeeded: [ObjectIdentifier: Bool] = [:]
        ending.end { id in
            guard let flight = self.flight(of: id), let transfer = flight.transfer,
                awaited.include(transfer.host, redirectedBy: transfer.firstHost)
            else { return false }
            let name = ObjectIdentifier(flight)
            let isNeeded = areNeeded[name] ?? hasOpenReader(flight)
            areNeeded[name] = isNeeded
            return !isNeeded
        }
        halfClosed = ending
    }

    /// True if a flight is needed by others than half-closed clients.
    private func hasOpenReader(_ flight: Flight) -> Bool {
        guard flight.hasWaiters else { return flight.isNeeded }
        return flight.machine.waiters.all.contains { !halfClosed.contains($0.id) }
    }
}

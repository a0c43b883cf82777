import Model
import Posix
import Reactor
import Routing
import Store
import Upstream

/// When a fetch ends because nobody wants it any more (decision 6).
extension FlightTable {
    /// Looks, after a grace time, whether anybody still wants what an object's flights bring.
    func readerLeft(_ key: ObjectKey) {
        for flight in flights(of: key) { leave(flight) }
    }

    /// The last request that waited for a flight was taken back.
    func waitersLeft(_ flight: Flight) {
        let isWithOrigin = flight.transfer?.state == .running
        guard flight.machine.hasGrace(isWithOrigin: isWithOrigin) else { return flight.abandon() }
        leave(flight)
    }

    private func leave(_ flight: Flight) {
        leaving[ObjectIdentifier(flight)] = flight
        // Which tells whether somebody waits.
        client.setNeedsSettle()
        checkAbandoned(flight)
    }

    /// Abandons a flight that nobody waits for, unless it is nearly done.
    func checkAbandoned(_ flight: Flight) {
        let grace = flight.machine.isLetGo ? Interval.zero : settings.abandonGrace
        loop.schedule(after: grace) { [weak self, weak flight] _ in
            guard let self, let flight else { return }
            leaving[ObjectIdentifier(flight)] = nil
            abandonUnlessWanted(flight, isUrgent: flight.machine.isLetGo)
        }
    }

    /// Ends what is in its grace time, since a player waits for a slot: with one connection to a host
    /// the next channel would have to wait for the former one.
    func giveWay() {
        var isEarly = false
        for flight in leaving.values {
            if flight.machine.wasToldLately(loop.now, within: Self.wayToReader) {
                isEarly = true
            } else {
                abandonUnlessWanted(flight, isUrgent: true)
            }
        }
        guard isEarly, !willGiveWay else { return }
        willGiveWay = true
        loop.schedule(after: Self.wayToReader) { [weak self] _ in
            self?.willGiveWay = false
            self?.client.setNeedsSettle()
        }
    }

    /// In this time a player that was told of an object has begun to read it.
    static let wayToReader = Interval.milliseconds(50)

    private func abandonUnlessWanted(_ flight: Flight, isUrgent: Bool) {
        guard !isNeeded(flight) else { return leaving[ObjectIdentifier(flight)] = nil }
        guard flight.machine.isHandedOut, let object = flight.object,
            isWorthFinishing(flight, object, isUrgent: isUrgent)
        else { return flight.abandon() }
        // A player that waits for a slot may still take this one's.
        leaving[ObjectIdentifier(flight)] = flight
        let limit = isUrgent ? AheadTask.finishWithin : Self.finishWithin
        loop.schedule(after: limit) { [weak self, weak flight] _ in
            guard let self, let flight, leaving[ObjectIdentifier(flight)] != nil,
                !isNeeded(flight)
            else { return }
            // It did not end as soon as its pace promised.
            flight.abandon()
        }
    }

    /// An abandoned transfer is finished only where that takes no longer.
    private static let finishWithin = Interval.seconds(2 as Int64)

    /// Whether anybody waits for what a flight brings.
    func isNeeded(_ flight: Flight) -> Bool {
        flight.machine.isNeeded(
            isRead: hasReader(flight), now: loop.now, wayToReader: Self.wayToReader)
            && (flight.hasWaiters || flight.object != nil || flight.phase == .ended)
    }

    /// Whether a reader wants what a flight brings next.
    func hasReader(_ flight: Flight) -> Bool {
        flight.object.map { isWanted(flight, $0) } ?? false
    }

    /// Whether a broken transfer is worth taking up: a reader that is far ahead of an origin which
    /// knows no ranges has nothing else to wait for.
    func isWorthResuming(_ flight: Flight) -> Bool {
        if isNeeded(flight) { return true }
        guard !flight.machine.ranges.contains(.taken), let object = flight.object else {
            return false
        }
        return readers.count(object.generation) > 0
    }

    /// Whether a reader is near enough to live on this flight; one that sought far ahead is not.
    private func isWanted(_ flight: Flight, _ object: StoredObject) -> Bool {
        guard let position = flight.position else {
            return readers.count(object.generation) > 0
        }
        // Where the origin ignores ranges there is nothing nearer to come.
        let isNearest = flight.machine.ranges.contains(.ignored)
        let distance = isNearest ? 1 << 60 : settings.joinDistance + Readers.step
        return readers.isWanted(object.generation, at: position, within: distance)
    }

    /// A transfer that is half done, or has little left, is finished where its pace so far lets it
    /// end soon: the player will be back.
    private func isWorthFinishing(
        _ flight: Flight, _ object: StoredObject, isUrgent: Bool
    ) -> Bool {
        guard !isUrgent else { return flight.isAboutToEnd(within: AheadTask.finishWithin) }
        guard flight.isAboutToEnd(within: Self.finishWithin), object.isStorable,
            let progress = flight.progress
        else { return false }
        return progress.isMostlyDone(
            remainder: settings.finishRemainder, half: settings.finishHalf)
    }

    /// The viewer of a session is known to have gone on: what its player still had on its way ends as
    /// soon as nobody reads it.
    func letGo(ofSession number: UInt64) {
        for flight in allFlights where flight.resource.session.id.number == number {
            flight.machine.isLetGo = true
            checkAbandoned(flight)
        }
    }
}

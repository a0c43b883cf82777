import Model
import Posix
import Reactor
import Routing
import Store
import Upstream

/// The end of fetches that are not needed any more (decision 6).
extension FlightTable {
    /// Checks, after a grace period, whether an object's flights are still needed.
    func readerLeft(_ key: ObjectKey, generation: UInt64) {
        let flights = flights(of: key)
        // One with waiters is needed; the last of them reports by itself that it leaves. There may be
        // thousands that wait for a slot, one for each of as many ranges.
        for flight in flights where !flight.hasWaiters { beginGracePeriod(flight) }
        guard !flights.contains(where: { $0.object?.generation == generation }) else { return }
        // Under HTTP's rules an object has the key of its variant, and its flight that of the URL.
        for flight in allFlights where flight.object?.generation == generation {
            beginGracePeriod(flight)
        }
    }

    /// Handles that the last waiter of a flight has left.
    func waitersLeft(_ flight: Flight) {
        let isWithOrigin = flight.transfer?.state == .running || flight.sharing?.read != nil
        guard flight.machine.hasGrace(isWithOrigin: isWithOrigin) else { return flight.abandon() }
        beginGracePeriod(flight)
    }

    private func beginGracePeriod(_ flight: Flight) {
        inGracePeriod[ObjectIdentifier(flight)] = flight
        // Settling reports whether a player waits for a slot.
        client.scheduleRoundEnd()
        checkAbandoned(flight)
    }

    /// Abandons a flight that is not needed, after its grace period, unless it is nearly done.
    func checkAbandoned(_ flight: Flight) {
        let grace = flight.machine.viewerMovedOn ? Interval.zero : services.settings.abandonGrace
        loop.schedule(after: grace) { [weak self, weak flight] _ in
            guard let self, let flight else { return }
            inGracePeriod[ObjectIdentifier(flight)] = nil
            abandonUnlessWanted(flight, isUrgent: flight.machine.viewerMovedOn)
        }
    }

    /// Cuts grace periods short when a player waits for a slot: with one connection to a host, the
    /// next channel would have to wait for the former one.
    func cutGracePeriodsShort() {
        var isEarly = false
        for flight in inGracePeriod.values {
            if flight.machine.wasObjectGivenLately(loop.now, within: Self.wayToReader) {
                isEarly = true
            } else {
                abandonUnlessWanted(flight, isUrgent: true)
            }
        }
        guard isEarly, !hasGraceCheck else { return }
        hasGraceCheck = true
        loop.schedule(after: Self.wayToReader) { [weak self] _ in
            self?.hasGraceCheck = false
            self?.client.scheduleRoundEnd()
        }
    }

    /// The time within which a player that was given an object begins to read it.
    static let wayToReader = Interval.milliseconds(50)

    private func abandonUnlessWanted(_ flight: Flight, isUrgent: Bool) {
        guard !isNeeded(flight) else { return inGracePeriod[ObjectIdentifier(flight)] = nil }
        guard flight.machine.wasObjectGiven, let object = flight.object,
            isWorthFinishing(flight, object, isUrgent: isUrgent)
        else { return flight.abandon() }
        // It still ends early if a player waits for a slot.
        inGracePeriod[ObjectIdentifier(flight)] = flight
        let limit = isUrgent ? AheadTask.finishWithin : Self.finishWithin
        loop.schedule(after: limit) { [weak self, weak flight] _ in
            guard let self, let flight, inGracePeriod[ObjectIdentifier(flight)] != nil,
                !isNeeded(flight)
            else { return }
            // It was slower than its speed had promised.
            flight.abandon()
        }
    }

    /// An abandoned transfer is finished only if that takes no longer than this.
    private static let finishWithin = Interval.seconds(2 as Int64)

    /// True if something waits for what a flight fetches.
    func isNeeded(_ flight: Flight) -> Bool {
        flight.machine.isNeeded(
            isRead: hasReader(flight), now: loop.now, wayToReader: Self.wayToReader)
            && (flight.hasWaiters || flight.object != nil || flight.phase == .ended)
    }

    /// True if a reader needs the next bytes of a flight.
    func hasReader(_ flight: Flight) -> Bool {
        flight.object.map { isWanted(flight, $0) } ?? false
    }

    /// True if a failed transfer is worth resuming: a reader far ahead of an origin without range
    /// support has no other source.
    func isWorthResuming(_ flight: Flight) -> Bool {
        if isNeeded(flight) { return true }
        guard !flight.machine.ranges.contains(.taken), let object = flight.object else {
            return false
        }
        return services.readers.count(object.generation) > 0
    }

    /// The distance to the next byte up to which readers depend on a flight: any, if the origin
    /// ignores ranges, since no other flight could be nearer.
    func reach(of flight: Flight) -> Int64 {
        flight.machine.ranges.contains(.ignored) ? 1 << 60 : services.settings.joinDistance
    }

    /// True if a reader is near enough to depend on this flight; one that sought far ahead is not.
    private func isWanted(_ flight: Flight, _ object: StoredObject) -> Bool {
        guard let position = flight.position else {
            return services.readers.count(object.generation) > 0
        }
        return services.readers.isWanted(
            object.generation, at: position, within: reach(of: flight) + Readers.step)
    }

    /// True if a transfer that is half done, or has little left, will end soon at its present
    /// speed: the player will be back.
    private func isWorthFinishing(
        _ flight: Flight, _ object: StoredObject, isUrgent: Bool
    ) -> Bool {
        guard !isUrgent else { return flight.isAboutToEnd(within: AheadTask.finishWithin) }
        guard flight.isAboutToEnd(within: Self.finishWithin), object.isStorable,
            let progress = flight.progress
        else { return false }
        return progress.isMostlyDone(
            remainder: services.settings.finishRemainder, half: services.settings.finishHalf)
    }

    /// Reports that the viewer of a session has moved to another item: its flights end as soon as
    /// they have no reader.
    func viewerMovedOn(fromSession number: UInt64) {
        for flight in allFlights where flight.resource.session.id.number == number {
            flight.machine.viewerMovedOn = true
            checkAbandoned(flight)
        }
    }
}

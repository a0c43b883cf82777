// The end of fetches that are not needed any more (decision 6).
import Logging
import Model
import Posix
import Reactor
import Routing
import Store
import URISyntax
import Upstream

/// The flights that may end soon, since a waiter or reader has left; lives on the upstream loop.
final class GracePeriods {
    private let loop: EventLoop
    private let client: UpstreamClient
    private let length: Interval
    private var flights: [ObjectIdentifier: Flight] = [:]
    /// True while another call of `cutShort` is scheduled.
    private var isCutScheduled = false

    /// The time within which a player that was given an object begins to read it.
    static let wayToReader = Interval.milliseconds(50)
    /// An abandoned transfer is finished only if that takes no longer than this.
    private static let finishWithin = Interval.seconds(2 as Int64)

    init(_ length: Interval, loop: EventLoop, client: UpstreamClient) {
        self.length = length
        self.loop = loop
        self.client = client
    }

    /// Handles that the last waiter of a flight has left.
    func waitersLeft(_ flight: Flight) {
        let isWithOrigin = flight.transfer?.state == .running || flight.sharing?.read != nil
        guard flight.machine.hasGrace(isWithOrigin: isWithOrigin) else {
            return abandon(flight, "it was not with the origin")
        }
        begin(flight)
    }

    /// Begins the grace period of a flight, whose last reader may have left.
    func begin(_ flight: Flight) {
        flights[ObjectIdentifier(flight)] = flight
        // Settling reports whether a player waits for a slot.
        client.scheduleRoundEnd()
        check(flight)
    }

    /// Abandons a flight that is not needed, after its grace period, unless it is nearly done.
    func check(_ flight: Flight) {
        let grace = flight.machine.viewerMovedOn ? Interval.zero : length
        loop.schedule(after: grace) { [weak self, weak flight] _ in
            guard let self, let flight else { return }
            end(of: flight)
            abandonUnlessWanted(flight, isUrgent: flight.machine.viewerMovedOn)
        }
    }

    /// Ends the grace period of a flight that is needed again, or has ended.
    func end(of flight: Flight) { flights[ObjectIdentifier(flight)] = nil }

    /// Cuts grace periods short when a player waits for a slot: with one connection to a host, the
    /// next channel would have to wait for the former one.
    func cutShort() {
        var isEarly = false
        for flight in flights.values {
            if flight.machine.waiters.wasObjectGivenLately(loop.now, within: Self.wayToReader) {
                isEarly = true
            } else {
                abandonUnlessWanted(flight, isUrgent: true)
            }
        }
        guard isEarly, !isCutScheduled else { return }
        isCutScheduled = true
        loop.schedule(after: Self.wayToReader) { [weak self] _ in
            self?.isCutScheduled = false
            self?.client.scheduleRoundEnd()
        }
    }

    /// The flights of players that nothing needs any more.
    var lingering: [Flight] {
        flights.values.filter { $0.machine.lane <= .playback && !$0.isNeeded }
    }

    private func abandonUnlessWanted(_ flight: Flight, isUrgent: Bool) {
        guard !flight.isNeeded else { return end(of: flight) }
        let limit = isUrgent ? AheadTask.finishWithin : Self.finishWithin
        guard flight.isWorthFinishing(within: limit, isUrgent: isUrgent) else {
            let isCut = isUrgent && !flight.machine.viewerMovedOn
            return abandon(
                flight,
                isCut
                    ? "a player waits for a slot"
                    : isUrgent ? "the viewer has moved on" : "nobody has returned")
        }
        // It still ends early if a player waits for a slot.
        if flights.updateValue(flight, forKey: ObjectIdentifier(flight)) == nil {
            let left = flight.progress.map { $0.end - $0.position } ?? 0
            flight.services.log.debug(
                "a fetch is finished without a reader",
                metadata: ["url": "\(flight.resource.url.redacted)", "bytes_left": "\(left)"])
        }
        loop.schedule(after: limit) { [weak self, weak flight] _ in
            guard let self, let flight, flights[ObjectIdentifier(flight)] != nil, !flight.isNeeded
            else { return }
            abandon(flight, "it was slower than its speed had promised")
        }
    }

    private func abandon(_ flight: Flight, _ reason: String) {
        flight.services.log.debug(
            "a fetch without a reader is ended",
            metadata: ["url": "\(flight.resource.url.redacted)", "reason": "\(reason)"])
        flight.abandon()
    }
}

/// Who needs a flight, and how near its end is.
extension Flight {
    /// True if something waits for what it fetches.
    var isNeeded: Bool {
        machine.isNeeded(isRead: hasReaderNearby, now: table.loop.now)
            && (hasWaiters || object != nil || phase == .ended)
    }

    /// True if a reader needs its next bytes: one that is near enough to depend on it; one that
    /// sought far ahead does not.
    var hasReaderNearby: Bool {
        guard let object else { return false }
        guard let position else { return hasReaders }
        return services.readers.isWanted(
            object.generation, at: position, within: reach + Readers.step)
    }

    /// True if it is worth resuming after a failure: a reader far ahead of an origin without range
    /// support has no other source.
    var isWorthResuming: Bool {
        isNeeded || (!machine.ranges.contains(.taken) && hasReaders)
    }

    /// The distance to the next byte up to which readers depend on it: any, if the origin ignores
    /// ranges, since no other flight could be nearer.
    var reach: Int64 {
        machine.ranges.contains(.ignored) ? 1 << 60 : services.settings.joinDistance
    }

    /// True if a transfer that is half done, or has little left, will end soon at its present
    /// speed: the player will be back.
    ///
    /// - Parameters:
    ///   - limit: the time within which it must end.
    ///   - isUrgent: true if a player waits for its slot, or its viewer has moved on.
    /// - Returns: false for one that is to be abandoned.
    func isWorthFinishing(within limit: Interval, isUrgent: Bool) -> Bool {
        guard machine.wasObjectGiven, let object, isAboutToEnd(within: limit) else { return false }
        if isUrgent { return true }
        guard object.isStorable, let progress else { return false }
        return progress.isMostlyDone(
            remainder: services.settings.finishRemainder, half: services.settings.finishHalf)
    }

    /// True if this flight serves a single ahead fetch and nothing else.
    var isOnlyAhead: Bool {
        machine.isAhead && machine.waiters.count <= 1 && !hasReaders
    }

    /// True if players read the object.
    var hasReaders: Bool {
        object.map { services.readers.count($0.generation) > 0 } ?? false
    }

    /// True if the rest will arrive sooner than stopping the transfer would pay.
    func isAboutToEnd(within limit: Interval) -> Bool {
        guard let transfer, !transfer.isPaused else { return false }
        return progress?.isAboutToEnd(within: limit) ?? false
    }

    /// The progress of the flight; nil while no body is received, or if its end is unknown.
    var progress: FlightProgress? {
        guard let position else { return nil }
        return machine.progress(at: position, total: object?.total, now: table.loop.now)
    }
}

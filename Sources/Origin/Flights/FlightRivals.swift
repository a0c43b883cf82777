// Responses that have no validator, and the bodies that they may belong to.
//
// Without a strong validator, the heads of two versions of equal length do not differ. So a
// response is added to a stored body, or to one that another flight fills, only if their bytes are
// compared; until they can be, it waits, is requested again, or is passed on without being stored.
import CachePolicy
import HTTP
import Model
import Store

/// The bodies that the response of a flight may belong to: of other flights, and stored.
struct FlightRivals {
    private let flight: Flight

    init(of flight: Flight) { self.flight = flight }

    private var machine: FlightMachine { flight.machine }

    /// The stored object; what was stored since this flight sent its request is not its own yet.
    private var current: StoredObject? {
        guard let known = flight.object, !known.isDiscarded else {
            return flight.table.services.store.peek(flight.resource.key)
        }
        return known
    }

    private var othersOfKey: [Flight] {
        flight.table.flights(of: flight.resource.key).filter { $0 !== flight }
    }

    /// True if a response without any validator may be written into the object that the flight was
    /// started for.
    ///
    /// Equal lengths prove nothing. If the response will reach stored bytes, they are compared
    /// before a reader can pass from one to the other; if nothing is stored, nothing can be mixed.
    func isProvenLater(
        _ candidate: StoredObject, _ head: StoredHead, _ placement: Placement
    ) -> Bool {
        let (start, total) = (placement.start, placement.total)
        guard candidate === flight.object, mayBeSame(candidate, head, total: total) else {
            return false
        }
        if candidate.presentBytes == 0 { return !isFilledByOthers(candidate) }
        guard let next = candidate.firstPresent(from: start), next.lowerBound > start else {
            return false
        }
        return (placement.receivedEnd ?? total ?? 0) > next.lowerBound
    }

    /// Returns an object that a response may belong to and that must not be discarded: other
    /// flights fill it, or another request allows comparing the response with it.
    func first(matching head: StoredHead, total: Int64?) -> StoredObject? {
        let known = [flight.object].compactMap { $0 }
        let filled = (known + othersOfKey.lazy.compactMap(\.object)).first {
            isRival($0, head, total: total) && isFilledByOthers($0)
        }
        guard filled == nil, machine.mayAskAgain else { return filled }
        guard let current, isRival(current, head, total: total), current.presentBytes > 0,
            hasNewNeighbour(current) || machine.waitsForRivals && isAwaitedBefore(current)
        else { return nil }
        return current
    }

    /// True if bytes before those of an unproven response are stored and may be of the same body,
    /// and nobody waits for the response: then they stay, and it is dropped.
    ///
    /// A fetch that begins before all stored bytes replaces them: the rest can then be fetched in
    /// order, each part compared with the one before.
    func mustBeLeft(to head: StoredHead, _ placement: Placement) -> Bool {
        guard machine.waitsForRivals, !machine.isPlaylist, !machine.job.revalidates,
            let known = current
        else { return false }
        return isBehindStored(known, placement.start)
            && isRival(known, head, total: placement.total)
    }

    /// True if a response under HTTP's rules must not take the place of a body that another flight
    /// is receiving from its first byte on: the body will be stored whole, and nothing shows that
    /// the response is of another version.
    ///
    /// Without a strong validator it cannot be added to the body either (RFC 9111 section 3.4), so
    /// it is only passed on. A part may have been requested before that body began.
    ///
    /// - Parameters:
    ///   - head: the stored form of the response's head.
    ///   - placement: where its bytes belong.
    /// - Returns: false if the response is stored like any other.
    func leavesPlace(_ head: StoredHead, _ placement: Placement) -> Bool {
        guard machine.job.followsHTTP, !machine.isPlaylist, !machine.isConditional,
            flight.object != nil || placement.start > 0
        else { return false }
        let own = flight.hasFill ? flight.object : nil
        let stored = flight.table.services.store.peek(flight.resource.key)
        return [flight.object, stored].compactMap { $0 }.contains { known in
            known !== own && known.isStorable && !known.isDiscarded && known.isFilling(from: 0)
                && mayBeSameVersion(known, head, total: placement.total)
        }
    }

    /// True if a part with another validator must not take the place of what is stored: it may come
    /// from another server of the origin, and servers that alternate would have all that is stored
    /// discarded again and again.
    ///
    /// What is stored stays if it is at least as long as the part, or if another flight fills it;
    /// the part is then only passed on. That the file has changed shows by its length, or where a
    /// part is compared with the stored bytes before it.
    ///
    /// - Parameter placement: where the bytes of the part belong.
    /// - Returns: false if the response is stored like any other.
    func mustBeKept(beside placement: Placement) -> Bool {
        guard machine.omitted.contains(.rangeCondition), !machine.job.followsHTTP,
            !machine.isPlaylist, placement.start > 0,
            let total = placement.total, let end = placement.last,
            let known = flight.table.services.store.peek(flight.resource.key),
            known.isStorable, !known.isDiscarded, known.total == total
        else { return false }
        return machine.isAhead || isFilledByOthers(known)
            || known.presentBytes >= end - placement.start
    }

    /// True if neither the length nor a validator that both state differs.
    private func mayBeSameVersion(_ known: StoredObject, _ head: StoredHead, total: Int64?) -> Bool
    {
        guard let stored = ObjectFacts.of(known)?.head, !stored.isPlaylist,
            stored.status == .ok, head.status == .ok
        else { return false }
        if let length = known.total, let total, length != total { return false }
        for name: FieldName in [.etag, .lastModified] {
            guard let old = stored.fields.first(name), let new = head.fields.first(name) else {
                continue
            }
            if old != new { return false }
        }
        return true
    }

    /// True if the flight sends another request for the sake of a rival, instead of passing the
    /// response on.
    ///
    /// A player does not wait for other flights; but one more request is better than dropping what
    /// was stored next to its bytes while it waited for the first.
    func isWorthAsking(for rival: StoredObject) -> Bool {
        machine.waitsForRivals || machine.mayAskAgain && !isFilledByOthers(rival)
    }

    /// The state of other flights for an ahead fetch that waits for them.
    var state: FlightMachine.Others {
        guard let known = flight.object, !known.isDiscarded else { return .discarded }
        if case .present = known.state(at: machine.wanted.start) { return .filled }
        if (flight.compared?.before(machine.wanted) ?? 0) != 0 { return .done }
        if isFilledByOthers(known) { return .busy }
        guard machine.waitsForRivals, known.presentBytes > 0 else { return .done }
        if isAwaitedBefore(known) { return .busy }
        return isBehindStored(known, machine.wanted.start)
            && (flight.compared?.behind(machine.wanted) ?? 0) == 0 ? .gone : .done
    }

    /// True if bytes before an offset are stored.
    private func isBehindStored(_ known: StoredObject, _ offset: Int64) -> Bool {
        known.firstPresent(from: 0).map { $0.lowerBound < offset } ?? false
    }

    private func isRival(_ known: StoredObject, _ head: StoredHead, total: Int64?) -> Bool {
        known.isStorable && !known.isDiscarded && mayBeSame(known, head, total: total)
            && flight.table.isOfOneNetwork(known, head)
    }

    /// True if bytes next to the wanted ones were stored after this flight sent its request.
    private func hasNewNeighbour(_ known: StoredObject) -> Bool {
        guard machine.asksWithoutProof else { return false }
        let body = StoredBody(spans: known.spans, total: known.total)
        return body.before(machine.wanted) != 0 || body.behind(machine.wanted) != 0
    }

    /// True if another flight will fetch bytes of an object that precede the wanted ones.
    ///
    /// Only flights for earlier bytes count, so that one of several always proceeds; one that goes
    /// on with a discarded object fetches nothing of this one.
    private func isAwaitedBefore(_ known: StoredObject) -> Bool {
        let start = machine.wanted.start
        return othersOfKey.contains { other in
            let mayFill = other.object.map { object in
                object === known || object.isDiscarded && !other.hasFill
            }
            return mayFill != false && !other.machine.isOpaque
                && (other.position ?? .max) < start
        }
    }

    private func mayBeSame(_ known: StoredObject, _ head: StoredHead, total: Int64?) -> Bool {
        guard !flight.resource.followsHTTP, let total, known.total == total,
            let stored = ObjectFacts.of(known)?.head, !stored.isPlaylist
        else { return false }
        return ![stored, head].contains {
            $0.fields.contains(.etag) || $0.fields.contains(.lastModified)
                || $0.status == .partialContent
        }
    }

    private func isFilledByOthers(_ known: StoredObject) -> Bool {
        othersOfKey.contains { $0.object === known && $0.hasFill }
    }
}

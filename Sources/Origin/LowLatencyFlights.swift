import CachePolicy
import HLS
import Model
import Posix
import Reactor
import Store

/// Blocking playlist reloads on the upstream loop: one held request for all players of a list, and
/// one list for all requests that it satisfies (8216bis 6.2.5.2).
extension FlightTable {
    /// Returns the position of a stored list; nil for one that cannot be parsed, and for a long one
    /// that another thread has not parsed yet.
    ///
    /// Blocks for the page cache only: a list is read just after it was received.
    func position(of object: StoredObject, _ resource: Resource) -> LivePosition? {
        if let known = positions[object.generation] { return known }
        guard object.total ?? 0 < TextWorker.longText, let reading = reading(of: object, resource)
        else { return nil }
        guard let made = reading.position else { return nil }
        positions[object.generation] = made
        return made
    }

    /// Has a long list parsed on another thread, unless that was done.
    ///
    /// - Parameters:
    ///   - object: the list.
    ///   - resource: the resource that it was requested as.
    ///   - then: called on this loop when `position(of:_:)` can answer.
    /// - Returns: the request, for withdrawing; nil if there is nothing to wait for.
    func readPosition(
        of object: StoredObject, _ resource: Resource,
        then: @escaping (FlightTable) -> Void
    ) -> TextWorker.Request? {
        let generation = object.generation
        guard let total = object.total, total >= TextWorker.longText, positions[generation] == nil,
            let reading = reading(of: object, resource)
        else { return nil }
        let bound = LoopBound((self, then), to: loop)
        let key = TextWorker.Key(generation: generation, product: .position)
        return texts.make(key, bytes: Int(total), { reading.position }) { position in
            bound.enqueue { pair, _ in
                pair.0.positions[generation] = .some(position)
                pair.1(pair.0)
            }
        }
    }

    private func reading(of object: StoredObject, _ resource: Resource) -> PositionReading? {
        guard let facts = ObjectFacts.of(object), facts.head.isPlaylist, object.isComplete else {
            return nil
        }
        return PositionReading(object: object, limits: settings.playlistLimits)
    }

    /// Has the position of a long list parsed before a request for it is handled.
    ///
    /// - Returns: true if `fetch` will be called again.
    func reads(
        _ list: CurrentList, firstFor request: FetchRequest, id: FetchID,
        reply: @escaping @Sendable (FetchReply) -> Void
    ) -> Bool {
        guard !readFirst.contains(id) else { return false }
        let waiting = readPosition(of: list.object, request.resource) { table in
            guard table.reading.removeValue(forKey: id) != nil else { return }
            table.readFirst.insert(id)
            table.fetch(request, id: id, reply: reply)
            table.readFirst.remove(id)
        }
        reading[id] = waiting
        return waiting != nil
    }

    /// True if a stored list answers a request without contacting the origin.
    ///
    /// It does if it satisfies the directives and the origin is known to have nothing newer: the
    /// list was just received, or a request for the very next part is being held.
    func answers(_ list: CurrentList, _ request: FetchRequest) -> Bool {
        let resource = request.resource
        guard let position = position(of: list.object, resource) else { return false }
        if let directives = resource.live.directives, !position.satisfies(directives) {
            return false
        }
        if list.pending.contains(where: position.isNext) { return true }
        let age = loop.wallNow - list.facts.head.responseTime
        return request.terms.hasDirectives && age >= .zero && age < position.step
    }

    /// A stored list that may answer a request.
    struct CurrentList {
        let object: StoredObject
        let facts: ObjectFacts
        /// The directives of running requests for it.
        let pending: [DeliveryDirectives]
    }

    /// Returns the stored list that may answer a request; nil if the request is not for a list.
    func currentList(for request: FetchRequest) -> CurrentList? {
        let resource = request.resource
        let isReload = request.revalidates && resource.role == .playlist && !resource.followsHTTP
        guard request.terms.hasDirectives || isReload, resource.policy != .refresh else {
            return nil
        }
        guard let object = request.object ?? store.lookup(resource.key), !object.isDiscarded,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist
        else { return nil }
        let pending = (flights[resource.key] ?? []).compactMap { flight in
            flight.phase == .ended ? nil : flight.resource.live.directives
        }
        guard request.terms.hasDirectives || !pending.isEmpty else { return nil }
        return CurrentList(object: object, facts: facts, pending: pending)
    }
}

/// Parses the position of a list; any thread may do that.
private struct PositionReading: Sendable {
    let object: StoredObject
    let limits: PlaylistLimits

    /// Nil for a list that cannot be parsed; blocks for the page cache.
    var position: LivePosition? {
        guard let total = object.total, let text = try? readBody(of: object, count: Int(total))
        else { return nil }
        return LivePosition(text, limits: limits)
    }
}

extension Flight {
    /// How long the origin may hold this request; nil if it has no reason to.
    var longestHold: Interval? {
        if terms.hasDirectives, resource.live.directives?.sequence != nil {
            return table.live.longestHold(of: resource.listKey)
        }
        return resource.live.longestHold
    }

    /// True if its host gets one request at a time.
    ///
    /// Segments and keys would wait while the host holds a request; sent beside it, they would look
    /// like a second viewer to an account that allows one.
    var isOneByOne: Bool { table.settings.hostLimit == 1 }

    /// True if a reload is sent without the directives that make an origin hold it, and is polled
    /// as at an origin that ignores them.
    var isPolled: Bool {
        isOneByOne && resource.role != .part && (terms.hasDirectives || resource.isVerbatim)
    }

    /// How long the origin may hold the request as it is sent; nil if it has no reason to.
    ///
    /// An announced resource cannot be polled. A host that gets one request at a time may hold it
    /// for a target duration, in which a live origin produces a part; then others get their turn.
    var allowedHold: Interval? {
        if isPolled { return nil }
        guard isOneByOne, let hold = longestHold else { return longestHold }
        return max(Interval(nanoseconds: hold.nanoseconds / 3), machine.job.limits.firstTry)
    }

    /// Has long lists parsed on another thread before the end of a blocking reload is decided: the
    /// received one, and the stored one.
    func readLists() {
        guard let object, let writer = body.writer else { return }
        if object.total == nil { object.markBodyEnd(writer.offset) }
        let lists = [object, table.store.peek(resource.key)].compactMap { $0 }
        let unread = Unread()
        for list in lists {
            let waiting = table.readPosition(of: list, resource) { [self] _ in
                unread.count -= 1
                if unread.count == 0 { listsAreRead() }
            }
            if waiting != nil { unread.count += 1 }
        }
        if unread.count == 0 { listsAreRead() }
    }

    /// The number of lists still being parsed.
    private final class Unread {
        var count = 0
    }

    private func listsAreRead() {
        guard let facts = fillFacts else { return }
        perform(machine.listsRead(earlyList, facts, ending))
    }

    /// The received list, if it does not satisfy the directives yet.
    private var earlyList: FlightMachine.EarlyList? {
        guard let object, let directives = resource.live.directives, directives.sequence != nil,
            let position = table.position(of: object, resource), !position.satisfies(directives)
        else { return nil }
        return FlightMachine.EarlyList(pause: position.pause, lastRepeat: position.lastRepeat)
    }

    /// True if the received list is older than the stored one: responses may overtake each other.
    var isBehindStored: Bool {
        guard terms.hasDirectives, let object, let stored = table.store.peek(resource.key),
            stored !== object, let new = table.position(of: object, resource),
            let old = table.position(of: stored, resource)
        else { return false }
        // A list that is far behind was restarted.
        return new.next <= old.next && old.next - new.next < 2
            && (new.next, new.parts) < (old.next, old.parts)
    }
}

import CachePolicy
import HLS
import Model
import Posix
import Reactor
import Store

/// Blocking playlist reloads on the upstream loop: one held request for all players of a list, and
/// one list for all who ask for what it has (8216bis 6.2.5.2).
extension FlightTable {
    /// How far a stored list has come; nil for one that cannot be read, and for a long one that has not
    /// been read elsewhere.
    ///
    /// Blocks for the page cache only: a list is read when it has just come.
    func position(of object: StoredObject, _ resource: Resource) -> LivePosition? {
        if let known = positions[object.generation] { return known }
        guard object.total ?? 0 < TextWorker.longText, let reading = reading(of: object, resource)
        else { return nil }
        guard let made = reading.position else { return nil }
        positions[object.generation] = made
        return made
    }

    /// Has a long list read elsewhere, if that was not done yet.
    ///
    /// - Parameters:
    ///   - object: the list.
    ///   - resource: what it was asked for as.
    ///   - then: called on this loop when `position(of:_:)` knows.
    /// - Returns: what to withdraw this by; nil where there is nothing to wait for.
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

    /// Reads how far a list has come before a request for it is decided about, where that takes long.
    ///
    /// - Returns: true where `fetch` is called again.
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

    /// Whether a stored list answers a request although nobody asked the origin for it now.
    ///
    /// It does where it has what the directives ask for, and the origin is known to have nothing
    /// newer: it came just now, or a request for the very next part is being held.
    func answers(_ list: CurrentList, _ request: FetchRequest) -> Bool {
        let resource = request.resource
        guard let position = position(of: list.object, resource) else { return false }
        if let directives = resource.live.delivery, !position.satisfies(directives) { return false }
        if list.pending.contains(where: position.isNext) { return true }
        let age = loop.wallNow - list.facts.head.responseTime
        return request.terms.isDelivery && age >= .zero && age < position.step
    }

    /// A stored list that may answer a request.
    struct CurrentList {
        let object: StoredObject
        let facts: ObjectFacts
        /// Of the requests for it that run.
        let pending: [DeliveryDirectives]
    }

    /// The stored list that may answer a request; nil for one that is not about a list.
    func currentList(for request: FetchRequest) -> CurrentList? {
        let resource = request.resource
        let isReload = request.revalidates && resource.role == .playlist && resource.kind == nil
        guard request.terms.isDelivery || isReload, resource.policy != .refresh else { return nil }
        guard let object = request.object ?? store.lookup(resource.key), !object.isDiscarded,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist
        else { return nil }
        let pending = (flights[resource.key] ?? []).compactMap { flight in
            flight.phase == .ended ? nil : flight.resource.live.delivery
        }
        guard request.terms.isDelivery || !pending.isEmpty else { return nil }
        return CurrentList(object: object, facts: facts, pending: pending)
    }
}

/// A list that is to be read for how far it has come; any thread may do that.
private struct PositionReading: Sendable {
    let object: StoredObject
    let limits: PlaylistLimits

    /// Nil for a list that cannot be read; blocks for the page cache.
    var position: LivePosition? {
        guard let total = object.total, let text = try? readBody(of: object, count: Int(total))
        else { return nil }
        return LivePosition(text, limits: limits)
    }
}

extension Flight {
    /// How long the origin may hold this request; nil for one that it has no reason to hold.
    var longestHold: Interval? {
        if terms.isDelivery, resource.live.delivery?.sequence != nil {
            return table.live.longestHold(of: resource.listKey)
        }
        return resource.live.longestHold
    }

    /// Has long lists read elsewhere before the end of a blocking reload is decided about: the one that
    /// came, and the one that is stored.
    func readLists() {
        guard let object, let writer else { return }
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

    /// How many lists are still being read.
    private final class Unread {
        var count = 0
    }

    private func listsAreRead() {
        guard let facts = fillFacts else { return }
        perform(machine.listsRead(earlyList, facts, ending))
    }

    /// The list that came, if it came before its time.
    private var earlyList: FlightMachine.EarlyList? {
        guard let object, let directives = resource.live.delivery, directives.sequence != nil,
            let position = table.position(of: object, resource), !position.satisfies(directives)
        else { return nil }
        return FlightMachine.EarlyList(pause: position.pause, lastRepeat: position.lastRepeat)
    }

    /// Whether what came is an older state of a list than what is stored: answers may overtake
    /// each other.
    var isBehindStored: Bool {
        guard terms.isDelivery, let object, let stored = table.store.peek(resource.key),
            stored !== object, let new = table.position(of: object, resource),
            let old = table.position(of: stored, resource)
        else { return false }
        // Far behind is a list that counts anew.
        return new.next <= old.next && old.next - new.next < 2
            && (new.next, new.parts) < (old.next, old.parts)
    }
}

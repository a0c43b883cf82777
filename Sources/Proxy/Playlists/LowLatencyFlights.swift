import CachePolicy
import HLS
import HTTP
import Posix
import Reactor
import Routing
import Store
import Upstream
import URISyntax

/// Blocking playlist reloads on the upstream loop: one held request for all players of a list, and
/// one list for all who ask for what it has (8216bis 6.2.5.2).
extension FlightTable {
    /// How far a stored list has come; nil for one that cannot be read.
    ///
    /// Blocks for the page cache only: a list is read when it has just come.
    func position(of object: StoredObject, _ resource: Resource) -> LivePosition? {
        if let known = positions[object.generation] { return known }
        guard let facts = ObjectFacts.of(object), facts.head.isPlaylist, object.isComplete,
            let total = object.total, let text = try? readBody(of: object, count: Int(total))
        else { return nil }
        var options = PlaylistRewriter.Options()
        options.limits = settings.playlistLimits
        options.inheritedVariables = playlistMemory.variables(of: resource.session.id)
        guard let made = LivePosition(text, options: options) else { return nil }
        positions[object.generation] = made
        return made
    }

    /// A stored list that answers a request although nobody asked the origin for it now.
    ///
    /// It does where it has what the directives ask for, and the origin is known to have nothing
    /// newer: it came just now, or a request for the very next part is being held.
    func currentList(for request: FetchRequest) -> StoredObject? {
        let resource = request.resource
        let isReload = request.revalidates && resource.role == .playlist && resource.kind == nil
        guard request.terms.isDelivery || isReload, resource.policy != .refresh else { return nil }
        guard let object = request.object ?? store.lookup(resource.key), !object.isDiscarded,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist
        else { return nil }
        let pending = (flights[resource.key] ?? []).compactMap { flight in
            flight.state == .ended ? nil : flight.resource.live.delivery
        }
        guard request.terms.isDelivery || !pending.isEmpty,
            let position = position(of: object, resource)
        else { return nil }
        if let directives = resource.live.delivery, !position.satisfies(directives) { return nil }
        if pending.contains(where: position.isNext) { return object }
        let age = loop.wallNow - facts.head.responseTime
        return request.terms.isDelivery && age >= .zero && age < position.step ? object : nil
    }
}

extension Flight {
    /// Byte positions from here on mean that the end is not known (RFC 8673 section 2.2).
    static let openEnd = Int64(1) << 53 - 1

    /// How long the origin may hold this request; nil for one that it has no reason to hold.
    var longestHold: Interval? {
        if terms.isDelivery, resource.live.delivery?.sequence != nil {
            return table.live.longestHold(of: resource.listKey)
        }
        return resource.live.longestHold
    }

    /// Asks again for a list that came before its time: an origin that does not know the
    /// directives answers at once, and must not be asked in a loop.
    ///
    /// - Returns: true where those who wait go on waiting.
    func repeatsReload() -> Bool {
        guard terms.isDelivery, isPlaylist, let object, let writer,
            let directives = resource.live.delivery, directives.sequence != nil
        else { return false }
        if object.total == nil { object.markBodyEnd(writer.offset) }
        guard let position = table.position(of: object, resource),
            !position.satisfies(directives),
            table.loop.now - begunAt < position.lastRepeat
        else { return false }
        table.counters.add(.reloadsRepeated)
        budget.with { $0.excuse(resource.key) }
        resume(.afresh, after: position.pause)
        return true
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

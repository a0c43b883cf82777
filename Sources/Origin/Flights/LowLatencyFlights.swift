import CachePolicy
import HLS
import Model
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// Blocking playlist reloads on the upstream loop: one held request for all players of a list, and
/// one list for all requests that it satisfies (8216bis 6.2.5.2).
extension FlightTable {
    /// True if a stored list answers a request without contacting the origin.
    ///
    /// It does if it satisfies the directives and the origin is known to have nothing newer: the
    /// list was just received, or a request for the very next part is being held.
    func answers(_ list: CurrentList, _ request: FetchRequest) -> Bool {
        let resource = request.resource
        guard let position = positions.position(of: list.object) else { return false }
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
        guard let object = request.object ?? services.store.lookup(resource.key),
            !object.isDiscarded,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist
        else { return nil }
        let pending = (flights[resource.key] ?? []).compactMap { flight in
            flight.phase == .ended ? nil : flight.resource.live.directives
        }
        guard request.terms.hasDirectives || !pending.isEmpty else { return nil }
        return CurrentList(object: object, facts: facts, pending: pending)
    }
}

extension Flight {
    /// How long the origin may hold this request; nil if it has no reason to.
    var longestHold: Interval? {
        if terms.hasDirectives, resource.live.directives?.sequence != nil {
            return services.live.longestHold(of: resource.listKey)
        }
        return resource.live.longestHold
    }

    /// True if the host of an origin, or of a parent, gets one request at a time, or counts all
    /// against a limit of its own.
    ///
    /// Segments and keys would wait while the host holds a request; sent beside it, they would look
    /// like one more viewer to an account that allows few. A parent has a limit of its own, and
    /// keeps to that of the origin where it has one for it.
    func isCounted(at asked: Origin) -> Bool {
        services.settings.hostLimit == 1 || services.settings.hostLimits.limit(of: asked) > 0
    }

    /// True if a reload is sent without the directives that make an origin hold it, and is polled
    /// as at an origin that ignores them; `asked` is the origin, or the parent in its place.
    func isPolled(at asked: Origin) -> Bool {
        resource.role != .part && (terms.hasDirectives || resource.isVerbatim)
            && isCounted(at: asked)
    }

    /// Returns how long the request may be held as it is sent to `asked`, the origin or the parent
    /// in its place; nil if there is no reason to.
    ///
    /// An announced resource cannot be polled. A host that counts its requests may hold it for a
    /// target duration, in which a live origin produces a part; then others get their turn.
    func allowedHold(at asked: Origin) -> Interval? {
        guard !isPolled(at: asked), let hold = longestHold else { return nil }
        guard isCounted(at: asked) else { return hold }
        return max(Interval(nanoseconds: hold.nanoseconds / 3), machine.job.limits.firstTry)
    }

    /// Has long lists parsed on another thread before the end of a blocking reload is decided: the
    /// received one, and the stored one.
    func readLists() {
        guard let object, let writer = body.writer else { return }
        if object.total == nil { object.learnTotal(writer.offset) }
        let lists = [object, services.store.peek(resource.key)].compactMap { $0 }
        let unread = Unread()
        for list in lists {
            let waiting = table.positions.read(list) { [self] in
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
            let position = table.positions.position(of: object), !position.satisfies(directives)
        else { return nil }
        return FlightMachine.EarlyList(pause: position.pause, lastRepeat: position.lastRepeat)
    }

    /// True if the received list is older than the stored one: responses may overtake each other.
    var isBehindStored: Bool {
        guard terms.hasDirectives, let object, let stored = services.store.peek(resource.key),
            stored !== object, let new = table.positions.position(of: object),
            let old = table.positions.position(of: stored)
        else { return false }
        // A list that is far behind was restarted.
        return new.next <= old.next && old.next - new.next < 2
            && (new.next, new.parts) < (old.next, old.parts)
    }
}

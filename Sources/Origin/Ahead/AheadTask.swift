// One ahead fetch, as a reader without a socket: it finds what is missing, has flights fill it hole
// by hole, and reports how that ended.
import CachePolicy
import HTTP
import Model
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// One ahead fetch; lives on the upstream loop, in `AheadTable`.
final class AheadTask {
    var wanted: BackgroundFetch.Request
    unowned let table: FlightTable
    private let done: (BackgroundFetch.End) -> Void
    private var fetchID: FetchID? {
        didSet { table.ahead.follow(self, from: oldValue, to: fetchID) }
    }
    /// True while it waits for players to finish before it starts.
    private var waitsForPlayers = false
    private var isOver = false
    /// True once the origin was asked whether what is stored is what the name means.
    private var hasRevalidated = false
    /// The generation of the object that the origin was asked about; nil before that.
    private var doubted: UInt64?
    /// True once a new version has taken the place of what was stored at first.
    private var isReplaced = false
    /// True if another fetch has brought that version, and counts its bytes.
    private var isBroughtByOther = false
    private var presentAtFirst: Int64 = 0
    private var presentLast: Int64 = -1
    private var total: Int64?
    /// When the current transfer was requested or resumed; nil while it is paused.
    private var activeSince: Monotonic?
    private var active = Interval.zero

    /// A transfer whose rest arrives within this time is finished although it is no longer needed:
    /// stopping it would save nothing.
    static let finishWithin = Interval.milliseconds(100)

    init(
        _ wanted: BackgroundFetch.Request, table: FlightTable,
        done: @escaping (BackgroundFetch.End) -> Void
    ) {
        self.wanted = wanted
        self.table = table
        self.done = done
    }

    private var first: Int64 { wanted.range?.lowerBound ?? 0 }

    // MARK: Looking

    private enum Finding {
        case present
        /// Stored, in a refresh perhaps in part, but perhaps of an earlier meaning of the name.
        case doubtful(StoredObject)
        /// The hole to fill next; the end is exclusive, nil for the end of the body.
        case missing(StoredObject?, from: Int64, to: Int64?)
    }

    func start() {
        let (finding, present) = look()
        presentAtFirst = present
        presentLast = present
        act(on: finding)
    }

    /// Returns what is missing, and how many of the wanted bytes are present.
    private func look() -> (Finding, present: Int64) {
        let resource = wanted.resource
        let nothing = Finding.missing(nil, from: first, to: wanted.range?.upperBound)
        guard let object = table.services.store.peek(resource.key), !object.isDiscarded,
            let facts = ObjectFacts.of(object)
        else { return (nothing, 0) }
        resource.settleLength(of: object)
        total = object.total
        switch resource.use(of: object, facts) {
        case .unusable: return (nothing, 0)
        case .text: return (.present, object.presentBytes)
        case .media: break
        }
        let last = [wanted.range?.upperBound, object.total].compactMap { $0 }.min()
        let spans = object.spans
        let asked = first..<max(first, last ?? spans.end)
        let missing = spans.holes(in: asked).reduce(Int64(0)) { $0 + Int64($1.count) }
        let present = Int64(asked.count) - missing
        if object.isComplete {
            return (isDoubtful(facts) ? .doubtful(object) : .present, present)
        }
        // All that a playlist names of a file may be stored, and the file never be complete. Where
        // nothing of what is wanted is stored, its fetch shows whether there is a new version.
        if wanted.refreshes, !hasRevalidated, present > 0 { return (.doubtful(object), present) }
        let from = spans.contiguousEnd(from: first)
        if let last, from >= last { return (.present, present) }
        guard case .hole(let hole) = object.state(at: from) else { return (.present, present) }
        var end = [last, hole.end].compactMap { $0 }.min()
        // Up to the end of a body of known length the range may stay open.
        if end == object.total { end = nil }
        return (.missing(object, from: from, to: end), present)
    }

    /// True if a stored body may be what the name meant before, or is to be refreshed.
    ///
    /// One that keeps its meaning by a list of an earlier run is served even after the origin has
    /// removed it, and need not be revalidated now.
    private func isDoubtful(_ facts: ObjectFacts) -> Bool {
        guard !hasRevalidated else { return false }
        if wanted.refreshes { return true }
        guard wanted.revalidatesDoubtful else { return false }
        let live = table.services.live
        return live.isOfFormerEpoch(facts, wanted.resource)
            && !live.keepsMeaning(facts, wanted.resource)
    }

    private func act(on finding: Finding) {
        if case .present = finding { return finish { .stored($0) } }
        guard wanted.resource.policy != .offline else {
            return fail(
                ProxyFailure(
                    .us, .gatewayTimeout,
                    "\(wanted.resource.url.redacted) is not stored, and its policy is offline"))
        }
        if wanted.yields, table.isHeldBack(wanted.lane, playersWait: table.hasPlayback) {
            waitsForPlayers = true
            return table.ahead.noteWaiting(self)
        }
        switch finding {
        case .present: break
        case .doubtful(let object):
            hasRevalidated = true
            doubted = object.generation
            // Another body may take its place, of which less is stored at first.
            presentLast = -1
            ask(.whole, for: .revalidation(of: object))
        case .missing(let object, let start, let end):
            ask(
                .span(start: start, end: end),
                for: object.map { FetchRequest.Purpose.hole(of: $0) } ?? .content)
        }
    }

    // MARK: Fetching

    private func ask(_ span: Wanted, for purpose: FetchRequest.Purpose) {
        // The page's own request would be refused, and so are redirects to such hosts.
        if wanted.isForPage, table.services.settings.mayBePrivate(wanted.resource.url.asciiHost) {
            return fail(.hiddenFromPages)
        }
        var request = FetchRequest(
            resource: wanted.resource, wanted: span, for: purpose, repliesAt: .completion,
            lane: wanted.lane)
        request.isAhead = true
        request.terms.keepsEmpty = wanted.keepsEmpty
        request.terms.goesFirst = wanted.goesFirst
        request.terms.fillsWindow = wanted.fillsWindow
        request.terms.refreshes = wanted.refreshes
        request.terms.isForPage = wanted.isForPage
        let id = FetchID()
        fetchID = id
        setActive(true)
        // The reply arrives on this loop, where everything here runs.
        let bound = LoopBound(self, to: table.loop)
        table.fetch(request, id: id) { reply in
            bound.enqueue { task, _ in task.receive(reply, id) }
        }
    }

    private func receive(_ reply: FetchReply, _ id: FetchID) {
        guard !isOver, fetchID == id else { return }
        fetchID = nil
        setActive(false)
        switch reply {
        case .failure(let failure): return fail(failure)
        case .object(let object, let outcome):
            // Of a body without a length, the look below says more.
            if let reason = outcome.notStored, reason != .noLength {
                return fail(.unkept(object, reason, wanted.resource.url.redacted))
            }
            // A hole of an object that the origin has confirmed is filled in that object.
            isReplaced = wanted.refreshes && doubted.map { $0 != object.generation } ?? false
            // The ranges of one file are fetched in parallel, and all wait for its new version.
            if isReplaced, outcome.isCollapsed { isBroughtByOther = true }
            // Otherwise the version that was to be replaced would count as the new one.
            if isReplaced, !object.isCurrent {
                return fail(.removed(wanted.resource.url.redacted))
            }
        case .notModified, .head: break
        }
        let (finding, present) = look()
        if case .missing(let object, _, _) = finding, present <= presentLast {
            return fail(unstored(hasHole: object != nil))
        }
        presentLast = present
        act(on: finding)
    }

    /// The ahead flight that fetches for it; nil if there is none.
    var flight: Flight? {
        guard let fetchID, let flight = table.flight(of: fetchID), flight.machine.isAhead else {
            return nil
        }
        return flight
    }

    /// True while it waits for players or for a slot with nothing received, and nothing else needs
    /// its transfer.
    var waitsForTurn: Bool {
        guard !isOver else { return false }
        if waitsForPlayers { return true }
        guard let flight, flight.isOnlyAhead else { return false }
        // A fetch that gave way to a player after its head arrived resumes what it has.
        return flight.object == nil && flight.transfer?.state == .waiting
    }

    /// Waits for players, or goes on.
    ///
    /// - Parameters:
    ///   - waits: true if it must wait for players.
    ///   - goingOn: the flights that other fetches have go on.
    func makeWay(_ waits: Bool, _ goingOn: Set<ObjectIdentifier>) {
        guard !isOver else { return }
        if waitsForPlayers {
            guard !waits else { return }
            waitsForPlayers = false
            return act(on: look().0)
        }
        guard let flight else { return }
        let isPaused = waits && !goingOn.contains(ObjectIdentifier(flight))
        if isPaused { flight.pauseTransfer() } else { flight.resumeTransfer() }
        setActive(!isPaused)
    }

    // MARK: Ends

    func cancel() {
        guard !isOver else { return }
        if let fetchID {
            self.fetchID = nil
            let flight = table.flight(of: fetchID)
            if let flight, flight.isOnlyAhead {
                _ = flight.machine.leave(fetchID)
                table.forget(fetchID)
                if !flight.isAboutToEnd(within: Self.finishWithin) { flight.abandon() }
            } else {
                // Its readers still need the flight although no other request waits for it.
                if let flight, flight.object != nil {
                    flight.machine.waiters.noteReaders()
                    // It may have been paused for players: nobody else would resume it.
                    if flight.hasReaders { flight.takeForPlayback(.playback) }
                }
                table.cancel(fetchID)
            }
        }
        finish { .cancelled($0) }
    }

    /// Returns the failure of a fetch whose body has ended and is not stored.
    ///
    /// - Parameter hasHole: true if the stored response can be used but lacks the bytes.
    /// - Returns: the origin's fault if what is stored cannot be used, and otherwise the daemon's.
    private func unstored(hasHole: Bool) -> ProxyFailure {
        let url = wanted.resource.url.redacted
        let isThere =
            table.services.store.peek(wanted.resource.key).map { !$0.isDiscarded } ?? false
        guard hasHole || !isThere else {
            return ProxyFailure(
                .origin, .badGateway,
                "the origin sent \(url) in a form that cannot be stored: as a part, or with an "
                    + "unknown length or content coding")
        }
        var failure = ProxyFailure(
            .us, .insufficientStorage,
            "\(url) did not stay in the store: it was replaced or evicted; is the cache too small?")
        failure.isLost = true
        return failure
    }

    private func fail(_ failure: ProxyFailure) {
        finish { .failed(failure, $0) }
    }

    private func finish(_ end: (BackgroundFetch.Report) -> BackgroundFetch.End) {
        guard !isOver else { return }
        isOver = true
        setActive(false)
        let present = look().present
        // A new version arrives whole, whichever part of it is wanted.
        let isBrought = isReplaced && !isBroughtByOther
        let brought = isBrought ? total ?? present : max(0, present - presentAtFirst)
        done(
            end(
                BackgroundFetch.Report(
                    broughtBytes: brought, total: total, activeSeconds: active.inSeconds)))
    }

    private func setActive(_ isActive: Bool) {
        guard isActive != (activeSince != nil) else { return }
        if let since = activeSince {
            active = Interval(
                nanoseconds: active.nanoseconds + (table.loop.now - since).nanoseconds)
        }
        activeSince = isActive ? table.loop.now : nil
    }
}

extension ProxyFailure {
    /// The failure of an ahead fetch whose object is not stored.
    static func unkept(
        _ object: StoredObject, _ reason: Storability.NoStoreReason, _ subject: String
    ) -> ProxyFailure {
        switch reason {
        case .noRoom: object.isRemoved ? .removed(subject) : .noRoom
        case .unproven: .partBeside(subject)
        default: .notKept(subject, reason)
        }
    }
}

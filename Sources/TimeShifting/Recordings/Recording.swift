// One recording: follows a live stream without a player, and ends as a complete title.
//
//     running ──time over, stopped, ended by the origin, no room──▶ finishing ──▶ done
//        └───────────────nothing to record ─────────────────────────────────────▶ failed
//
// It has its own session. While it runs, a player of the recording gets the window from its start
// on, afterwards the playlists that `write` has stored.
import CachePolicy
import DurableState
import HLS
import HTTP
import Library
import Logging
import Model
import Numbers
import Playlists
import Posix
import Reactor
import Routing
import Store
import Synchronization
import Upstream
import URISyntax

/// A running recording; confined to the keeper's loop.
final class Recording {
    private(set) var order: RecordingOrder
    package let session: Session
    let services: TimeShiftServices
    private let loop: EventLoop
    private(set) var followers: [TimeShiftFollower] = []
    /// Keys of objects that it needs but that were fetched for other titles.
    var sharedKeys: Set<ObjectKey> = []
    /// True once what its lists held at the start of this run is among them.
    var hasNotedShared = false
    /// What it has pinned in this run; nil before.
    var pinnedKeys: Set<ObjectKey>?
    /// The bytes fetched in this run when figures were noted last.
    private var notedBytes: Int64 = 0
    private var shortage = RoomShortage()
    private var forbidden = ForbiddenPieces()
    /// When the entry is read again since its origin refuses what a list names.
    private var refusalPace = RenewalPace()
    /// The piece whose refusal made the entry be read last; nil once it is stored.
    private var refusedPiece: TimeShiftFetches.Piece?
    private let time: RecordingTime
    private var deadline: Monotonic?
    private var isStopped = false
    private var savedWindows = RecordedWindows()
    /// The entry as this run read it; nil if an earlier run did.
    private var entry: FetchedPlaylist?
    /// Set once nothing more is fetched.
    private(set) var ending: RecordingEnding?
    /// Called after the order has changed.
    var didChange: (() -> Void)?
    /// Called after the wall clock was set and the times of the order have moved with it.
    var didMove: (() -> Void)?

    /// How long to wait for fetches in flight at the end.
    private static let patience = Interval.seconds(20)
    /// The delay before a retry of reading the entry or a saved window.
    private static let retry = Interval.seconds(2)
    private static let noRoom = "there is no room left in the cache or on its disk"

    init(
        _ order: RecordingOrder, _ services: TimeShiftServices, _ loop: EventLoop,
        isNew: Bool = false
    ) {
        self.order = order
        self.services = services
        self.loop = loop
        time = RecordingTime(order, isNew: isNew, wall: loop.wallNow, now: loop.now)
        session = services.sessions.session(for: order.entry, recording: order.id)
    }

    private var playlists: RecordingPlaylists {
        RecordingPlaylists(order: order, session: session, services: services)
    }

    // MARK: Starting

    /// Starts, or continues where an earlier run stopped.
    package func start() {
        notePinned()
        pin()
        if !order.lists.isEmpty { return follow() }
        readEntry()
    }

    private func readEntry() {
        guard !isStopped, order.state == .running else { return }
        let bound = LoopBound(self, to: loop)
        let asked = FetchedPlaylist.Request(url: order.choice.url, session: session, lane: .express)
        services.playlists.read(asked) { result in
            bound.enqueue { recording, _ in recording.receive(result) }
        }
    }

    private func receive(_ result: Result<FetchedPlaylist, ProxyFailure>) {
        guard !isStopped, order.state == .running, order.lists.isEmpty else { return }
        switch result {
        case .failure(let failure):
            setReason(failure.message)
            // A resource that is not a playlist will not become one.
            guard failure.mayPass || failure.retryAfter != nil else {
                return end(.failed, failure.message)
            }
            loop.schedule(after: Self.retry) { [weak self] _ in self?.readEntry() }
        case .success(let found):
            choose(found)
        }
    }

    private func choose(_ found: FetchedPlaylist) {
        guard let multivariant = found.list.multivariant else {
            guard !found.list.summary.isChannelList else {
                return end(
                    .failed, "the playlist is a list of channels, no stream: record one of them")
            }
            guard found.list.summary.isLive else {
                return end(
                    .failed, "the playlist is complete, no live stream: download it instead")
            }
            order.lists = [ChosenPlaylist(url: order.choice.url, label: "stream")]
            return follow()
        }
        do throws(DownloadChoice.Fault) {
            order.lists = try DownloadChoice(order.choice, multivariant).playlists()
        } catch {
            return end(.failed, error.message)
        }
        order.isMultivariant = true
        entry = found
        services.playlistMemory.remember(
            found.list.definedVariables, definedIn: order.choice.url, of: session.id)
        guard let body = playlists.filtered(found, to: Set(order.lists.map(\.url))) else {
            return end(.failed, "the playlist names nothing that could be recorded")
        }
        do throws(SystemError) {
            try services.store(
                playlist: body, at: order.choice.url, base: found.base, of: session)
        } catch {
            return end(.failed, "the playlist cannot be kept: \(error)")
        }
        follow()
    }

    /// Follows its lists, once the windows that an earlier run saved are in memory: a new window
    /// would replace one that cannot be read now.
    private func follow() {
        guard !isStopped, !order.state.isOver, followers.isEmpty else { return }
        guard savedWindows.areRead(for: playlists, now: loop.now) else {
            setReason("its saved window cannot be read now; the log tells why")
            loop.schedule(after: Self.retry) { [weak self] _ in self?.follow() }
            return
        }
        setReason("")
        for chosen in order.lists {
            let list = services.timeShift.list(chosen.url, of: session)
            let resource = services.names.resource(
                chosen.url, session, role: .playlist, forwarding: Fields())
            let follower = TimeShiftFollower(
                list, of: resource, services: services, loop: loop, yields: false)
            let index = followers.count
            follower.fetches.didEnd = { [weak self] piece, failure in
                self?.note(piece, of: (list, index), failure)
            }
            follower.didReload = { [weak self, unowned follower] in self?.note(follower) }
            if order.isMultivariant { follower.didRefuse = { [weak self] in self?.rereadEntry() } }
            followers.append(follower)
            catchUp(list, resource)
            if order.state == .finishing { list.close() }
            if !isTimeOver, order.state == .running { follower.reload() }
        }
        didChange?()
    }

    /// Continues from the saved window and the stored playlist, the later one last.
    private func catchUp(_ list: ShiftedList, _ resource: Resource) {
        guard order.state == .running else { return takeStored(list, resource) }
        let table = services.timeShift
        let isStoredLater = table.isStoredLater(resource, than: list)
        table.live.catchUp(resource.listKey, with: list.shift, takesNumbers: isStoredLater)
        takeStored(list, resource)
        table.live.catchUp(resource.listKey, with: list.shift, takesNumbers: true)
    }

    /// Merges the stored playlist, which may be newer than the window that an earlier run saved.
    private func takeStored(_ list: ShiftedList, _ resource: Resource) {
        guard let object = services.store.peek(resource.key), object.isComplete,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist,
            let body = try? readBody(of: object, count: Int(object.total ?? 0)),
            let base = try? resource.withUserinfo(AbsoluteURL(facts.head.finalURL)),
            // Not one that a player has had stored since the end.
            !order.hadEnded(before: facts.received.wall),
            // The window itself, in other numbers, if its end was interrupted.
            order.state != .finishing || !RecordingPlaylists.isFinished(body)
        else { return }
        // The marks of its segments are the epochs of this run, which has not read it before.
        try? services.names.noteNames(
            in: (body, base), of: resource, object,
            options: PlaylistReading(variables: services.playlistMemory.variables(of: session.id)))
        _ = try? list.merge(
            .init(body: body, base: base, key: resource.listKey, facts: facts),
            services.timeShift)
    }

    // MARK: Expired URLs and cookies

    /// Reads the entry past the cache, since something that it or its playlists named is refused.
    ///
    /// As a player of the stream does: the recording's own entry in the store stays as it is, with
    /// the URLs that its playlists are stored under.
    private func rereadEntry() {
        let wanted = FetchedPlaylist.Request(
            url: order.choice.url, session: services.sessions.session(for: order.entry),
            lane: .express, takesFresh: false, wantsCookies: true)
        let bound = LoopBound(self, to: loop)
        services.playlists.read(wanted) { result in
            bound.enqueue { recording, _ in recording.moveFollowers(result) }
        }
    }

    /// Follows the refused playlists under the URLs that the entry now has in their place, with the
    /// cookies that it has set: a restart has lost those of the recording's session.
    private func moveFollowers(_ result: Result<FetchedPlaylist, ProxyFailure>) {
        guard !isStopped, order.state == .running, case .success(let found) = result,
            !found.isStale, let multivariant = found.list.multivariant
        else { return }
        services.playlistMemory.remember(
            found.list.definedVariables, definedIn: order.choice.url, of: session.id)
        services.cookies.copy(from: found.resource.session.id, to: session.id, now: loop.now)
        let succession = Succession(.init(found.list)) { [services, session] url, role in
            ObjectKey(services.names.keys.cacheKey(of: url, session: session, role: role))
        }
        let chosen = (try? DownloadChoice(order.choice, multivariant).playlists()) ?? []
        for (known, follower) in zip(order.lists, followers)
        where PlaylistRenewal.fits(follower.failure?.originStatus) {
            let alike = chosen.filter { $0.label == known.label }
            if let url = succession.successor(of: known.url, .playlist)
                ?? (alike.count == 1 ? alike[0].url : nil)
            {
                follower.source = url
            }
        }
    }

    // MARK: Running

    private func note(_ follower: TimeShiftFollower) {
        if let failure = follower.failure {
            setReason(failure.message)
        } else if followers.allSatisfy(\.hasNoWindow) {
            end(.failed, "the playlist is complete, no live stream: download it instead")
        } else if followers.allSatisfy({ $0.failure == nil }) {
            setReason(shortage.isPresent ? Self.noRoom : forbidden.message ?? "")
        }
    }

    private func note(
        _ piece: TimeShiftFetches.Piece, of place: (list: ShiftedList, index: Int),
        _ failure: ProxyFailure?
    ) {
        let target = followers.map { Interval($0.target) }.max() ?? .zero
        guard failure == nil else {
            if let failure, failure.forbidsStoring {
                let isFirst = forbidden.message == nil
                let message = "the origin forbids storing what it sends: \(failure.message)"
                forbidden.noteForbidden(
                    piece, of: place.index,
                    newest: place.list.shift.segments.last?.number ?? piece.number, message)
                if isFirst { setReason(message) }
            }
            if failure?.isOfToken == true, order.isMultivariant, order.state == .running,
                refusalPace.begins(after: failure?.originStatus, target: target, now: loop.now)
            {
                refusedPiece = piece
                rereadEntry()
            }
            guard failure?.status == .insufficientStorage, failure?.isLost == false else { return }
            guard shortage.failed(at: loop.now, target: target) else {
                return setReason(Self.noRoom)
            }
            finish(Self.noRoom)
            deadline = loop.now
            return
        }
        // Not at any other one: some of what a list names may be refused for ever.
        if piece == refusedPiece {
            refusedPiece = nil
            refusalPace.ends()
        }
        shortage.ends()
        forbidden.noteStored(piece, of: place.index)
        let resource = services.names.resource(
            piece.url, session, role: piece.role, forwarding: Fields())
        let key = resource.key
        if let object = services.store.peek(key), object.title != session.id.number {
            sharedKeys.insert(key)
        }
    }

    private var isTimeOver: Bool { time.isOver(order, wall: loop.wallNow, now: loop.now) }

    /// Checks for the end of the recording; called once a second.
    func tick() {
        switch order.state {
        case .running:
            // What another title fetched may be evicted until it is pinned; a long recording pins
            // some at a time, since each pin is a synced commit.
            let pinned = pinnedKeys?.count ?? 0
            if sharedKeys.count > pinned + min(20, pinned / 50) { pin() }
            if time.move(&order, wall: loop.wallNow, now: loop.now) { didMove?() }
            if isTimeOver { return finish("its time is over") }
            let lists = followers.filter { !$0.hasNoWindow }
            // Origins remove the playlists of a stream that has ended, some before they are read.
            if lists.contains(where: \.hasEnded), lists.allSatisfy({ $0.hasEnded || $0.isGone }) {
                finish("the origin ended it")
            }
        case .finishing:
            guard !savedWindows.areAwaited else { return }
            let isIdle = followers.allSatisfy(\.fetches.isIdle)
            guard isIdle || deadline.map({ loop.now >= $0 }) ?? true else { return }
            let ending = ending ?? makeEnding()
            self.ending = ending
            ending.attempt()
        case .paused, .done, .failed: break
        }
    }

    private func setReason(_ reason: String) {
        // Once the recording ends, the reason is that of its end.
        guard order.state == .running, order.reason != reason else { return }
        order.reason = reason
        didChange?()
    }

    // MARK: Figures

    /// The order as it is saved: with the bytes of this run.
    var savedOrder: RecordingOrder {
        var order = order
        order.bytes = bytes
        return order
    }

    /// Notes in the order what is recorded so far.
    ///
    /// A paused recording shows these figures: its window is not read, since reading it may have
    /// crashed the daemon.
    ///
    /// - Returns: false if nothing has arrived since the last call.
    func noteFigures() -> Bool {
        guard !order.state.isOver, fetchedBytes != notedBytes else { return false }
        notedBytes = fetchedBytes
        let lists = progress
        order.seconds = lists.map(\.seconds).max() ?? 0
        order.segments = lists.map(\.segments).saturatedSum()
        order.lost = lists.map(\.lost).saturatedSum()
        return true
    }

    // MARK: Ending

    /// The order as it is to be saved before `finish`.
    func order(finishedFor reason: String) -> RecordingOrder {
        var order = savedOrder
        guard order.state == .running else { return order }
        // If the daemon ends before `finish`, the next run finds this state and finishes the
        // recording.
        order.state = .finishing
        order.ended = loop.wallNow
        order.reason = reason
        return order
    }

    /// Stops following, waits for the fetches in flight, and ends.
    func finish(_ reason: String) {
        guard order.state == .running else { return }
        if order.lists.isEmpty {
            let why = order.reason.isEmpty ? reason : order.reason
            return end(.failed, "nothing was recorded: \(why)")
        }
        order.state = .finishing
        order.ended = loop.wallNow
        order.reason = reason
        deadline = loop.now + Self.patience
        for follower in followers {
            follower.list.close()
            follower.finish()
        }
        didChange?()
        // Only after the state is saved: a run that found the recording still running would count
        // its crashes from 0.
        guard order.state == .finishing else { return }
        services.crashes.forget(.recording, order.id)
        services.crashes.begins(order.work, order.id)
    }

    /// Finishes what is recorded here, since another node goes on.
    func leave(to node: String) {
        switch order.state {
        case .running:
            order.isLeft = true
            finish("node \(node) took it over")
        // Only this node has no room.
        case .finishing where order.reason == Self.noRoom:
            order.isLeft = true
            didChange?()
        // Its end is that of the whole recording.
        case .finishing, .paused, .done, .failed: break
        }
    }

    private func makeEnding() -> RecordingEnding {
        for follower in followers { follower.stop() }
        let ending = RecordingEnding(playlists, entry: entry, services, loop)
        // Nothing is added to the lists from now on.
        noteShared()
        // Before the playlists, for which room may be made.
        ending.willStore = { [weak self] in
            guard let self else { return }
            if sharedKeys != pinnedKeys { pin() }
        }
        ending.didEnd = { [weak self] lists in self?.end(with: lists) }
        return ending
    }

    private func end(with lists: [RecordingPlaylists.Finished]) {
        guard !isStopped, order.state == .finishing else { return }
        guard !lists.isEmpty else {
            let failures = [forbidden.message] + followers.map { $0.failure?.message }
            let reasons = [order.reason] + failures.compactMap(\.self).prefix(1)
            return end(.failed, "nothing was recorded: \(reasons.joined(separator: "; "))")
        }
        order.seconds = lists.map(\.seconds).max() ?? 0
        order.segments = lists.reduce(0) { $0 + $1.segments }
        order.lost = lists.map(\.lost).saturatedSum()
        let dropped = lists.map(\.dropped).max() ?? 0
        let loss = "the first \(dropped) segments were dropped, since a list has room for no more"
        end(.done, dropped == 0 ? order.reason : "\(order.reason); \(loss)")
    }

    private func end(_ state: RecordingOrder.State, _ reason: String) {
        for follower in followers { follower.stop() }
        order.bytes = bytes
        followers = []
        entry = nil
        ending = nil
        order.state = state
        order.ended = loop.wallNow
        order.reason = reason
        if state == .failed { (order.seconds, order.segments, order.lost) = (0, 0, 0) }
        if state == .done { pin() } else { _ = try? services.store.unpin(title: session.id.number) }
        services.log.notice(
            "a recording has ended",
            metadata: ["id": "\(order.id)", "state": "\(state.rawValue)", "reason": "\(reason)"])
        didChange?()
    }

    /// Ends without playlists, since it has been forgotten.
    func giveUp() {
        isStopped = true
        didChange = nil
        for follower in followers { follower.stop() }
        followers = []
        ending?.cancel()
        ending = nil
    }

    /// Removes its windows, once its end is saved: until then an end of the daemon would leave
    /// nothing to finish it from.
    func forgetWindows() { playlists.forgetWindows() }

    /// Stops with the daemon; the recording continues in the next run.
    package func stop() {
        isStopped = true
        // The next run knows only what is pinned.
        if sharedKeys != pinnedKeys { pin() }
        _ = noteFigures()
        order.bytes = bytes
        for follower in followers { follower.stop() }
        followers = []
    }

    var fetchedBytes: Int64 { followers.map(\.fetches.fetchedBytes).saturatedSum() }
}

// Maintains time shift windows independent of player requests: follows their playlists for a while,
// saves them, checks them against the store, and removes segments that have left them.
import HLS
package import HTTP
package import Library
import Logging
package import Model
package import Posix
import Reactor
package import Routing
import Store
import Synchronization
import URISyntax

/// The thread-safe access to the keeper's thread.
package final class TimeShiftThread: Sendable {
    private let thread: LoopThread
    /// The server answers before the keeper is started: the keeper needs its addresses.
    private let keeper: LateLoopBound<TimeShiftKeeper>
    /// True while there is a keeper that answers.
    let isStarted = Atomic<Bool>(false)

    /// Starts the thread.
    package init() throws(SystemError) {
        thread = try LoopThread(name: "timeshift") { _ in }
        keeper = LateLoopBound(thread.handle)
    }

    /// Starts the keeper and resumes recordings of the previous run.
    package func start(_ services: TimeShiftServices) {
        keeper.make { [self] loop in
            let made = TimeShiftKeeper(services, loop)
            made.start()
            isStarted.store(true, ordering: .releasing)
            return made
        }
    }

    /// Saves all windows and ends the thread; blocks on the disk.
    package func stop() {
        isStarted.store(false, ordering: .releasing)
        onKeeper { $0.stop() }
        thread.stopAndJoin()
        keeper.end()
    }

    /// Runs `body` on the keeper's thread, after `start`; ignored after `stop`.
    func onKeeper(_ body: @escaping @Sendable (TimeShiftKeeper) -> Void) {
        keeper.enqueue { keeper, _ in body(keeper) }
    }

    /// Makes the keeper follow a list that a player has requested, under the URL of that request.
    package func look(after list: ShiftedList, of resource: Resource, now: Monotonic) {
        guard list.beginsFollowing(now: now) else { return }
        onKeeper { $0.follow(list, of: resource) }
    }

    private let running = Mutex<Set<SessionID>>([])

    /// Records that a recording runs, or has ended.
    package func note(running session: SessionID, _ isRunning: Bool) {
        running.withLock { sessions in
            if isRunning { sessions.insert(session) } else { sessions.remove(session) }
        }
    }

    /// True if a session's playlists are those of an ended recording, for which no origin is
    /// contacted.
    package func isOver(_ session: Session) -> Bool {
        session.shift.recording != nil && running.withLock { !$0.contains(session.id) }
    }

    /// Responds to a request under `/api/recordings`; `done` is called on the keeper's thread.
    package func answer(
        _ method: HTTPMethod, _ target: String,
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        onKeeper { done($0.recorder.answer(method, target)) }
    }

    /// Removes segments that have left a window.
    func drop(_ segments: [TimeShiftSegment], of list: ShiftedList) {
        guard !segments.isEmpty else { return }
        onKeeper { $0.drop(segments, of: list) }
    }
}

/// The keeper of time shift windows; confined to its thread, which may block on the disk.
package final class TimeShiftKeeper {
    let services: TimeShiftServices
    let loop: EventLoop
    private(set) lazy var recorder = RecordingTable(self)
    /// Those of sessions; what a recording needs is pinned.
    private lazy var savedWindows = SavedWindows(services.timeShift.windows)
    /// Segments that have left their windows; the other windows are searched for all of a second.
    private var leaving: [(segment: TimeShiftSegment, list: ShiftedList)] = []
    private static let mostLeaving = 32_768
    private var named = NamedSegments<ObjectIdentifier>()
    /// For this long in a tick, saved windows are read to find what they name.
    private static let readingTime = Interval.milliseconds(100)
    private var followers: [ObjectIdentifier: TimeShiftFollower] = [:]
    private var isStopped = false
    private var ticks = 0
    private var turns = VerifyingTurns()
    private var savingTurns = SavingTurns()
    /// For this long in a tick, lists are saved: each takes two waits for the disk.
    private static let savingTime = Interval.milliseconds(200)
    private var clockTrial = ClockTrial()
    /// The time by which saved windows are too old; nil while the wall clock is not trusted.
    private var trustedNow: WallTime?

    /// How long a session is followed after a player's last request.
    private static let linger = Interval.seconds(300)
    /// The ticks between checks of the size of all saved windows.
    private static let cleanTicks = 600

    init(_ services: TimeShiftServices, _ loop: EventLoop) {
        self.services = services
        self.loop = loop
    }

    func start() {
        cleanSaved()
        recorder.resume()
        tick()
    }

    /// Saves all windows.
    func stop() {
        isStopped = true
        recorder.stop()
        for follower in followers.values { follower.stop() }
        removeLeaving()
        for list in services.timeShift.all { save(list) }
    }

    // MARK: Players' lists

    func follow(_ list: ShiftedList, of resource: Resource) {
        let id = ObjectIdentifier(list)
        if let known = followers[id] {
            // The signature of its former URL may expire.
            known.source = list.url
            return
        }
        // A recording follows its lists itself.
        guard !isStopped, list.name != nil, list.session.shift.recording == nil else { return }
        let hasRoom = makeRoom()
        if list.beginsVerifying(now: loop.now) { list.verify(services.timeShift) }
        guard hasRoom else { return list.state.withLock { $0.followed = nil } }
        let follower = TimeShiftFollower(
            list, of: resource, services: services, loop: loop, yields: true)
        followers[id] = follower
        follower.didReload = { [weak self, unowned follower] in self?.decideAfterReload(follower) }
        follower.reload()
    }

    /// Gives up a list that no player asks for if too many are followed.
    ///
    /// - Returns: false if there is no room; the window grows with its players' own reloads then.
    private func makeRoom() -> Bool {
        guard followers.count >= FollowerLimit.most else { return true }
        let lastRequests = followers.mapValues { $0.list.state.withLock { $0.lastAsked } }
        switch FollowerLimit.room(beside: lastRequests, now: loop.now) {
        case .free: return true
        case .none: return false
        case .displacing(let id):
            if let follower = followers[id] { unfollow(follower) }
            return true
        }
    }

    /// Decides after a reload whether a list is still followed, and whether its segments are
    /// fetched.
    private func decideAfterReload(_ follower: TimeShiftFollower) {
        let now = loop.now
        let list = follower.list
        let latest = followers.values.filter { $0.list.session.id == list.session.id }
            .compactMap { $0.list.state.withLock { $0.lastAsked } }.max()
        guard let latest, now - latest < Self.linger, !follower.hasEnded,
            list.version != 0, list.name != nil
        else { return unfollow(follower) }
        // When players switch to another rendition, this one's numbers are kept in step, but its
        // segments are no longer fetched.
        let asked = list.state.withLock { $0.lastAsked } ?? latest
        let target = list.shift.segments.last?.duration ?? .seconds(2)
        let patience = Interval(nanoseconds: 4 * Int64(target / .nanoseconds(1)) + 1_000_000_000)
        follower.bringsSegments = latest - asked < patience
    }

    private func unfollow(_ follower: TimeShiftFollower) {
        follower.finish()
        followers[ObjectIdentifier(follower.list)] = nil
        follower.list.state.withLock { $0.followed = nil }
        save(follower.list)
    }

    // MARK: Maintenance

    /// Saves, checks and unloads lists; called once a second.
    private func tick() {
        guard !isStopped else { return }
        ticks += 1
        trustedNow = clockTrial.trusted(loop.wallNow, at: loop.now)
        services.timeShift.renameLists()
        let lists = services.timeShift.all
        saveSome(of: lists)
        for list in lists { forgetIfIdle(list) }
        verifySome(of: lists)
        if ticks % Self.cleanTicks == 0 { cleanSaved() }
        removeLeaving()
        recorder.tick()
        loop.schedule(after: .seconds(1 as Int64)) { [weak self] _ in self?.tick() }
    }

    /// Checks some of the followed lists against the index.
    private func verifySome(of lists: [ShiftedList]) {
        var followed: [VerifyingTurns.Candidate<ShiftedList>] = []
        for list in lists {
            let (isFollowed, verifiedAt, count) = list.state.withLock {
                ($0.followed != nil, $0.verifiedAt, $0.shift.segments.count)
            }
            guard isFollowed else { continue }
            followed.append(.init(item: list, verifiedAt: verifiedAt, segmentCount: count))
        }
        let now = loop.now
        for list in turns.next(of: followed, now: now) {
            list.state.withLock { $0.verifiedAt = now }
            list.verify(services.timeShift)
        }
    }

    /// Saves some of the lists that have changed.
    private func saveSome(of lists: [ShiftedList]) {
        var unsaved: [SavingTurns.Candidate<ShiftedList>] = []
        for list in lists {
            let (isUnsaved, savedAt, segmentCount, byteCount) = list.state.withLock {
                (
                    $0.isUnsaved && !$0.isOther, $0.savedAt, $0.shift.segments.count,
                    $0.savedByteCount
                )
            }
            guard isUnsaved else { continue }
            unsaved.append(
                .init(
                    item: list, savedAt: savedAt, segmentCount: segmentCount,
                    byteCount: byteCount))
        }
        let end = Monotonic.now() + Self.savingTime
        for list in savingTurns.next(of: unsaved, now: loop.now) {
            save(list)
            // The others are due with the next tick.
            guard Monotonic.now() < end else { return }
        }
    }

    func save(_ list: ShiftedList) {
        let now = loop.now
        let saved = list.state.withLock { state -> (shift: TimeShift, name: WindowName)? in
            guard let name = state.name, state.isUnsaved, !state.isOther else { return nil }
            state.isUnsaved = false
            state.savedAt = now
            return (state.shift, name)
        }
        guard let saved else { return }
        do throws(SystemError) {
            let count = try services.timeShift.files(of: list.session)
                .save(saved.shift, saved.name)
            list.state.withLock { $0.savedByteCount = count }
            guard list.session.shift.recording == nil else { return }
            savedWindows.note(saved: saved.name, at: loop.now)
        } catch {
            list.state.withLock { $0.isUnsaved = true }
            services.log.error(
                "a longer window could not be saved",
                metadata: ["list": "\(list.url.redacted)", "error": "\(error)"])
        }
    }

    private func cleanSaved() {
        let loaded = services.timeShift.all.compactMap(\.name)
        services.timeShift.windows.clean(now: trustedNow, besides: loaded)
    }

    private func forgetIfIdle(_ list: ShiftedList) {
        let isOver = services.keeper.isOver(list.session)
        if list.isIdle(at: loop.now, isOver: isOver) { services.timeShift.forget(list) }
    }

    // MARK: Segments out of the window

    /// Removes segments from the store with the next tick, unless a window names them then.
    func drop(_ segments: [TimeShiftSegment], of list: ShiftedList) {
        // A resource with byte ranges also contains segments that are still in the window.
        for segment in segments where segment.url != nil && segment.byteRange == nil {
            // The others stay in the store until retention evicts them.
            guard leaving.count < Self.mostLeaving else { return }
            leaving.append((segment, list))
        }
    }

    /// Removes segments from the store that were stored only for windows, and are in none now, in
    /// memory or saved; with a later tick, if there is no time to read all saved windows.
    private func removeLeaving() {
        guard !leaving.isEmpty else { return }
        var lists: [ObjectIdentifier: ShiftedList] = [:]
        for list in services.timeShift.all + leaving.map({ $0.list }) {
            lists[ObjectIdentifier(list)] = list
        }
        guard let unsaved = notSaved(besides: lists.values.compactMap(\.name)) else { return }
        named.keep(only: { lists[$0] != nil })
        for (id, list) in lists {
            let segments = list.shift.segments
            named.update(id, from: segments.first?.number ?? 0, count: segments.count) {
                segments[$0].digest
            }
        }
        let left = leaving
        leaving = []
        for (segment, list) in left {
            let digest = segment.digest
            guard unsaved.contains(digest), !named.contains(digest) else { continue }
            remove(segment, of: list)
        }
    }

    /// Returns the digests of the leaving segments that no saved window names; nil if there was no
    /// time to read all of these.
    private func notSaved(besides loaded: [WindowName]) -> Set<Int>? {
        let segments = leaving.map { $0.segment }
        let end = Monotonic.now() + Self.readingTime
        repeat {
            let left = savedWindows.unnamed(
                segments, besides: loaded, wall: trustedNow, now: loop.now)
            if let left {
                return Set(left.map(\.digest))
            }
        } while Monotonic.now() < end
        return nil
    }

    private func remove(_ segment: TimeShiftSegment, of list: ShiftedList) {
        guard let url = segment.url else { return }
        let key = services.timeShift.storedKey(
            url, list.session, role: .segment, mark: segment.marks.segment)
        guard let object = services.store.peek(key), !services.store.isPinned(object),
            services.sessions.session(SessionID(object.title)).shift.window != nil
        else { return }
        services.store.remove(key)
        services.counters.add(.shiftDropped)
    }
}

extension ShiftedList {
    /// How long an unused list is kept in memory.
    private static let idle = Interval.seconds(900)

    /// Tells whether the list was not used for long, so that its file is enough.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - isOver: true for a list of a recording that does not run: it is read for the pins of a
    ///     paused one, and for the names in an ended one. A running one holds its lists.
    /// - Returns: true if it may leave memory.
    package func isIdle(at now: Monotonic, isOver: Bool) -> Bool {
        guard session.shift.recording == nil || isOver else { return false }
        return state.withLock { state in
            guard state.followed == nil || isOver, !state.isUnsaved else { return false }
            guard let asked = state.lastAsked else {
                // Nobody has asked for it since it was loaded, at the last look or since.
                if isOver { state.lastAsked = now }
                return !isOver
            }
            return now - asked > Self.idle
        }
    }
}

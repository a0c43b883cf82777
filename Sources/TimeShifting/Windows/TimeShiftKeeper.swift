// Maintains time shift windows independent of player requests: follows their playlists for a while,
// saves them, checks them against the store, and removes segments that have left them.
import HLS
import Library
import Logging
import Model
package import Posix
import Reactor
import Routing
import Store
import Synchronization
import URISyntax

/// The keeper of time shift windows; confined to its thread, which may block on the disk.
package final class TimeShiftKeeper {
    let services: TimeShiftServices
    let loop: EventLoop
    private(set) lazy var recorder = RecordingTable(self)
    let leaving: LeavingSegments
    private var followers: [ObjectIdentifier: TimeShiftFollower] = [:]
    private var isStopped = false
    private var ticks = 0
    private var turns = VerifyingTurns()
    private var savingTurns = SavingTurns()
    /// The time in a tick for saving players' lists; each save waits twice for the disk.
    private static let savingTime = Interval.milliseconds(200)
    /// The time in a tick for saving recordings' lists, which come first; limited so that many
    /// lists on a slow disk leave time for reloads.
    private static let recordingTime = Interval.seconds(1 as Int64)
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
        leaving = LeavingSegments(services)
    }

    func start() {
        cleanSaved()
        recorder.resume()
        tick()
    }

    /// Saves the windows of recordings, and as many others as the deadline allows.
    func stop(by deadline: Monotonic) {
        isStopped = true
        recorder.stop()
        for follower in followers.values { follower.stop() }
        leaving.removeUnnamed(trustedNow: trustedNow, now: loop.now)
        var left = 0
        for window in SavingTurns.inOrder(unsaved(of: services.timeShift.all)) {
            if window.isRecorded || Monotonic.now() < deadline {
                save(window.item)
            } else {
                left += 1
            }
        }
        guard left > 0 else { return }
        services.log.warning(
            "the disk is too slow to save all time shift windows: some lack their last seconds",
            metadata: ["windows": "\(left)"])
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
        verifyIfDue(list)
        guard hasRoom else { return list.state.withLock { $0.followed = nil } }
        let follower = TimeShiftFollower(
            list, of: resource, services: services, loop: loop, yields: true)
        followers[id] = follower
        follower.didReload = { [weak self, unowned follower] in self?.decideAfterReload(follower) }
        follower.reload()
    }

    /// Checks a list that players request and that is not followed yet, if it is due, or doubtful
    /// while the turns have time left.
    private func verifyIfDue(_ list: ShiftedList) {
        let now = loop.now
        let (verifiedAt, count) = list.state.withLock {
            ($0.verifiedAt, $0.shift.segments.count)
        }
        guard list.beginsVerifying(now: now, countsDoubt: turns.hasCredit) else { return }
        if !VerifyingTurns.isDue(after: verifiedAt, now: now) {
            turns.charge(segmentCount: count)
        }
        list.verify(services.timeShift)
    }

    /// Gives up a list that no player asks for if too many are followed.
    ///
    /// - Returns: false if there is no room; the window grows with its players' own reloads then.
    private func makeRoom() -> Bool {
        guard followers.count >= FollowerLimit.most else { return true }
        let lastRequests = followers.mapValues { $0.list.state.withLock { $0.lastAsked } }
        guard let id = FollowerLimit.displaced(of: lastRequests, now: loop.now),
            let follower = followers[id]
        else { return false }
        unfollow(follower)
        return true
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

    /// True once a stop waits for what the keeper does now.
    private var isToStop: Bool { services.timeShiftThread.isStopping.load(ordering: .acquiring) }

    /// Saves, checks and unloads lists; called once a second.
    private func tick() {
        guard !isStopped else { return }
        ticks += 1
        trustedNow = clockTrial.trusted(loop.wallNow, at: loop.now)
        services.timeShift.renameLists()
        let lists = services.timeShift.all
        if !isToStop { saveSome(of: lists) }
        for list in lists { forgetIfIdle(list) }
        services.timeShift.noteRemovals()
        verifySome(of: lists)
        if ticks % Self.cleanTicks == 0 { cleanSaved() }
        leaving.removeUnnamed(trustedNow: trustedNow, now: loop.now)
        recorder.tick()
        loop.schedule(after: .seconds(1 as Int64)) { [weak self] _ in self?.tick() }
    }

    /// Checks some of the followed lists against the index.
    private func verifySome(of lists: [ShiftedList]) {
        var followed: [VerifyingTurns.Candidate<ShiftedList>] = []
        for list in lists {
            let (isFollowed, verifiedAt, count, isDoubtful) = list.state.withLock {
                ($0.followed != nil, $0.verifiedAt, $0.shift.segments.count, $0.isDoubtful)
            }
            guard isFollowed else { continue }
            followed.append(
                .init(
                    item: list, verifiedAt: verifiedAt, segmentCount: count,
                    isDoubtful: isDoubtful))
        }
        let now = loop.now
        for list in turns.next(of: followed, now: now) {
            list.state.withLock { state in
                state.verifiedAt = now
                state.isDoubtful = false
            }
            list.verify(services.timeShift)
        }
    }

    /// Returns the lists with changes that are not saved.
    private func unsaved(of lists: [ShiftedList]) -> [SavingTurns.Candidate<ShiftedList>] {
        var unsaved: [SavingTurns.Candidate<ShiftedList>] = []
        for list in lists {
            let (isUnsaved, savedAt, segmentCount, byteCount) = list.state.withLock {
                (
                    $0.isUnsaved && !$0.isOther && $0.name != nil, $0.savedAt,
                    $0.shift.segments.count, $0.savedByteCount
                )
            }
            guard isUnsaved else { continue }
            unsaved.append(
                .init(
                    item: list, isRecorded: list.session.shift.recording != nil,
                    savedAt: savedAt, segmentCount: segmentCount, byteCount: byteCount))
        }
        return unsaved
    }

    /// Saves some of the lists that have changed.
    private func saveSome(of lists: [ShiftedList]) {
        let chosen = savingTurns.next(of: unsaved(of: lists), now: loop.now)
        // Those that are not reached are due with the next tick.
        _ = save(chosen.prefix(while: \.isRecorded), for: Self.recordingTime)
        let left = save(chosen.drop(while: \.isRecorded), for: Self.savingTime)
        savingTurns.giveBack(left)
    }

    /// Saves windows, at least one, until all are saved, a time is over, or the keeper is to stop.
    ///
    /// - Returns: those that were not reached.
    private func save(
        _ windows: ArraySlice<SavingTurns.Candidate<ShiftedList>>, for time: Interval
    ) -> ArraySlice<SavingTurns.Candidate<ShiftedList>> {
        let end = Monotonic.now() + time
        var left = windows
        while let window = left.popFirst() {
            save(window.item)
            guard Monotonic.now() < end, !isToStop else { break }
        }
        return left
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
            leaving.note(saved: saved.name, at: loop.now)
        } catch {
            list.state.withLock { $0.isUnsaved = true }
            services.log.error(
                "a time shift window could not be saved; it is tried again",
                metadata: ["list": "\(list.url.redacted)", "error": "\(error)"])
        }
    }

    private func cleanSaved() {
        let loaded = services.timeShift.all.compactMap(\.name)
        services.timeShift.windows.clean(now: trustedNow, besides: loaded)
    }

    private func forgetIfIdle(_ list: ShiftedList) {
        let isOver = services.timeShiftThread.isOver(list.session)
        if list.isIdle(at: loop.now, isOver: isOver) { services.timeShift.forget(list) }
    }
}

extension ShiftedList {
    /// How long an unused list is kept in memory.
    private static let idle = Interval.seconds(900)

    /// Tells whether the list was not used for long, so that its file is enough.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - isOver: true for a list of a recording that does not run: the list was read for the pins
    ///     of a paused recording or the names in an ended one. A running recording holds its lists.
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

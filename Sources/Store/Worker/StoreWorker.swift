// The store thread: takes mail and lets its parts work in turn. `Committer` writes headers,
// `SyncQueue` has them synced, `IndexWriter` writes the index in batches, `LongURLWriter` its long
// URLs, `Evictor` evicts; a comparison of index and folder runs after a start.
import DurableState
import Logging
import Posix
import Reactor
import Retention
import Synchronization

/// The worker of the store thread, owned by its loop.
final class StoreWorker {
    let core: StoreCore
    let sync: SyncQueue
    let committer: Committer
    let index: IndexWriter
    let longURLs: LongURLWriter
    let evictor: Evictor
    let shortages: ShortageReports
    /// The comparison of index and folder; nil once it is done.
    var comparison: Comparison? = Comparison()
    /// What a rebuilt index lacks; nil if it has all.
    var refilling: Refill?
    /// The damage for which the index is replaced once the comparison is done.
    var awaitedDamage: String?
    /// Called when objects may have been lost.
    var tellLosses: (@Sendable () -> Void)?
    /// Waits until the links of what a clear spares are on the disk; replaced by tests.
    var syncLinks: (StoreFolder) throws -> Void = { try $0.syncEverything(for: .clearing) }
    // Numbers and timers are read and replaced as a whole, so that accesses cannot overlap: no check of
    // exclusivity, which costs a hundred instructions for each piece of mail.
    /// The room requested and not freed yet, in bytes beyond current usage; nil if none was.
    @exclusivity(unchecked) private var wantedBytes: Int64?
    @exclusivity(unchecked) private var isEvicting = false
    /// When objects are searched again after a search that found nothing to evict.
    @exclusivity(unchecked) var pause = SearchPause()
    @exclusivity(unchecked) private var pauseTimer: TimerID?

    @exclusivity(unchecked) private var timer: TimerID?
    /// The timer that takes mail and settles finished objects.
    @exclusivity(unchecked) private var commitTimer: TimerID?
    /// The timer that looks for a missing folder.
    @exclusivity(unchecked) var lostTimer: TimerID?
    /// The timer that tells losses found after the comparison.
    @exclusivity(unchecked) var lossTimer: TimerID?
    /// When the cache folder is looked for again, if there is mail.
    @exclusivity(unchecked) private var nextLook = Monotonic(nanoseconds: .min)
    /// True from the time a new cache folder is locked until index and state are in it too.
    @exclusivity(unchecked) var isMovingIn = false
    /// Why the last move into a new cache folder failed, as the log has it.
    @exclusivity(unchecked) var moveFailure: String?
    /// What a quota of the file system lets objects take.
    @exclusivity(unchecked) private var quota = QuotaCeiling()
    @exclusivity(unchecked) private var deletionTimer: TimerID?
    /// Set while texts in memory may name long URLs that were saved in this run.
    @exclusivity(unchecked) private var renewalTimer: TimerID?
    /// The number of commits when memory was last returned to the system; `muchWork` more trigger
    /// it again.
    @exclusivity(unchecked) private var commitsBefore = 0
    private static let muchWork = 1_000
    private static let lookInterval = Interval.seconds(1 as Int64)
    /// The duration of one eviction step; commits and new objects get their turn in between.
    static let evictionStep = Interval.milliseconds(5)

    init(core: StoreCore, syncer: Syncer) {
        self.core = core
        sync = SyncQueue(core: core, syncer: syncer)
        committer = Committer(core: core, sync: sync)
        index = IndexWriter(core: core)
        longURLs = LongURLWriter(core: core)
        evictor = Evictor(core: core, index: index)
        shortages = ShortageReports(core: core, evictor: evictor)
    }

    /// Takes mail, and schedules settling.
    func mailArrived(_ loop: EventLoop) {
        takeMail(loop, commits: false)
        if commitTimer == nil { scheduleCommits(loop) }
    }

    private func scheduleCommits(_ loop: EventLoop) {
        let interval = core.configuration.finishedCommitDelay
        commitTimer = loop.schedule(after: interval) { [unowned self] loop in
            commitTimer = nil
            let hadWork = takeMail(loop, commits: true)
            if hadWork || !core.channel.rest() { return scheduleCommits(loop) }
            giveBackMemory()
        }
    }

    /// Returns free memory to the system after much work, while idle.
    private func giveBackMemory() {
        let commits = core.counters.statistics.commits
        guard commits - commitsBefore >= Self.muchWork else { return }
        commitsBefore = commits
        giveBackFreeMemory()
    }

    /// Takes mail, commits what is due, and starts eviction if room was requested.
    ///
    /// - Returns: true if objects were committed.
    @discardableResult
    private func takeMail(_ loop: EventLoop, commits: Bool) -> Bool {
        // Something else may have been mounted or put there; nothing must be written into it.
        if loop.now >= nextLook {
            nextLook = loop.now + Self.lookInterval
            lookForFolder(loop)
        }
        followQuota(at: loop.now)
        let wanted = readMail(loop)
        var committed = 0
        // Commit before evicting: objects queued for a commit count as held and cannot be evicted.
        if commits || wanted != nil { committed = committer.commitFinished() }
        committer.commitDue(at: loop.now)
        if let wanted {
            wantedBytes = max(wantedBytes ?? 0, wanted)
            if !isEvicting { evictSome(loop) }
        }
        scheduleTick(loop)
        return committed > 0
    }

    /// Commits finished objects, and writes the index.
    func catchUp(_ loop: EventLoop) {
        takeMail(loop, commits: true)
        flushIndex()
    }

    /// Takes mail and queues its objects.
    ///
    /// - Returns: the room requested. The mail's references are released on return; otherwise its
    ///   objects would count as held during eviction.
    private func readMail(_ loop: EventLoop) -> Int64? {
        let mail = core.channel.takeMail()
        committer.take(mail, at: loop.now)
        removeDiscarded(mail)
        absorb(mail)
        return mail.wantedBytes
    }

    /// Schedules the next tick, if there is anything for it to do.
    func scheduleTick(_ loop: EventLoop) {
        if deletionTimer == nil, isToDelete { scheduleDeletion(loop) }
        guard
            timer == nil,
            committer.hasWork || committer.mayTrim || index.hasWork || longURLs.fails
                || sync.since != nil || awaitsRelease
        else { return }
        timer = loop.schedule(after: core.configuration.indexInterval) { [unowned self] loop in
            timer = nil
            tick(loop)
            scheduleTick(loop)
        }
    }

    /// True if room is refused and may return without a report: readers do not tell that they have
    /// left what is stored beside pinned objects, nor other programs that they have freed space.
    ///
    /// False while all that is stored is pinned and exceeds the budget: only a change of pins or
    /// limits, or a purge, ends that, and these are reported.
    private var awaitsRelease: Bool {
        let usage = core.usage
        return usage.isStuck && (usage.used > usage.pinned || !usage.isOverBudget)
    }

    private func tick(_ loop: EventLoop) {
        committer.commitDue(at: loop.now)
        flushIndex(isTick: true)
        if sync.isDue(at: loop.now) { sync.begin(whenDone: afterSync(on: loop)) }
        // Readers release objects too, and report it only as a use.
        core.table.trimAll()
        committer.mayTrim = false
        // Objects in use at the last attempt may be idle now.
        if core.usage.isOverBudget || awaitsRelease, !isEvicting {
            _ = committer.commitFinished()
            committer.commitDue(at: loop.now)
            wantedBytes = wantedBytes ?? 0
            evictSome(loop)
        }
    }

    /// True if the disk refused to delete files.
    private var isToDelete: Bool { core.undeleted.isWaiting || core.cleaner.isRefused }

    /// Deletes the files that the disk refused to delete, repeatedly until it did.
    private func scheduleDeletion(_ loop: EventLoop) {
        deletionTimer = loop.schedule(after: core.configuration.deletionInterval) {
            [unowned self] loop in
            deletionTimer = nil
            core.deleteUndeleted()
            core.cleaner.tryAgain()
            if isToDelete { scheduleDeletion(loop) }
        }
    }

    private func removeDiscarded(_ mail: StoreMail) {
        for object in mail.discarded { core.remove(object.key, only: object) }
    }

    /// How often mail is taken at most before the store closes.
    private static let mostRounds = 4

    /// Commits, syncs and indexes everything, or as much as the deadline allows.
    ///
    /// - Returns: true if all of it is on the disk.
    func finishAll(by deadline: Monotonic) -> Bool {
        var isDone = true
        // It posts mail itself: files with larger headers, and the folders of names it changed.
        for _ in 0..<Self.mostRounds {
            let mail = core.channel.takeMail()
            removeDiscarded(mail)
            isDone = committer.commitAll(mail, by: deadline) && isDone
            absorb(mail)
            guard core.channel.hasMail, .now() < deadline else { break }
        }
        flushIndex()
        longURLs.save()
        let isSynced = sync.syncAll(by: deadline)
        return isDone && isSynced && index.rows.isEmpty
    }

    /// Commits what is finished, and starts syncing it, or does that after the batch under way;
    /// then calls `done`, with false if the disk refused a header or the sync of a name.
    func makeCertain(_ loop: EventLoop, _ done: @escaping @Sendable (Bool) -> Void) {
        catchUp(loop)
        let isClaimed = !committer.hasRefused
        sync.whenSynced { isSynced in done(isClaimed && isSynced) }
        sync.begin(whenDone: afterSync(on: loop))
    }

    private func afterSync(on loop: EventLoop) -> @Sendable () -> Void {
        let me = LoopBound(self, to: loop)
        return {
            me.enqueue { worker, loop in
                worker.sync.takeOutcome()
                if worker.sync.isAwaited {
                    worker.sync.begin(whenDone: worker.afterSync(on: loop))
                }
                worker.lookForFolder(loop)
            }
        }
    }

    // MARK: Changes

    /// Applies changes that other threads recorded.
    func absorb(_ mail: StoreMail) {
        // In the order of creation, which retention relies on.
        for (key, change) in mail.rows.sorted(by: { $0.value.time < $1.value.time }) {
            index.note(change, of: key)
            switch change {
            case .put(let row):
                comparison?.removed.remove(key.name)
                evictor.insert(row)
            case .adopt(let row):
                comparison?.removed.remove(key.name)
                guard comparison != nil else {
                    evictor.insert(row)
                    continue
                }
                comparison?.adopted.append(Found(name: key.name, facts: Retained(row)))
                evictor.notePin(of: row)
            case .delete:
                comparison?.removed.insert(key.name)
                evictor.remove(key)
            }
        }
        if !mail.rows.isEmpty { evictor.tellBytes() }
        index.hasTouches = index.hasTouches || mail.hasTouches
        sync.note(folders: mail.folders)
    }

    /// Applies changes and uses that other threads recorded, and writes them to the index.
    ///
    /// With `isTick`, uses of unchanged rows may wait.
    func flushIndex(isTick: Bool = false) {
        absorb(core.channel.takeIndexMail())
        index.gatherUses(for: &evictor.policy)
        index.write(isTick: isTick)
        if longURLs.fails { longURLs.save() }
    }

    /// Saves long URLs; while the index rejects them, each tick tries again.
    func saveLongURLs(_ loop: EventLoop) {
        longURLs.save()
        scheduleRenewal(loop)
        scheduleTick(loop)
    }

    /// Has texts in memory rewritten in time, so that players are given names that stay for long.
    private func scheduleRenewal(_ loop: EventLoop) {
        guard renewalTimer == nil else { return }
        let interval = core.configuration.longURLRenewal
        renewalTimer = loop.schedule(after: interval) { [unowned self] _ in
            renewalTimer = nil
            core.longURLVersion.add(1, ordering: .releasing)
        }
    }

    /// Loads the pins, after the index has all rows.
    func reloadPins() {
        askAgainAboutPins()
        flushIndex()
        evictor.reloadPins()
    }

    /// Follows a change of one pin, after the index has all rows.
    func followPin(of title: UInt64, unnamed: [ObjectKey]) {
        flushIndex()
        // A pin that only gets more keys, as each recording's does every few segments, lets nothing
        // be evicted.
        if evictor.followPin(of: title, unnamed: unnamed) { askAgainAboutPins() }
    }

    // MARK: Eviction

    /// Adapts to changed limits of the disk usage, and evicts if there is more than they permit.
    func followLimits(_ loop: EventLoop) {
        askAgainAboutPins()
        shortages.forgetDisk()
        forgetQuota()
        core.usage.resetCeiling()
        evictor.followBudget()
        evictExcess(loop)
    }

    /// Has objects take less after a quota has refused bytes, and again more after a time without.
    private func followQuota(at now: Monotonic) {
        let isRefused = core.usage.takeQuotaMet()
        if isRefused {
            guard quota.noteRefusal(used: core.usage.used, at: now) else { return }
        } else {
            guard quota.raise(below: core.usage.configuredBudget, at: now) else { return }
        }
        core.usage.quota = quota.bytes
        core.usage.resetCeiling()
        evictor.followBudget()
        guard isRefused, let bytes = quota.bytes else { return }
        core.log.warning(
            "a quota is smaller than the cache: titles are evicted to stay below it; set cache-size below the quota, or raise it",
            metadata: ["bytes": "\(bytes)", "cache_size": "\(core.usage.configuredBudget)"])
    }

    /// Has objects take what is configured, until a quota refuses bytes again.
    func forgetQuota() {
        quota = QuotaCeiling()
        core.usage.quota = nil
    }

    /// Frees some of the requested bytes, and continues in the loop's next turn.
    private func evictSome(_ loop: EventLoop) {
        guard let wanted = wantedBytes, evictor.isShort(wanted) else {
            return stopEvicting(false, loop)
        }
        isEvicting = true
        // The order of use and the rows of the victims are complete only after the comparison. That
        // takes long for a full cache, and headers must be committed meanwhile.
        guard comparison == nil else {
            core.usage.awaitsComparison = isComparisonLong(at: .now())
            loop.schedule(after: comparisonPause) { [unowned self] loop in evictSome(loop) }
            return
        }
        // The index is updated with the next batch; one transaction per step would dominate the
        // cost.
        absorb(core.channel.takeIndexMail())
        // Recently read objects must not be evicted.
        index.gatherUses(for: &evictor.policy)
        // A new index takes long to fill, too.
        if refillStep() {
            loop.schedule(after: .zero) { [unowned self] loop in evictSome(loop) }
            return
        }
        let began = Monotonic.now()
        if let left = pause.left(at: began) { return awaitSearch(after: left, loop) }
        let freed = evictor.evict(until: began + Self.evictionStep, wanted: wanted)
        evictor.tellBytes()
        core.usage.lowerCeiling()
        if freed == nil {
            // Everything left is in use or pinned.
            pause.noteFruitless(examined: evictor.examined, at: .now())
            return stopEvicting(true, loop)
        }
        if !evictor.isShort(wanted) { return stopEvicting(false, loop) }
        // Requests that arrive meanwhile come as mail and are handled after this one.
        loop.schedule(after: .zero) { [unowned self] loop in evictSome(loop) }
    }

    /// Refuses room until objects are searched again.
    private func awaitSearch(after left: Interval, _ loop: EventLoop) {
        core.usage.isStuck = true
        wantedBytes = nil
        isEvicting = false
        guard pauseTimer == nil else { return }
        pauseTimer = loop.schedule(after: left) { [unowned self] loop in
            pauseTimer = nil
            evictExcess(loop)
        }
    }

    /// Evicts what exceeds the limits, but makes no room for requests that were refused.
    func evictExcess(_ loop: EventLoop) {
        wantedBytes = wantedBytes ?? 0
        if !isEvicting { evictSome(loop) }
    }

    private func stopEvicting(_ isStuck: Bool, _ loop: EventLoop) {
        core.usage.isStuck = isStuck
        core.usage.awaitsComparison = false
        if isStuck {
            core.usage.forgetWantedFiles()
            shortages.tellDisk(for: wantedBytes ?? 0)
            shortages.tellPins(loop)
        } else {
            shortages.noteRoom()
        }
        wantedBytes = nil
        isEvicting = false
        scheduleTick(loop)
    }

    private func askAgainAboutPins() {
        shortages.forgetPins()
        // What was pinned may be evicted now.
        pause.cut()
    }
}

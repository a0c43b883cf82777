// The store thread: commits headers, has them synced, writes the index in batches, evicts, and
// compares index and folder after a start.
import DurableState
import Logging
import Posix
import Reactor
import Retention
import Synchronization

/// The worker of the store thread, owned by its loop.
final class StoreWorker {
    let core: StoreCore
    /// Objects whose header on disk is outdated, each with the time of its last commit.
    var dirty: [(object: StoredObject, since: Monotonic)] = []
    /// The time when the disk last refused a header; for `commitInterval` no other is tried.
    var refusedAt: Monotonic?
    /// Headers that may not be on the disk yet; a key may occur more than once.
    var unsynced: [UnsyncedHeader] = []
    /// First bytes of the keys whose names may not be on the disk yet.
    var unsyncedFolders: Set<UInt8> = []
    /// When the oldest unsynced change was recorded; nil if everything is synced.
    var unsyncedSince: Monotonic?
    /// True from the start of a batch on the sync thread until its outcome is taken.
    var isSyncing = false
    /// True if the running batch belongs to a folder that was replaced meanwhile.
    var isSyncingFormer = false
    let syncer: Syncer
    /// True if objects were released that the table may close now.
    var mayTrim = false

    var rows: [ObjectKey: RowChange] = [:]
    var uses: [ObjectKey: Use] = [:]
    var hasTouches = false
    /// When the oldest use was recorded that the index does not have yet.
    var usesSince: Monotonic?
    var indexIsFailing = false

    var policy: any RetentionPolicy
    var pinnedTitles: Set<UInt64> = []
    var pinnedNames: Set<UInt128> = []
    /// The room requested and not freed yet, in bytes beyond current usage; nil if none was.
    var wantedBytes: Int64?
    var isEvicting = false
    /// True if the disk refused to delete the last victim.
    var isRefused = false
    /// The comparison of index and folder; nil once it is done.
    var comparison: Comparison? = Comparison()
    /// The number of long URLs saved in this run.
    private var savedLongURLs = 0

    /// Objects that no fill works on any more, to be committed together.
    private var finished: [StoredObject] = []

    private var timer: TimerID?
    /// The timer that takes mail and settles finished objects.
    private var settleTimer: TimerID?
    private var lostTimer: TimerID?
    /// The number of commits when memory was last returned to the system; `muchWork` more trigger
    /// it again.
    private var commitsBefore = 0
    private static let muchWork = 1_000

    init(core: StoreCore, syncer: Syncer) {
        self.core = core
        self.syncer = syncer
        policy = core.configuration.makePolicy(core.usage.budget)
    }

    /// Takes mail, and schedules settling.
    func mailArrived(_ loop: EventLoop) {
        takeMail(loop, settles: false)
        if settleTimer == nil { scheduleSettling(loop) }
    }

    /// Saves a long URL; at the first one of a run and then now and then, deletes the oldest.
    func saveLongURL(id: [UInt8], url: String) throws {
        try core.index.saveLongURL(id: id, url: url, now: .now())
        let limit = core.configuration.longURLLimit
        // Trim after every tenth of the limit: each trim scans all rows.
        if savedLongURLs % max(1, limit / 10) == 0 {
            try core.index.trimLongURLs(keeping: limit)
        }
        savedLongURLs += 1
    }

    private func scheduleSettling(_ loop: EventLoop) {
        let interval = core.configuration.settleInterval
        settleTimer = loop.schedule(after: interval) { [unowned self] loop in
            settleTimer = nil
            let hadWork = takeMail(loop, settles: true)
            if hadWork || !core.channel.rest() { return scheduleSettling(loop) }
            giveBackMemory()
        }
    }

    /// Returns free memory to the system after much work, while idle.
    private func giveBackMemory() {
        let commits = core.counters.commits.load(ordering: .relaxed)
        guard commits - commitsBefore >= Self.muchWork else { return }
        commitsBefore = commits
        giveBackFreeMemory()
    }

    /// Takes mail, commits what is due, and starts eviction if room was requested.
    ///
    /// - Returns: true if objects were settled.
    @discardableResult
    private func takeMail(_ loop: EventLoop, settles: Bool) -> Bool {
        let wanted = readMail(loop)
        var settled = 0
        // Settle before evicting: objects queued for a commit count as held and cannot be evicted.
        if settles || wanted != nil { settled = settleFinished() }
        commitDue(at: loop.now)
        if let wanted {
            wantedBytes = max(wantedBytes ?? 0, wanted)
            if !isEvicting { evictSome(loop) }
        }
        scheduleTick(loop)
        return settled > 0
    }

    /// Commits finished objects, and writes the index.
    func catchUp(_ loop: EventLoop) {
        takeMail(loop, settles: true)
        flushIndex()
    }

    private func settleFinished() -> Int {
        let done = finished
        finished = []
        settle(done)
        mayTrim = mayTrim || !done.isEmpty
        return done.count
    }

    /// Takes mail and queues its objects.
    ///
    /// - Returns: the room requested. The mail's references are released on return; otherwise its
    ///   objects would count as held during eviction.
    private func readMail(_ loop: EventLoop) -> Int64? {
        let mail = core.channel.takeMail()
        for object in mail.dirty { dirty.append((object, loop.now)) }
        finished += mail.finished
        for object in mail.discarded { removeDiscarded(object) }
        absorb(mail)
        return mail.wantedBytes
    }

    private func scheduleTick(_ loop: EventLoop) {
        guard
            timer == nil,
            !dirty.isEmpty || !rows.isEmpty || hasTouches || mayTrim || unsyncedSince != nil
                || usesSince != nil
        else { return }
        timer = loop.schedule(after: core.configuration.indexInterval) { [unowned self] loop in
            timer = nil
            tick(loop)
            scheduleTick(loop)
        }
    }

    private func tick(_ loop: EventLoop) {
        commitDue(at: loop.now)
        flushIndex(isTick: true)
        if let since = unsyncedSince,
            loop.now - since >= core.configuration.syncInterval
                || unsynced.count >= core.configuration.mostUnsynced
        {
            beginSync(on: loop)
        }
        // Readers release objects too, and report it only as a use.
        core.table.trimAll()
        mayTrim = false
        // Objects in use at the last attempt may be idle now.
        if core.usage.isOverBudget, !isEvicting {
            _ = settleFinished()
            commitDue(at: loop.now)
            wantedBytes = wantedBytes ?? 0
            evictSome(loop)
        }
    }

    // MARK: Commits

    /// Commits objects that have grown enough or waited long enough.
    private func commitDue(at now: Monotonic) {
        let configuration = core.configuration
        if let refusedAt, now - refusedAt < configuration.commitInterval { return }
        var kept: [(object: StoredObject, since: Monotonic)] = []
        var due: [StoredObject] = []
        for (object, since) in dirty {
            let isDue = object.state.withLock { state -> Bool? in
                guard state.place == .current, !state.isDiscarded,
                    state.uncommittedBytes > 0 || state.hasNewFacts
                else {
                    // If it is published or changed later, it is queued again.
                    state.isQueued = false
                    return nil
                }
                return state.uncommittedBytes >= configuration.commitBytes
                    || now - since >= configuration.commitInterval
                    || (state.isComplete && now - since >= configuration.settleInterval)
            }
            guard let isDue else { continue }
            if isDue { due.append(object) } else { kept.append((object, since)) }
        }
        settle(due)
        for object in due {
            // A growing object stays queued.
            let isBehind = object.state.withLock { state in
                state.isQueued = state.uncommittedBytes > 0 || state.hasNewFacts
                return state.isQueued
            }
            if isBehind { kept.append((object, now)) }
        }
        mayTrim = mayTrim || kept.count < dirty.count
        dirty = kept
    }

    private func removeDiscarded(_ object: StoredObject) {
        _ = core.remove(object.key, only: object)
    }

    /// Commits, syncs and indexes everything, or as much as the deadline allows.
    ///
    /// - Returns: true if all of it is on the disk.
    func finishAll(by deadline: Monotonic) -> Bool {
        let mail = core.channel.takeMail()
        for object in mail.discarded { removeDiscarded(object) }
        var behind = (finished + mail.finished + mail.dirty + dirty.map(\.object))[...]
        finished = []
        for object in behind { object.state.withLock { $0.isQueued = false } }
        mayTrim = mayTrim || !behind.isEmpty
        while !behind.isEmpty, .now() < deadline {
            settle(Array(behind.prefix(64)))
            behind = behind.dropFirst(64)
        }
        let isDone = behind.isEmpty
        dirty = []
        absorb(mail)
        flushIndex()
        let isSynced = syncAll(by: deadline)
        return isDone && isSynced && rows.isEmpty
    }

    // MARK: Missing folder

    /// Checks whether the folder is in place, and repeats every second until it is.
    ///
    /// `again` is true if it was missing at the last check, so that the error is logged once.
    func lookForFolder(_ loop: EventLoop, again: Bool = false) {
        guard lostTimer == nil else { return }
        if core.folder.isInPlace {
            guard core.folder.isLost else { return }
            core.folder.isLost = false
            core.table.withEachShard { $0.forgetAbsent() }
            core.log.notice("the cache folder is back", metadata: ["path": "\(core.folder.path)"])
            return
        }
        core.folder.isLost = true
        if !again {
            core.log.error(
                "the cache folder is gone: nothing is stored until it is back or an empty one is made",
                metadata: ["path": "\(core.folder.path)"])
        }
        if core.folder.isRemade {
            do {
                try moveIn()
                core.folder.isLost = false
                core.log.notice(
                    "a new cache folder is used", metadata: ["path": "\(core.folder.path)"])
                return
            } catch {
                core.log.error("cannot use the new cache folder", metadata: ["error": "\(error)"])
            }
        }
        lostTimer = loop.schedule(after: .seconds(1 as Int64)) { [unowned self] loop in
            lostTimer = nil
            lookForFolder(loop, again: true)
        }
    }

    /// Starts empty in the folder now at the path; open objects can be read to their end.
    private func moveIn() throws {
        try core.folder.takeAnew()
        core.usage.startAnew()
        core.counters.removals.add(1, ordering: .releasing)
        core.table.withEachShard { shard in
            for object in shard.removeAll() { object.state.withLock { $0.place = .unlinked } }
            shard.settled = nil
        }
        for object in dirty { object.object.state.withLock { $0.isQueued = false } }
        dirty = []
        unsynced = []
        isSyncingFormer = isSyncing
        unsyncedFolders = []
        rows = [:]
        uses = [:]
        usesSince = nil
        comparison = nil
        policy = core.configuration.makePolicy(core.usage.budget)
        try core.index.openAnew(core.folder)
        try core.state.moveIntoNewFolder()
    }
}

// The mailbox of the store thread, filled by objects and by callers on other threads.
import Glibc
import Posix
import Reactor
import Synchronization

/// A change of an index row, written with the next batch.
enum RowChange: Sendable {
    case put(StoreEntry)
    /// Like `put`, for an object that was found on the disk and not used.
    case adopt(StoreEntry)
    case delete

    /// The object's row; nil for a deletion.
    var row: StoreEntry? {
        switch self {
        case .put(let row), .adopt(let row): row
        case .delete: nil
        }
    }

    /// The object's creation time; deletions sort first.
    var time: WallTime {
        switch self {
        case .put(let row), .adopt(let row): row.created
        case .delete: WallTime(nanoseconds: .min)
        }
    }
}

/// Events since the store thread last took its mail.
struct StoreMail: Sendable {
    /// Objects whose header on disk is outdated.
    var dirty: [StoredObject] = []
    /// Objects that must be committed without waiting for more growth.
    var finished: [StoredObject] = []
    var discarded: [StoredObject] = []
    /// The last change of each key.
    var rows: [ObjectKey: RowChange] = [:]
    /// The room requested beyond current usage, in bytes; nil if none was.
    var wantedBytes: Int64?
    var hasTouches = false
    /// First bytes of the keys whose names changed on disk and are not synced yet.
    var folders: Set<UInt8> = []

    var isEmpty: Bool {
        dirty.isEmpty && finished.isEmpty && discarded.isEmpty && rows.isEmpty
            && wantedBytes == nil && !hasTouches && folders.isEmpty
    }
}

/// The mailbox of the store thread.
///
/// Its lock is the innermost one: no code that takes a lock is called under it.
final class StoreChannel: Sendable {
    let usage: DiskUsage
    let configuration: StoreConfiguration
    let counters = StoreCounters()

    private struct Guarded {
        var mail = StoreMail()
        var worker: LoopBound<StoreWorker>?
        /// True while the store thread will take its mail by itself soon, or has been woken.
        var isAnnounced = false
        /// True once the store thread has been woken for urgent mail.
        var isUrgent = false
        /// True once nobody takes mail any more.
        var isClosed = false
        /// The changes of rows that were taken and that the index does not have yet.
        var taken: [ObjectKey: RowChange] = [:]
        weak var room: StoreCore?

        mutating func noteTaken(_ rows: [ObjectKey: RowChange]) {
            if taken.isEmpty {
                taken = rows
            } else {
                taken.merge(rows) { $1 }
            }
        }
    }

    /// The core that makes room for growing objects; set once, before the first object.
    var room: StoreCore? { guarded.withLock { $0.room } }

    private let guarded = Mutex(Guarded())
    /// Monotonic nanoseconds until which new objects are not stored on the disk.
    private let suspendedUntil = Atomic<Int64>(0)

    init(configuration: StoreConfiguration) {
        self.configuration = configuration
        usage = DiskUsage(
            budget: configuration.budgetBytes, minFree: configuration.minFreeBytes)
    }

    func connect(room: StoreCore) {
        guarded.withLock { $0.room = room }
    }

    /// Connects the store thread and wakes it for mail that came earlier.
    func connect(_ worker: LoopBound<StoreWorker>) {
        guarded.withLock { guarded in
            guarded.worker = worker
            guarded.isAnnounced = true
        }
        worker.enqueue { worker, loop in worker.mailArrived(loop) }
    }

    /// The store thread, once it runs.
    var worker: LoopBound<StoreWorker>? { guarded.withLock { $0.worker } }

    /// Removes and returns all mail.
    ///
    /// The caller takes mail again soon; until then only urgent mail wakes it.
    func takeMail() -> StoreMail {
        guarded.withLock { guarded in
            guarded.isUrgent = false
            let mail = guarded.mail
            guarded.mail = StoreMail()
            guarded.noteTaken(mail.rows)
            return mail
        }
    }

    /// True while mail waits.
    var hasMail: Bool { guarded.withLock { !$0.mail.isEmpty } }

    /// Lets the next mail wake the store thread, unless mail is waiting already.
    ///
    /// - Returns: true if no mail was waiting.
    func rest() -> Bool {
        guarded.withLock { guarded in
            guard guarded.mail.isEmpty else { return false }
            guarded.isAnnounced = false
            return true
        }
    }

    /// Removes and returns only the mail for the index.
    func takeIndexMail() -> StoreMail {
        guarded.withLock { guarded in
            var part = StoreMail()
            swap(&part.rows, &guarded.mail.rows)
            swap(&part.hasTouches, &guarded.mail.hasTouches)
            guarded.noteTaken(part.rows)
            return part
        }
    }

    /// Notes that the index has all changes of rows that were taken, or needs them no more.
    ///
    /// - Parameter left: the keys whose changes it may still lack.
    func noteIndexed(but left: Set<ObjectKey> = []) {
        let indexed = guarded.withLock { guarded in
            let taken = guarded.taken
            guarded.taken = left.isEmpty ? [:] : taken.filter { left.contains($0.key) }
            return taken
        }
        // Outside the lock: there may be many.
        _ = consume indexed
    }

    /// Returns the change of a key's row that the index does not have yet.
    ///
    /// While the key's name is locked, no other thread can add one.
    func pendingRow(of key: ObjectKey) -> RowChange? {
        guarded.withLock { $0.mail.rows[key] ?? $0.taken[key] }
    }

    /// Disconnects the store thread; mail is dropped from now on, since its objects hold this
    /// channel.
    func disconnect() {
        let left = guarded.withLock { guarded -> StoreMail in
            defer { guarded.mail = StoreMail() }
            guarded.worker = nil
            guarded.isClosed = true
            return guarded.mail
        }
        // Outside the lock: objects are freed, and their files closed.
        _ = consume left
    }

    func noteDirty(_ object: StoredObject) { post { $0.dirty.append(object) } }
    func noteFinished(_ object: StoredObject) { post { $0.finished.append(object) } }
    func noteDiscarded(_ object: StoredObject) {
        post(isUrgent: true) { $0.discarded.append(object) }
    }
    func noteTouches() { post { $0.hasTouches = true } }
    func hurry() { post(isUrgent: true) { _ in } }

    /// Records that a key's folder must be synced; a row change is always recorded with it.
    func noteName(of key: ObjectKey) {
        _ = guarded.withLock { $0.mail.folders.insert(key.firstByte) }
    }

    /// Called with the key's name locked, so that changes of one key arrive in order.
    func noteRow(_ change: RowChange, of key: ObjectKey) { post { $0.rows[key] = change } }

    func askEviction(bytes: Int64) {
        post(isUrgent: true) { $0.wantedBytes = max($0.wantedBytes ?? 0, bytes) }
    }

    private func post(isUrgent: Bool = false, _ change: (inout StoreMail) -> Void) {
        let worker = guarded.withLock { guarded -> LoopBound<StoreWorker>? in
            guard !guarded.isClosed else { return nil }
            change(&guarded.mail)
            let isAwaited = isUrgent ? guarded.isUrgent : guarded.isAnnounced
            guard !isAwaited, let worker = guarded.worker else { return nil }
            guarded.isAnnounced = true
            guarded.isUrgent = guarded.isUrgent || isUrgent
            return worker
        }
        worker?.enqueue { worker, loop in worker.mailArrived(loop) }
    }

    // MARK: Failing storage

    /// How long no new objects are stored after the disk refused bytes.
    private static let suspension = Interval.seconds(5 as Int64)

    /// Stops storing new objects for a while after the disk refused bytes.
    func noteStorageFailure(_ error: SystemError) {
        guard error.isStorageExhausted else { return }
        counters.note { $0.storageFailures += 1 }
        let until = Monotonic.now() + Self.suspension
        suspendedUntil.store(until.nanoseconds, ordering: .relaxed)
        // A refused file has its own evictions.
        if error.code == EDQUOT, "\(error.call)" != "open" { usage.noteQuotaMet() }
        askEviction(bytes: 0)
    }

    var isStoringSuspended: Bool {
        let until = suspendedUntil.load(ordering: .relaxed)
        return until != 0 && Monotonic.now().nanoseconds < until
    }
}

// What objects and callers on other threads leave for the store thread.
import Posix
import Reactor
import Synchronization

/// A change of the index, to be written with the next batch.
enum RowChange: Sendable {
    case put(IndexRow)
    /// As `put`, of an object that was found on the disk and not used.
    case adopt(IndexRow)
    case delete

    /// When the object was made, as a rule; removals come first.
    var time: WallTime {
        switch self {
        case .put(let row), .adopt(let row): row.created
        case .delete: WallTime(nanoseconds: .min)
        }
    }
}

/// Things that happened since the store thread last looked.
struct StoreMail: Sendable {
    /// Objects whose header on disk is behind.
    var dirty: [StoredObject] = []
    /// Objects that must be committed without waiting for more growth.
    var finished: [StoredObject] = []
    var discarded: [StoredObject] = []
    /// The last change of each key.
    var rows: [ObjectKey: RowChange] = [:]
    /// Room asked for beyond what is used, in bytes; nil when nobody asked.
    var wantedBytes: Int64?
    var hasTouches = false
    /// First bytes of the keys whose names changed on disk, and are not synced.
    var folders: Set<UInt8> = []

    var isEmpty: Bool {
        dirty.isEmpty && finished.isEmpty && discarded.isEmpty && rows.isEmpty
            && wantedBytes == nil && !hasTouches && folders.isEmpty
    }
}

/// The mailbox of the store thread.
///
/// Its lock is the innermost one: nothing is called under it.
final class StoreChannel: Sendable {
    let usage: DiskUsage
    let configuration: StoreConfiguration
    let counters = StoreCounters()

    private struct Guarded {
        var mail = StoreMail()
        var worker: LoopBound<StoreWorker>?
        /// True while the store thread looks by itself before long, or has been woken.
        var isAnnounced = false
        /// True once it has been woken for what cannot wait until then.
        var isUrgent = false
        weak var room: StoreCore?
    }

    /// Who makes room for growing objects; set once, before the first object.
    var room: StoreCore? { guarded.withLock { $0.room } }

    private let guarded = Mutex(Guarded())
    /// Monotonic nanoseconds until which new objects stay off the disk.
    private let suspendedUntil = Atomic<Int64>(0)

    init(configuration: StoreConfiguration) {
        self.configuration = configuration
        usage = DiskUsage(budget: configuration.budgetBytes)
    }

    func connect(room: StoreCore) {
        guarded.withLock { $0.room = room }
    }

    /// Connects the store thread; mail that came earlier is announced now.
    func connect(_ worker: LoopBound<StoreWorker>) {
        guarded.withLock { guarded in
            guarded.worker = worker
            guarded.isAnnounced = true
        }
        worker.enqueue { worker, loop in worker.mailArrived(loop) }
    }

    /// The store thread, once it runs.
    var worker: LoopBound<StoreWorker>? { guarded.withLock { $0.worker } }

    /// Takes what there is.
    ///
    /// The caller looks again before long: only what cannot wait so long wakes it earlier.
    func takeMail() -> StoreMail {
        guarded.withLock { guarded in
            guarded.isUrgent = false
            let mail = guarded.mail
            guarded.mail = StoreMail()
            return mail
        }
    }

    /// Has the next mail wake the store thread, unless there is some already.
    ///
    /// - Returns: true when there is none.
    func rest() -> Bool {
        guarded.withLock { guarded in
            guard guarded.mail.isEmpty else { return false }
            guarded.isAnnounced = false
            return true
        }
    }

    /// Takes only what concerns the index.
    func takeIndexMail() -> StoreMail {
        guarded.withLock { guarded in
            var part = StoreMail()
            swap(&part.rows, &guarded.mail.rows)
            swap(&part.hasTouches, &guarded.mail.hasTouches)
            return part
        }
    }

    /// The change of a key's row that the store thread has not taken yet.
    ///
    /// With the key's name locked, nobody can add one.
    func pendingRow(of key: ObjectKey) -> RowChange? {
        guarded.withLock { $0.mail.rows[key] }
    }

    /// Cuts the store thread off; mail is kept but nobody reads it.
    func disconnect() {
        guarded.withLock { $0.worker = nil }
    }

    func noteDirty(_ object: StoredObject) { post { $0.dirty.append(object) } }
    func noteFinished(_ object: StoredObject) { post { $0.finished.append(object) } }
    func noteDiscarded(_ object: StoredObject) {
        post(isUrgent: true) { $0.discarded.append(object) }
    }
    func noteTouches() { post { $0.hasTouches = true } }
    func hurry() { post(isUrgent: true) { _ in } }

    /// Notes that a key's folder has to be synced; a change of a row is noted with it.
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

    /// Keeps new objects off the disk for a while after it refused bytes.
    func noteStorageFailure(_ error: SystemError) {
        guard error.isStorageExhausted else { return }
        counters.storageFailures.add(1, ordering: .relaxed)
        let until = Monotonic.now() + configuration.suspension
        suspendedUntil.store(until.nanoseconds, ordering: .relaxed)
        askEviction(bytes: 0)
    }

    var isStoringSuspended: Bool {
        let until = suspendedUntil.load(ordering: .relaxed)
        return until != 0 && Monotonic.now().nanoseconds < until
    }
}

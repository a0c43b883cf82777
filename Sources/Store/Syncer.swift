// Making headers, bodies and names certain, on a thread of its own: a disk may take seconds for what
// a few seconds brought, and commits and evictions go on meanwhile.
import Glibc
import Posix
import Reactor
import Synchronization

/// An object whose last header may not be on the disk yet.
struct UnsyncedHeader: Sendable {
    let key: ObjectKey
    /// Whether it may come there without the body that it claims.
    let isClaimedEarly: Bool
}

/// What is made certain together.
struct SyncBatch: Sendable {
    /// The file of an object that is open.
    struct Entry: Sendable {
        var header: UnsyncedHeader
        let generation: UInt64
        let file: SharedDescriptor
        /// The number of its last header.
        let sequence: UInt64
    }

    /// From this many files on, one wait for the whole file system is shorter than one for each:
    /// measured on ext4, 512 new files take 0.09 ms each instead of 4.
    static let together = 8

    var open: [Entry] = []
    /// The headers of objects that were let go.
    var closed: [UnsyncedHeader] = []
    /// First bytes of the keys whose names may not be on the disk yet.
    var folders: Set<UInt8> = []
}

/// What came of a batch.
struct SyncOutcome: Sendable {
    /// The open files that are certain now.
    var synced: [SyncBatch.Entry] = []
    var refused: [(header: UnsyncedHeader, error: SystemError)] = []
    /// Why a folder could not be synced, if one could not.
    var refusal: SystemError?
    /// What is to be tried again, or was not come to.
    var left: [UnsyncedHeader] = []
    var leftFolders: Set<UInt8> = []
}

extension SyncBatch {
    /// Waits until all of it is on the disk (syncfs(2), fdatasync(2), fsync(2)); blocks.
    ///
    /// - Parameters:
    ///   - folder: the store's.
    ///   - deadline: nothing more is begun after it.
    /// - Returns: what is certain, what the disk refused, and what is left for the next time.
    func sync(in folder: StoreFolder, by deadline: Monotonic) -> SyncOutcome {
        var outcome = SyncOutcome()
        // The kernel may have forgotten a file that was let go, and with it that it failed; of the file
        // system it tells that in any case.
        if open.count + folders.count >= Self.together || !closed.isEmpty {
            do throws(SystemError) {
                try folder.syncEverything()
                outcome.synced = open
                return outcome
            } catch {
                outcome.refused = closed.map { ($0, error) }
            }
        }
        // Where that failed, each open file says for itself what is the matter. One commit of the
        // journal serves them all once their data is on its way.
        for entry in open { startWriteback(entry.file.number) }
        for entry in open {
            guard .now() < deadline else {
                outcome.left.append(entry.header)
                continue
            }
            do throws(SystemError) {
                try syncData(entry.file.number)
                outcome.synced.append(entry)
            } catch {
                outcome.refused.append((entry.header, error))
            }
        }
        for byte in folders {
            guard .now() < deadline else {
                outcome.leftFolders.insert(byte)
                continue
            }
            do throws(SystemError) {
                try syncFolder(folder.objectsFolder(of: byte))
            } catch {
                // Gone with everything in it, there is nothing to sync.
                if error.code != ENOENT { outcome.leftFolders.insert(byte) }
                outcome.refusal = error
            }
        }
        return outcome
    }
}

/// The thread; one batch at a time.
final class Syncer: Sendable {
    private let folder: StoreFolder
    private let thread: LoopThread
    private let outcome = Mutex<SyncOutcome?>(nil)

    /// Starts the thread.
    init(folder: StoreFolder) throws(SystemError) {
        self.folder = folder
        thread = try LoopThread(name: "sync") { _ in }
    }

    /// Begins with a batch; the one before it must be over, and its outcome taken.
    ///
    /// - Parameters:
    ///   - batch: what is made certain.
    ///   - whenDone: called on the thread once there is an outcome.
    func begin(_ batch: SyncBatch, whenDone: @escaping @Sendable () -> Void) {
        thread.handle.enqueue { [self] _ in
            let made = batch.sync(in: folder, by: Monotonic(nanoseconds: .max))
            outcome.withLock { $0 = made }
            whenDone()
        }
    }

    /// What came of the last batch; nil while it runs, and when it was taken before.
    func takeOutcome() -> SyncOutcome? {
        outcome.withLock { outcome in
            defer { outcome = nil }
            return outcome
        }
    }

    /// Waits for the end of the batch that runs; blocks.
    ///
    /// - Returns: false when the time was up first.
    func settle(by deadline: Monotonic) -> Bool {
        guard let latch = try? Latch() else { return false }
        thread.handle.enqueue { _ in latch.open() }
        return latch.wait(atMost: max(.zero, deadline - .now()))
    }

    /// Ends the thread after what it is doing; blocks.
    func stop() { thread.stopAndJoin() }
}

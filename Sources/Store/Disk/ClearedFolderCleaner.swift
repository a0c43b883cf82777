// Deletes the objects that a clear set aside, on a separate thread: a million files take minutes,
// and nothing waits for them. What the disk refuses to delete is tried again later, and holds up
// nothing else. What is left when the store closes is deleted after the next start.
import Glibc
import Logging
import Posix
import Reactor
import Synchronization

/// The objects and bytes that are still to be deleted.
package struct Deletion: Sendable, Equatable {
    package var objects = 0
    package var bytes: Int64 = 0

    package init() {}
}

/// The thread that deletes set-aside folders and rows; a store that is never cleared has none.
final class ClearedFolderCleaner: Sendable {
    /// A folder to delete.
    private struct Work {
        var folder: ClearedFolder
        /// When its bytes were charged; see `DiskUsage.era`.
        let era: Int
    }

    private struct State {
        var waiting: [Work] = []
        /// What the disk refused to delete, until `tryAgain`.
        var refused: [Work] = []
        /// The paths of folders that were logged as refused.
        var told: Set<String> = []
        var left = Deletion()
        /// Started with the first work.
        var thread: LoopThread?
        /// True if the thread could not be started, until it is.
        var lacksThread = false
        var isStopped = false
    }

    private let folder: StoreFolder
    private let index: ObjectIndex
    private let channel: StoreChannel
    private let log: Logger
    private let state = Mutex(State())
    private let refusal = Atomic<Bool>(false)
    /// The refusals in a row after which the rest of a subfolder is left for the next time: a
    /// failing disk must not be asked a million times.
    private static let mostRefusals = 16

    private var usage: DiskUsage { channel.usage }

    init(folder: StoreFolder, index: ObjectIndex, channel: StoreChannel, log: Logger) {
        self.folder = folder
        self.index = index
        self.channel = channel
        self.log = log
    }

    var left: Deletion { state.withLock { $0.left } }

    /// True from a failure until `tryAgain`.
    var isRefused: Bool { refusal.load(ordering: .relaxed) }

    /// Queues the folders that earlier runs left; their bytes count against the budget until
    /// deleted.
    func resume() {
        for found in folder.clearedFolders() {
            let parts = (try? listFolder(found.path).count) ?? 0
            let rest = ClearedFolder(
                path: found.path, objects: found.objects * min(parts, 256) / 256,
                bytes: found.bytes / 256 * Int64(min(parts, 256)))
            usage.charge(rest.bytes)
            add(rest)
        }
        if (try? index.hasSetAside()) == true { start() }
    }

    /// Queues a folder for deletion; its bytes must already be counted in `usage`.
    func add(_ aside: ClearedFolder) {
        state.withLock { state in
            state.waiting.append(Work(folder: aside, era: usage.era))
            state.left.objects += aside.objects
            state.left.bytes += aside.bytes
        }
        start()
    }

    /// Deletes what was refused, as far as the disk permits now; in the background.
    func tryAgain() {
        guard refusal.exchange(false, ordering: .relaxed) else { return }
        state.withLock { state in
            state.waiting += state.refused
            state.refused = []
        }
        start()
    }

    /// Has the store thread call `tryAgain` after a while.
    private func awaitRetry() {
        refusal.store(true, ordering: .relaxed)
        channel.hurry()
    }

    /// Stops the thread after the file that it is deleting; blocks until it has ended.
    func stop() {
        let thread = state.withLock { state -> LoopThread? in
            state.isStopped = true
            return state.thread
        }
        thread?.stopAndJoin()
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Has the thread delete what waits.
    private func start() {
        do throws(SystemError) {
            try state.withLock { state throws(SystemError) in
                guard !state.isStopped else { return }
                if state.thread == nil {
                    state.thread = try LoopThread(name: "delete") { _ in }
                }
                state.lacksThread = false
                state.thread?.handle.enqueue { [self] _ in deleteAll() }
            }
        } catch {
            let isNews = state.withLock { state in
                defer { state.lacksThread = true }
                return !state.lacksThread
            }
            if isNews {
                log.error(
                    "cannot start a thread to delete cleared objects; trying again",
                    metadata: ["error": "\(error)"])
            }
            awaitRetry()
        }
    }

    private func deleteAll() {
        while let next = state.withLock({ $0.isStopped ? nil : $0.waiting.popLast() }) {
            delete(next)
        }
        deleteRows()
    }

    /// Deletes a folder, or what the disk lets it delete of it; the rest waits for `tryAgain`.
    private func delete(_ work: Work) {
        var rest = work
        let failure = deleteParts(of: &rest)
        guard !isStopped else { return }
        if let failure { return refuse(rest, failure) }
        state.withLock { state in
            state.told.remove(work.folder.path)
            state.left.objects -= rest.folder.objects
        }
        release(rest.folder.bytes, of: &rest)
    }

    /// Keeps what the disk refused to delete; it stays counted.
    private func refuse(_ rest: Work, _ error: SystemError) {
        let isNews = state.withLock { state in
            state.refused.append(rest)
            return state.told.insert(rest.folder.path).inserted
        }
        if isNews {
            log.error(
                "cannot delete some cleared objects, which take room until they are gone; trying again",
                metadata: ["path": "\(rest.folder.path)", "error": "\(error)"])
        }
        awaitRetry()
    }

    /// Deletes the subfolders one after the other, also after a failure.
    ///
    /// - Parameter work: the folder; what was deleted is subtracted.
    /// - Returns: the first failure.
    private func deleteParts(of work: inout Work) -> SystemError? {
        var failure: SystemError?
        do throws(SystemError) {
            let parts = try folder.entries(of: work.folder.path)
            let share = work.folder.bytes / Int64(max(1, parts.count))
            for part in parts {
                guard !isStopped else { return failure }
                let path = "\(work.folder.path)/\(part.name)"
                guard let error = deletePart(path, share: share, of: &work) else { continue }
                failure = failure ?? error
                // The disk takes no change at all.
                if error.code == EROFS { return failure }
            }
            if failure == nil { try removeFolder(work.folder.path) }
        } catch {
            failure = error
        }
        return failure
    }

    /// Deletes one subfolder, and releases its share of the bytes.
    private func deletePart(_ path: String, share: Int64, of work: inout Work) -> SystemError? {
        var failure: SystemError?
        do throws(SystemError) {
            let entries = try folder.entries(of: path)
            var (deleted, refusals) = (0, 0)
            for entry in entries {
                guard !isStopped else { return failure }
                do throws(SystemError) {
                    try removeFile("\(path)/\(entry.name)")
                } catch {
                    failure = failure ?? error
                    refusals += 1
                    if error.code == EROFS || refusals >= Self.mostRefusals { break }
                    continue
                }
                (deleted, refusals) = (deleted + 1, 0)
                guard work.folder.objects > 0 else { continue }
                work.folder.objects -= 1
                state.withLock { $0.left.objects -= 1 }
            }
            if failure == nil {
                try removeFolder(path)
                release(share, of: &work)
            } else {
                release(share / Int64(entries.count) * Int64(deleted), of: &work)
            }
        } catch {
            failure = error
        }
        return failure
    }

    private func release(_ bytes: Int64, of work: inout Work) {
        work.folder.bytes -= bytes
        // Of a folder that was replaced, nothing is charged any more.
        if work.era == usage.era { usage.release(bytes) }
        state.withLock { $0.left.bytes -= bytes }
    }

    private func deleteRows() {
        do {
            while !isStopped, try index.deleteSetAside(atMost: 1_000) {}
        } catch {
            log.error("cannot delete the rows of cleared objects", metadata: ["error": "\(error)"])
        }
    }
}

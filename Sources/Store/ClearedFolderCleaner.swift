// Deletes the objects that a clear set aside, on a separate thread: a million files take minutes,
// and nothing waits for them. What is left when the store closes is deleted after the next start.
import Logging
import Posix
import Reactor
import Synchronization

/// The objects and bytes that are still to be deleted.
package struct Deletion: Sendable, Equatable {
    package var objects = 0
    package var bytes: Int64 = 0

    package init(objects: Int = 0, bytes: Int64 = 0) {
        self.objects = objects
        self.bytes = bytes
    }
}

/// The thread that deletes set-aside folders and rows; it runs only while there is work.
final class ClearedFolderCleaner: Sendable {
    private struct State {
        var waiting: [ClearedFolder] = []
        var left = Deletion()
        /// True while the thread runs or may still look for more work.
        var isRunning = false
        var isStopped = false
        var thread: PosixThread?
    }

    private let folder: StoreFolder
    private let index: ObjectIndex
    private let usage: DiskUsage
    private let log: Logger
    private let state = Mutex(State())

    init(folder: StoreFolder, index: ObjectIndex, usage: DiskUsage, log: Logger) {
        self.folder = folder
        self.index = index
        self.usage = usage
        self.log = log
    }

    var left: Deletion { state.withLock { $0.left } }

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
            state.waiting.append(aside)
            state.left.objects += aside.objects
            state.left.bytes += aside.bytes
        }
        start()
    }

    /// Stops the thread after the file that it is deleting; blocks until it has ended.
    func stop() {
        let thread = state.withLock { state in
            state.isStopped = true
            return state.thread
        }
        thread?.join()
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func start() {
        let former = state.withLock { state -> PosixThread?? in
            guard !state.isRunning, !state.isStopped else { return nil }
            state.isRunning = true
            return .some(state.thread)
        }
        guard let former else { return }
        // The former thread has finished its work; join it before starting another.
        former?.join()
        do throws(SystemError) {
            let made = try PosixThread(name: "delete") { self.run() }
            state.withLock { $0.thread = made }
        } catch {
            state.withLock { $0.isRunning = false }
            log.error(
                "cannot start a thread to delete cleared objects", metadata: ["error": "\(error)"])
        }
    }

    private func run() {
        while true {
            let next = state.withLock { state -> ClearedFolder? in
                guard !state.isStopped, let next = state.waiting.popLast() else {
                    if state.isStopped { state.isRunning = false }
                    return nil
                }
                return next
            }
            if let next {
                delete(next)
                continue
            }
            guard !isStopped else { return }
            deleteRows()
            let isDone = state.withLock { state in
                guard state.waiting.isEmpty || state.isStopped else { return false }
                state.isRunning = false
                return true
            }
            if isDone { return }
        }
    }

    private func delete(_ aside: ClearedFolder) {
        var rest = Deletion(objects: aside.objects, bytes: aside.bytes)
        do throws(SystemError) {
            let parts = try listFolder(aside.path)
            let share = aside.bytes / Int64(max(1, parts.count))
            for part in parts {
                let path = "\(aside.path)/\(part.name)"
                for entry in try listFolder(path) {
                    guard !isStopped else { return }
                    try removeFile("\(path)/\(entry.name)")
                    if rest.objects > 0 {
                        rest.objects -= 1
                        state.withLock { $0.left.objects -= 1 }
                    }
                }
                try removeFolder(path)
                rest.bytes -= share
                release(bytes: share)
            }
            try removeFolder(aside.path)
        } catch {
            // The files are still there, so they stay counted; the next start tries again.
            log.error(
                "cannot delete cleared objects",
                metadata: ["path": "\(aside.path)", "error": "\(error)"])
            return
        }
        state.withLock { $0.left.objects -= rest.objects }
        release(bytes: rest.bytes)
    }

    private func release(bytes: Int64) {
        usage.release(bytes)
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

/// Numbers, listing, purging, and the small tables that the layers above keep in the index.
import Logging
package import Posix
import Reactor
import Synchronization

/// One line of a listing.
package struct ObjectSummary: Sendable, Equatable {
    package let key: ObjectKey
    package let url: String
    package let role: UInt8
    /// Bytes on the disk, header included.
    package let bytes: Int64
    package let total: Int64?
    package let isComplete: Bool
    package let created: WallTime
    package let lastUsed: WallTime
}

extension ObjectStore {
    /// The numbers of now.
    package func statistics() -> StoreStatistics {
        var statistics = StoreStatistics()
        core.counters.fill(&statistics)
        statistics.objects = core.ledger.objectCount
        statistics.bytes = core.ledger.used
        statistics.budgetBytes = core.ledger.budget
        statistics.openObjects = core.table.count
        return statistics
    }

    /// The objects used last, newest first, as of the last batch of index writes.
    ///
    /// Blocks on the disk.
    package func list(limit: Int) -> [ObjectSummary] {
        let rows = indexed("list objects", []) { try core.index.newest(limit: limit) }
        return rows.map { row in
            ObjectSummary(
                key: row.key, url: row.url, role: row.role, bytes: row.bytes, total: row.total,
                isComplete: row.isComplete, created: row.created,
                lastUsed: row.lastUsed ?? row.created)
        }
    }

    /// Removes every object, on the store thread; holders of them go on.
    package func removeAll(_ done: @escaping @Sendable (_ removed: Int) -> Void = { _ in }) {
        remove(where: { _ in true }, done)
    }

    /// Removes the objects whose URL fits, on the store thread; holders of them go on.
    ///
    /// - Parameters:
    ///   - fits: asked for each URL, on the store thread.
    ///   - done: called on the store thread with the number of objects removed.
    package func remove(
        where fits: @escaping @Sendable (_ url: String) -> Bool,
        _ done: @escaping @Sendable (_ removed: Int) -> Void = { _ in }
    ) {
        onStoreThread { worker in
            self.indexed("compare index and folder", ()) { try worker.reconcileNow() }
            worker.flushIndex()
            var removed = 0
            let rows = self.indexed("list objects", []) { try self.core.index.newest(limit: -1) }
            for row in rows where fits(row.url) && self.core.remove(row.key) != nil { removed += 1 }
            worker.flushIndex()
            done(removed)
        }
    }

    // MARK: Small tables

    /// Keeps a session's state across restarts; a former one of the same name is replaced.
    package func saveSession(id: [UInt8], blob: [UInt8]) {
        onStoreThread { _ in
            self.indexed("save a session", ()) {
                try self.core.index.saveSession(id: id, blob: blob)
            }
        }
    }

    package func removeSession(id: [UInt8]) {
        onStoreThread { _ in
            self.indexed("remove a session", ()) { try self.core.index.removeSession(id: id) }
        }
    }

    /// All saved sessions; blocks on the disk.
    package func loadSessions() -> [(id: [UInt8], blob: [UInt8])] {
        indexed("load sessions", []) { try core.index.sessions() }
    }

    /// Keeps a URL under a short name; found at once by `longURL`, on disk a moment later.
    package func saveLongURL(id: [UInt8], url: String) {
        unsavedLongURLs.withLock { $0[id] = url }
        onStoreThread { _ in
            self.indexed("save a URL", ()) {
                try self.core.index.saveLongURL(id: id, url: url, now: .now())
            }
            self.unsavedLongURLs.withLock { $0[id] = nil }
        }
    }

    /// The URL kept under a short name.
    ///
    /// May block on the disk for as long as one SQLite read takes.
    package func longURL(id: [UInt8]) -> String? {
        if let url = unsavedLongURLs.withLock({ $0[id] }) { return url }
        return indexed("find a URL", nil) { try core.index.longURL(id: id) }
    }

    // MARK: Ways to the index

    private func onStoreThread(_ body: @escaping @Sendable (StoreWorker) -> Void) {
        core.channel.worker?.enqueue { worker, _ in body(worker) }
    }

    /// Runs an index operation; a failure is counted and logged and gives the fallback.
    private func indexed<Value>(
        _ what: String, _ fallback: Value, _ body: () throws -> Value
    ) -> Value {
        do {
            return try body()
        } catch {
            core.counters.indexFailures.add(1, ordering: .relaxed)
            core.log.error("the index failed", metadata: ["to": "\(what)", "error": "\(error)"])
            return fallback
        }
    }
}

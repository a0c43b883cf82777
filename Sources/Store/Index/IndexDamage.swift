import Glibc
import Logging
import Posix
import Reactor
import Synchronization

/// Damage of the index: the search for it, and the replacement of the index.
extension StoreCore {
    /// Starts a thread that reads the whole index once, after an unclean stop.
    func startIndexCheck() throws(SystemError) -> PosixThread {
        let checked = counters.indexRebuilds.load(ordering: .acquiring)
        return try PosixThread(name: "index-check") { [self] in
            do {
                try index.check()
            } catch {
                // Damage of an index that was replaced meanwhile is mended.
                guard ObjectIndex.isDamage(error),
                    counters.indexRebuilds.load(ordering: .acquiring) == checked
                else { return }
                noteDamage("\(error)")
            }
        }
    }

    /// Counts a failed access to the index; any thread may call it.
    func noteIndexFailure(_ error: any Error) {
        counters.note { $0.indexFailures += 1 }
        if ObjectIndex.isCorruption(error) { noteDamage("\(error)") }
    }

    /// Opens an index that SQLite can only read again, for the next attempt.
    func reopenIndex(after error: any Error) {
        do {
            guard try index.openAgain(after: error) else { return }
            log.notice("the index was opened for reading only, and is opened again")
        } catch {
            log.error("cannot open the index again", metadata: ["error": "\(error)"])
        }
    }

    /// Has the store thread rebuild the damaged index; any thread may call it.
    ///
    /// Until that is done, a stop is not called clean: the next start checks the index, and rebuilds
    /// it.
    func noteDamage(_ reason: String) {
        guard !counters.isIndexDamaged.exchange(true, ordering: .relaxed) else { return }
        channel.worker?.enqueue { worker, loop in worker.replaceIndex(reason, on: loop) }
    }
}

/// The objects that a new index does not have yet.
struct Refill {
    /// The first byte of the keys whose files are being read.
    var byte = UInt8.min
    var files: ArraySlice<FolderEntry> = []
}

extension StoreWorker {
    /// The number of files read per loop turn to fill a new index.
    private static let step = 200

    /// Sets the damaged index aside and fills a new one from the objects, and from the long URLs
    /// that can be read; disk usage and the object count stay unchanged.
    ///
    /// Once in a run: a disk that damages the new index too would fill with those that are set
    /// aside.
    func replaceIndex(_ reason: String, on loop: EventLoop) {
        let counters = core.counters
        // Nothing must be written into a folder that was put in the place of the store's.
        lookForFolder(loop)
        // The start may have replaced the index since, or a new folder has another.
        guard counters.isIndexDamaged.load(ordering: .relaxed) else { return }
        guard counters.indexRebuilds.load(ordering: .relaxed) == 0 else {
            return tellDamageStays("the index is damaged again since it was rebuilt", reason)
        }
        guard !core.folder.isLost else {
            return tellDamageStays("the index is damaged, and its folder is gone", reason)
        }
        guard comparison == nil else {
            // It has the rows that can be read, and continues with this when it is done.
            awaitedDamage = reason
            return
        }
        core.log.error("the index is damaged and is rebuilt", metadata: ["error": "\(reason)"])
        do {
            // The next start looks for what complete downloads have lost.
            try core.folder.noteLosses()
            let aside = try core.folder.setIndexAside(at: .now())
            // It is closed after its reads, and a check reads all of it.
            core.index.interrupt()
            keepLongURLs()
            try core.index.openAnew(core.folder)
            core.log.notice("the damaged index was set aside", metadata: ["path": "\(aside)"])
        } catch {
            counters.note { $0.indexFailures += 1 }
            return tellDamageStays("cannot rebuild the index", "\(error)")
        }
        // Until it is filled, a missing row does not prove that there is no object.
        counters.isReconciled.store(false, ordering: .releasing)
        refilling = Refill()
        counters.note { $0.start.isIndexRebuilt = true }
        counters.indexRebuilds.add(1, ordering: .releasing)
        counters.isIndexDamaged.store(false, ordering: .relaxed)
        saveLongURLs(loop)
        refillMore(loop)
    }

    /// Has the new index take over the most recently used long URLs: texts in memory have their
    /// short names, and a reload gives no others.
    private func keepLongURLs() {
        let kept = core.index.readableLongURLs(bytes: 32 << 20)
        core.unsavedLongURLs.withLock { unsaved in
            for (id, url) in kept.reversed() where unsaved.urls[id] == nil {
                _ = unsaved.add(url, id: id)
            }
        }
    }

    private func tellDamageStays(_ what: String, _ reason: String) {
        core.log.error(
            """
            \(what): objects are served and kept, but listings, totals and the order of eviction \
            lack some; check the disk and restart the daemon, which then rebuilds the index from \
            the objects
            """, metadata: ["error": "\(reason)"])
    }

    private func refillMore(_ loop: EventLoop) {
        guard refillStep() else { return }
        loop.schedule(after: .zero) { [unowned self] loop in refillMore(loop) }
    }

    /// Reads up to `step` files for a new index.
    ///
    /// - Returns: false when it has all objects.
    func refillStep() -> Bool {
        guard var left = refilling else { return false }
        let folder = core.folder.objectsFolder(of: left.byte)
        if left.files.isEmpty { left.files = ((try? listFolder(folder)) ?? [])[...] }
        for entry in left.files.prefix(Self.step) {
            guard let key = ObjectKey(hex: folder.suffix(2) + entry.name) else { continue }
            let row = core.find(key)?.row(lastUsed: nil)
            core.table.withName(of: key) {
                if let row, core.channel.pendingRow(of: key) == nil {
                    core.channel.noteRow(.put(row), of: key)
                }
            }
        }
        left.files = left.files.dropFirst(Self.step)
        flushIndex()
        if left.files.isEmpty {
            guard left.byte < .max else {
                refilling = nil
                core.counters.isReconciled.store(true, ordering: .releasing)
                core.log.info("the index is rebuilt")
                return false
            }
            left.byte += 1
        }
        refilling = left
        return true
    }
}

import Glibc
import Logging
import Posix
import Reactor
import Synchronization

/// A search for damage inside the index after an unclean stop, while the store is in use.
enum IndexCheck {
    /// Starts a thread that reads the whole index once.
    static func start(_ core: StoreCore) throws(SystemError) -> PosixThread {
        try PosixThread(name: "index-check") {
            do {
                try core.index.check()
            } catch {
                guard ObjectIndex.isDamage(error) else { return }
                let what = "\(error)"
                core.channel.worker?.enqueue { worker, loop in worker.replaceIndex(what, on: loop) }
            }
        }
    }
}

extension StoreCore {
    /// Counts a failed access to the index; any thread may call it.
    ///
    /// Damage, which stays, is logged once and keeps the stop from being called clean: the next start
    /// checks the index and rebuilds it.
    func noteIndexFailure(_ error: any Error) {
        counters.indexFailures.add(1, ordering: .relaxed)
        guard ObjectIndex.isCorruption(error),
            !counters.isIndexDamaged.exchange(true, ordering: .relaxed)
        else { return }
        log.error(
            """
            the index is damaged: objects are served and kept, but listings, totals and the order of \
            eviction lack some; if no line says soon that the index is rebuilt, restart the daemon, \
            which then rebuilds it from the objects
            """, metadata: ["error": "\(error)"])
    }
}

extension StoreWorker {
    /// The number of files read per loop turn to fill a new index.
    private static let step = 200

    /// Sets the damaged index aside and fills a new one from the objects; disk usage and the object
    /// count stay unchanged, long URLs are lost.
    func replaceIndex(_ reason: String, on loop: EventLoop) {
        core.log.error("the index is damaged and is rebuilt", metadata: ["error": "\(reason)"])
        compareToTheEnd()
        do {
            let aside = try core.folder.setIndexAside(at: .now())
            try core.index.openAnew(core.folder)
            core.log.notice("the damaged index was set aside", metadata: ["path": "\(aside)"])
            core.counters.start.withLock { $0.isIndexRebuilt = true }
            core.counters.isIndexDamaged.store(false, ordering: .relaxed)
            refill(from: 0, [], on: loop)
        } catch {
            core.counters.indexFailures.add(1, ordering: .relaxed)
            core.log.error("cannot rebuild the index", metadata: ["error": "\(error)"])
        }
    }

    private func refill(from byte: Int, _ files: ArraySlice<FolderEntry>, on loop: EventLoop) {
        guard byte < 256 else { return flushIndex() }
        let folder = core.folder.objectsFolder(of: UInt8(byte))
        var (byte, files) = (byte, files)
        if files.isEmpty { files = ((try? listFolder(folder)) ?? [])[...] }
        for entry in files.prefix(Self.step) {
            guard let key = ObjectKey(hex: folder.suffix(2) + entry.name) else { continue }
            let row = core.find(key)?.row(lastUsed: nil)
            core.table.withName(of: key) {
                if let row, core.channel.pendingRow(of: key) == nil {
                    core.channel.noteRow(.put(row), of: key)
                }
            }
        }
        files = files.dropFirst(Self.step)
        if files.isEmpty { byte += 1 }
        flushIndex()
        loop.schedule(after: .zero) { [unowned self] loop in refill(from: byte, files, on: loop) }
    }
}

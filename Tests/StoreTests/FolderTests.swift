import Glibc
import Posix
import Reactor
@testable import Store
import Synchronization
import Testing

/// Which folders a store accepts, and how it handles their index.
@Suite struct FolderTests {
    @Test func `a second store in one folder is rejected`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        let holder = FolderHolder(kind: .daemon, processID: Int(getpid()))
        #expect(throws: StoreError.inUse(folder: folder.path, by: holder)) {
            // A daemon keeps the folder: nothing is waited for.
            try openStore(folder.path) { $0.lockWait = .seconds(600 as Int64) }
        }
        store.close()
        try openStore(folder.path).close()
    }

    @Test func `a store waits for a command that has its folder`() throws {
        let folder = try TemporaryFolder()
        let command = try openStore(folder.path) { $0.holder = .command }
        let holder = FolderHolder(kind: .command, processID: Int(getpid()))
        #expect(throws: StoreError.inUse(folder: folder.path, by: holder)) {
            try openStore(folder.path)
        }
        let path = folder.path
        let isOpen = Mutex(false)
        let isWaiting = try ThreadSemaphore()
        let opener = try PosixThread(name: "opener") {
            isWaiting.signal()
            let store = try? openStore(path) { $0.lockWait = .seconds(60 as Int64) }
            isOpen.withLock { $0 = store != nil }
            store?.close()
        }
        #expect(isWaiting.wait(atMost: .seconds(20 as Int64)))
        command.close()
        opener.join()
        #expect(isOpen.withLock { $0 })
    }

    @Test func `nothing is written into another store that is put in place of the folder`() throws {
        let all = try TemporaryFolder()
        let (path, aside, other) = (all.path + "/a", all.path + "/b", all.path + "/c")
        let former = try openStore(other)
        try former.add("x", total: 10)
        former.close()
        let store = try openStore(path)
        defer { store.close() }
        try store.add("y", total: 10)
        #expect(rename(path, aside) == 0 && rename(other, path) == 0)
        // The folder is looked for about every second while there is work.
        let start = Monotonic.now()
        func isStoring() throws -> Bool {
            let object = try store.create(describe("z", total: 10))
            try store.publish(object)
            return object.isStorable
        }
        try eventually { try !isStoring() }
        #expect(Monotonic.now() - start < .seconds(10 as Int64))
        #expect(rename(path, other) == 0 && rename(aside, path) == 0)
        try eventually { try isStoring() }
        #expect(store.find("y") != nil)
    }

    @Test func `a new folder is not used before index and state are in it`() throws {
        let all = try TemporaryFolder()
        let (path, aside) = (all.path + "/a", all.path + "/b")
        let store = try openStore(path)
        try store.pin(title: 9, url: "u", keys: [])
        try store.flushed()
        let worker = try #require(store.core.channel.worker)
        // On the store's thread, which looks for the folder between any two steps of another one.
        worker.enqueue { worker, loop in
            _ = rename(path, aside)
            // The index cannot be created there.
            try? makeFolder(path + "/index.sqlite")
            worker.lookForFolder(loop)
            rmdir(path + "/index.sqlite")
        }
        try eventually { store.core.folder.isLost }
        try eventually { !store.core.folder.isLost }
        try store.add("a", total: 10)
        store.close()

        let again = try openStore(path)
        defer { again.close() }
        #expect(again.pins().map(\.title) == [9])
        #expect(again.find("a")?.isComplete == true)
    }

    @Test func `a newer format is rejected and not changed`() throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/format", Array("SLUICE STORE 4\n".utf8))
        #expect(throws: StoreError.newerFormat(folder: folder.path, found: 4, supported: 3)) {
            try openStore(folder.path)
        }
        #expect(try listFolder(folder.path).map(\.name) == ["format"])
    }

    @Test func `a folder with foreign files is rejected and not changed`() throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/letters.txt", [1])
        #expect(throws: StoreError.foreignFolder(folder: folder.path, holds: "letters.txt")) {
            try openStore(folder.path)
        }
        #expect(try listFolder(folder.path).map(\.name) == ["letters.txt"])
    }

    @Test(arguments: ["index.sqlite-journal", "index.sqlite-wal", "format.new"])
    func `remains of an interrupted first start are recognized as a store`(name: String) throws {
        let folder = try TemporaryFolder()
        try writeFile("\(folder.path)/\(name)", Array(repeating: 7, count: 600))
        let store = try openStore(folder.path)
        defer { store.close() }
        try store.add("a", total: 10)
        #expect(store.statistics().objects == 1)
    }

    @Test func `the mark that a stop left in a deleted folder does not keep a store from it`()
        throws
    {
        let folder = try TemporaryFolder()
        let mark = folder.path + "/clean"
        try writeFile(mark, Array("rooms\n".utf8))
        #expect(throws: StoreError.foreignFolder(folder: folder.path, holds: "clean")) {
            try openStore(folder.path)
        }
        try writeFile(mark, Array("SLUICE CLEAN 5\n".utf8))
        let store = try openStore(folder.path)
        #expect(store.core.folder.isNew && store.core.folder.epoch != 5)
        try store.add("a", total: 10)
        store.close()
        let again = try openStore(folder.path)
        defer { again.close() }
        #expect(again.find("a")?.isComplete == true)
    }

    @Test func `a folder that cannot be created gives a typed error`() throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/file", [])
        let path = folder.path + "/file/store"
        let error = #expect(throws: StoreError.self) { try openStore(path) }
        guard case .unusable(path, let cause) = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(cause.code == ENOTDIR)
    }

    @Test func `a store is created with its parents, accessible to its owner only`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/deep/store"
        let store = try openStore(path)
        try store.add("a", total: 10)
        store.close()
        func mode(_ path: String) -> UInt32 {
            var found = stat()
            stat(path, &found)
            return found.st_mode & 0o777
        }
        #expect(mode(path) == 0o700)
        #expect(mode(path + "/objects") == 0o700)
        #expect(mode(path + "/index.sqlite") == 0o600)
        #expect(mode(objectPath(path, "a")) == 0o600)
    }

    @Test(arguments: [true, false])
    func `a damaged or missing index is rebuilt from the objects`(isDamaged: Bool) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        for name in 0..<20 { try first.add("\(name)", total: 10_000) }
        try first.add("partial", total: 10_000, filled: 0..<5_000)
        try first.flushed()
        let before = first.statistics()
        first.close()
        if isDamaged {
            try writeFile(folder.path + "/index.sqlite", [UInt8](repeating: 0x55, count: 20_000))
        } else {
            unlink(folder.path + "/index.sqlite")
        }

        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.find("3")?.isComplete == true)
        try eventually { store.statistics().isReconciled }
        let after = store.statistics()
        #expect(after.adoptedObjects == 21)
        #expect(after.objects == 21)
        #expect(after.bytes == before.bytes)
        try store.flushed()
        #expect(store.entries(limit: 100).count == 21)
        let aside = try listFolder(folder.path).filter { $0.name.hasPrefix("index.damaged-") }
        #expect(aside.isEmpty != isDamaged)
    }

    @Test(arguments: [true, false])
    func `a lost index is known to later runs until it is known what was lost`(
        isDamaged: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10)
        #expect(!first.core.folder.mayHaveLosses)
        first.close()
        if isDamaged {
            try writeFile(folder.path + "/index.sqlite", [UInt8](repeating: 0x55, count: 20_000))
        } else {
            unlink(folder.path + "/index.sqlite")
        }
        for _ in 0..<2 {
            let store = try openStore(folder.path)
            #expect(store.core.folder.mayHaveLosses)
            store.close()
        }
        let last = try openStore(folder.path)
        try last.forgetLosses(noted: last.notedLosses)
        last.close()
        let store = try openStore(folder.path)
        #expect(!store.core.folder.mayHaveLosses)
        store.close()
    }

    @Test func `a loss during the look for others is known to the next run`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        store.core.noteLoss()
        let noted = store.notedLosses
        store.core.noteLoss()
        try store.forgetLosses(noted: noted)
        #expect(store.core.folder.mayHaveLosses)
        try store.forgetLosses(noted: store.notedLosses)
        #expect(!store.core.folder.mayHaveLosses)
    }

    @Test func `an index that a run has rebuilt is known as lost to the next run`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10)
        #expect(!first.core.folder.mayHaveLosses)
        first.core.noteDamage("a test")
        try eventually { first.statistics().start.isIndexRebuilt }
        try eventually { first.statistics().isReconciled }
        first.close()
        let next = try openStore(folder.path)
        defer { next.close() }
        #expect(next.core.folder.mayHaveLosses)
    }

    @Test func `a row without its file is removed`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10_000)
        try first.add("b", total: 10_000)
        first.close()
        unlink(objectPath(folder.path, "a"))

        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        #expect(store.statistics().droppedRows == 1)
        #expect(store.statistics().objects == 1)
        #expect(store.statistics().bytes == 4096 + 12_288)
    }

    @Test(arguments: [false, true])
    func `files that a start finds missing or damaged are told as losses until all is known`(
        isDamaged: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10_000)
        first.close()
        if isDamaged {
            // Headers are read after an unclean stop.
            unlink(folder.path + "/clean")
            truncate(objectPath(folder.path, "a"), 100)
        } else {
            unlink(objectPath(folder.path, "a"))
        }
        for _ in 0..<2 {
            let store = try openStore(folder.path)
            defer { store.close() }
            let told = try ThreadSemaphore()
            store.followLosses { told.signal() }
            #expect(told.wait(atMost: .seconds(20 as Int64)))
            #expect(store.statistics().isReconciled)
        }
        let last = try openStore(folder.path)
        try last.forgetLosses(noted: last.notedLosses)
        last.close()
        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        #expect(!store.core.folder.mayHaveLosses)
    }

    @Test(arguments: [false, true])
    func `an object that is found damaged after the start is told as a loss, also to the next run`(
        isVerified: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10_000)
        first.close()
        let path = objectPath(folder.path, "a")
        if isVerified {
            var bytes = try readFile(path)
            bytes[bytes.count - 1] ^= 0x40
            try writeFile(path, bytes)
        } else {
            truncate(path, 9_000)
        }
        try expectLoss(of: path, in: folder, isVerified: isVerified)
    }

    /// Opens a store again, and has the damage of its only object found by a check or a look-up.
    @discardableResult
    private func expectLoss(
        of path: String, in folder: TemporaryFolder, isVerified: Bool
    ) throws -> StoreStatistics {
        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        #expect(!store.core.folder.mayHaveLosses)
        let told = try ThreadSemaphore()
        store.followLosses { told.signal() }
        if isVerified {
            #expect(store.verify({ _ in }).deletedObjects == 1)
        } else {
            #expect(store.find("a") == nil)
        }
        #expect(!exists(path))
        #expect(store.core.folder.mayHaveLosses)
        #expect(told.wait(atMost: .seconds(20 as Int64)))
        return store.statistics()
    }

    @Test(arguments: [false, true])
    func `a small object without a sound byte is removed and told as a loss`(
        isVerified: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 9_000)
        first.close()
        unlink(folder.path + "/clean")
        let path = objectPath(folder.path, "a")
        var bytes = try readFile(path)
        bytes[4_096 + 8_000] ^= 1
        try writeFile(path, bytes)

        let found = try expectLoss(of: path, in: folder, isVerified: isVerified)
        #expect(found.objects == 0 && found.damagedObjects == 1)
    }

    @Test func `a file that is not an object is deleted`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10)
        first.close()
        let path = objectPath(folder.path, "stray")
        try makeFolder(String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.endIndex)))
        try writeFile(path, [UInt8](repeating: 3, count: 5000))

        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        #expect(!exists(path))
        #expect(store.statistics().objects == 1)
    }

    @Test func `what a long purge selects is not found before it is over, and is gone`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        for name in ["one/a", "one/b", "two/a"] { try first.add(name, total: 10) }
        try first.flushed()
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        store.hide { $0.url.contains("/one/") }
        #expect(store.find("one/a") == nil)
        #expect(store.find("two/a")?.isComplete == true)
        #expect(!exists(objectPath(folder.path, "one/a")))
        try eventually { store.statistics().objects == 2 }
        // What nobody asked for in the meantime is left to the purge.
        store.hide(nil)
        #expect(store.find("one/b")?.isComplete == true)
        #expect(store.find("one/a") == nil)
    }

    @Test func `what a long purge selects is not found open, unless it is in use`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let used = try store.add("one/a", total: 10)
        for name in ["one/b", "two/a"] { try store.add(name, total: 10) }
        try store.flushed()
        // The store thread may hold what it has just committed.
        try eventually {
            store.hide { $0.url.contains("/one/") }
            return store.find("one/b") == nil
        }
        #expect(store.find("one/a") === used)
        #expect(store.find("two/a")?.isComplete == true)
    }

    @Test func `what a long purge selects is compared with any number of objects`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        store.hide { _ in false }
        let header = ObjectHeader(
            pages: 1, generation: 1, description: describe("two/a", total: 100))
        // A comparison that left anything behind would fill the stack of its thread.
        let isHidden = (0..<40_000).contains { _ in store.core.isHidden(header) }
        #expect(!isHidden)
    }

    @Test func `a purge by age knows the uses that the index does not have yet`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let old = WallTime(seconds: 1_000)
        let header = ObjectHeader(
            pages: 1, generation: 1, description: describe("a", total: 100, created: old))
        let isUnused: @Sendable (StoreEntry) -> Bool = { $0.lastUsed < WallTime(seconds: 2_000) }
        store.hide(isUnused)
        #expect(store.core.isHidden(header))
        // The store thread is not told, and collects no uses meanwhile.
        let key = ObjectKey(sha256Of: "a")
        store.core.table.withShard(of: key) { $0.note(Use(time: .now(), bytes: 1), of: key) }
        #expect(!store.core.isHidden(header))
    }

    @Test func `purging by URL removes matching objects`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for name in ["one/a", "one/b", "two/a"] { try store.add(name, total: 10) }
        _ = try store.purge(where: { $0.url.contains("/one/") }, goesOn: { _ in true })
        try eventually { store.statistics().objects == 1 }
        #expect(store.find("one/a") == nil)
        #expect(store.find("two/a") != nil)
        #expect(!exists(objectPath(folder.path, "one/b")))
        _ = try store.purge(where: { _ in true }, goesOn: { _ in true })
        try eventually { store.statistics().objects == 0 }
        try eventually { store.statistics().bytes == 0 }
    }

    @Test func `a purge of titles and keys looks at no other objects`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for (name, title) in [("a", 1), ("b", 2), ("c", 3), ("d", 3)] as [(String, UInt64)] {
            var description = describe(name, total: 10)
            description.title = title
            let object = try store.create(description)
            try store.publish(object)
            try fill(object, 0..<10)
            store.finish(object)
        }
        try store.flushed()
        var seen: [ObjectKey] = []
        let removal = try store.purge(
            keys: [ObjectKey(sha256Of: "c"), ObjectKey(sha256Of: "absent")], titles: [1],
            readsAll: false,
            where: { entry in
                seen.append(entry.key)
                return true
            }, goesOn: { _ in true })
        #expect(removal.objects == 2)
        #expect(Set(seen) == Set(["a", "c"].map { ObjectKey(sha256Of: $0) }))
        #expect(store.find("a") == nil && store.find("c") == nil)
        #expect(store.find("b") != nil && store.find("d") != nil)
    }

    @Test(arguments: [1, 2, 1_000])
    func `the removal of a title looks at its objects and those that are named, and no others`(
        step: Int
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for title in 5...6 as ClosedRange<UInt64> {
            for number in 0..<4 {
                var description = describe("\(title)/\(number)", total: 10)
                description.title = title
                let object = try store.create(description)
                try store.publish(object)
                try fill(object, 0..<10)
                store.finish(object)
            }
        }
        let keys = ["6/0", "6/1", "none"].map { ObjectKey(sha256Of: $0) }
        let looked = Mutex<[String]>([])
        let removed = Mutex<Removal?>(nil)
        store.removeAll(
            ofTitle: 5, and: keys, step: step,
            where: { entry in
                let name = String(entry.url.suffix(3))
                looked.withLock { $0.append(name) }
                return name != "6/1" && name != "5/3"
            }, { removal in removed.withLock { $0 = removal } })
        try eventually { removed.withLock { $0 } != nil }
        #expect(removed.withLock { $0?.objects } == 4)
        #expect(
            looked.withLock { $0.sorted() } == ["5/0", "5/1", "5/2", "5/3", "6/0", "6/1"])
        #expect(store.find("5/3") != nil && store.find("6/1") != nil && store.find("6/2") != nil)
        #expect(store.find("5/0") == nil && store.find("6/0") == nil)
    }
}

import Glibc
import Posix
import Reactor
import Synchronization
import Testing

@testable import Store

/// Failing disks and removed folders damage nothing, and bodies continue.
@Suite struct FaultTests {
    @Test func `a folder that was moved away stores nothing until it is back`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/store"
        let store = try openStore(path)
        defer { store.close() }
        try store.add("a", total: 10_000)
        try store.flushed()
        let held = try #require(store.find("a"))
        rename(path, folder.path + "/elsewhere")
        let streamed = try store.create(describe("b", total: 5000))
        #expect(!streamed.isStorable)
        try fill(streamed, 0..<5000)
        #expect(try read(streamed, 0..<5000) == body(0..<5000))
        #expect(try read(held, 0..<10_000) == body(0..<10_000))

        rename(folder.path + "/elsewhere", path)
        try eventually { try store.create(describe("c", total: 10)).isStorable }
        try store.add("c", total: 10)
        #expect(store.find("c")?.isComplete == true)
    }

    @Test func `an empty folder in place of a removed one is used`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/store"
        let store = try openStore(path)
        try store.add("a", total: 10_000)
        try store.pin(title: 9, url: "u", keys: [])
        try store.flushed()
        rename(path, folder.path + "/elsewhere")
        try makeFolder(path)
        try eventually { try store.create(describe("b", total: 10)).isStorable }
        #expect(store.find("a") == nil)
        #expect(store.statistics().objects == 0)
        try store.add("b", total: 10_000)
        store.close()

        let again = try openStore(path)
        defer { again.close() }
        #expect(again.find("b")?.isComplete == true)
        #expect(again.pins().map(\.title) == [9])
        #expect(throws: Never.self) { try openStore(folder.path + "/elsewhere").close() }
    }

    @Test func `damage that was read is found although it is replaced meanwhile`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.add("a", total: 5_000)
        try store.flushed()
        object.sumUp()
        let before = object.state.withLock { $0.extents.extents }
        #expect(before.allSatisfy { $0.sum != nil } && !before.isEmpty)
        var bytes = body(0..<5_000)
        try object.compare(bytes, with: before)
        bytes[9] ^= 1
        // Another reader found it, and what was fetched in its place has no checksum yet.
        object.state.withLock { state in
            for extent in before { state.drop(extent) }
            state.insert(0..<5_000, sums: [])
        }
        #expect(throws: SystemError.self) { try object.compare(bytes, with: before) }
        // That is sound.
        #expect(try readBody(of: object, count: 5_000) == body(0..<5_000))
    }

    @Test func `the removal of an object spares the one that has taken its place`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let former = try store.add("a", total: 100)
        let new = try store.add("a", total: 200)
        store.remove(former)
        #expect(store.find("a") === new && !new.isRemoved)
        store.remove(new)
        #expect(store.find("a") == nil && new.isRemoved)
        #expect(!exists(objectPath(folder.path, "a")))
    }

    @Test func `a removed object whose file the disk does not delete is not found again`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.deletionInterval = .milliseconds(20) }
        defer { store.close() }
        for name in ["a", "b"] {
            try store.add(name, total: 10_000)
            try store.flushed()
            // unlink(2) refuses a folder.
            let path = objectPath(folder.path, name)
            rename(path, folder.path + "/elsewhere")
            try makeFolder(path)
            store.remove(ObjectKey(sha256Of: name))
            rmdir(path)
            if name == "b" { try store.add("b", total: 20) }
            if name == "a" {
                rename(folder.path + "/elsewhere", path)
                #expect(store.find("a") == nil)
                try eventually { !exists(path) }
                try store.add("a", total: 30)
            }
        }
        #expect(store.find("a")?.isComplete == true)
        #expect(store.find("b")?.isComplete == true)
        #expect(exists(objectPath(folder.path, "b")))
    }

    @Test(arguments: [false, true])
    func `what an unfinished purge selects is not found again if the disk does not delete it`(
        hasRow: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let place = folder.path + "/store"
        let (path, elsewhere) = (objectPath(place, "a"), folder.path + "/elsewhere")
        let first = try openStore(place)
        try first.add("a", total: 10_000)
        first.close()
        if !hasRow {
            rename(path, elsewhere)
            let second = try openStore(place)
            try eventually { second.statistics().isReconciled }
            second.close()
        }
        let store = try openStore(place) { $0.deletionInterval = .milliseconds(20) }
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        if !hasRow { rename(elsewhere, path) }
        // unlink(2) refuses a folder, which takes the place of the file once that is open.
        store.hide { _ in
            rename(path, elsewhere)
            mkdir(path, 0o700)
            return true
        }
        #expect(store.find("a") == nil)
        store.hide(nil)
        #expect(store.hasUndeleted)
        #expect(store.statistics().bytes == 0 && store.statistics().objects == 0)
        try exchangeFiles(elsewhere, path)
        #expect(store.find("a") == nil)
        try eventually { !exists(path) }
        try eventually { !store.hasUndeleted }
    }

    @Test func `a file that cannot be deleted does not keep others from it`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.deletionInterval = .milliseconds(20) }
        defer { store.close() }
        let names = (0..<8).map { "\($0)" }
        let paths = names.map { objectPath(folder.path, $0) }
        for (name, path) in zip(names, paths) {
            try store.add(name, total: 100)
            try store.flushed()
            unlink(path)
            try makeFolder(path)
            store.remove(ObjectKey(sha256Of: name))
        }
        // All but the last become files again, each at once: a name that is gone counts as deleted.
        for (name, path) in zip(names, paths).dropLast() {
            let file = "\(folder.path)/\(name)"
            try writeFile(file, [1])
            try exchangeFiles(file, path)
        }
        try eventually { !paths.dropLast().contains { exists($0) } }
        #expect(exists(paths[7]))
    }

    /// The disk fails while a stored body is played.
    @Test(arguments: [false, true])
    func `a body that a disk could neither read nor delete is found again once the disk is back`(
        isPurged: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.deletionInterval = .milliseconds(20) }
        defer { store.close() }
        let played = try store.add("a", total: 3 << 20)
        try store.flushed()
        let stored = store.statistics()
        // unlink(2) refuses a folder.
        let path = objectPath(folder.path, "a")
        rename(path, folder.path + "/elsewhere")
        try makeFolder(path)
        for _ in 0..<2 { played.noteUnreadable(at: 0, SystemError("pread", code: EIO)) }
        #expect(store.find("a") == nil)
        if isPurged { store.remove(played.key) }
        try exchangeFiles(folder.path + "/elsewhere", path)
        if isPurged {
            try eventually { !exists(path) }
            #expect(store.find("a") == nil)
            try eventually { store.statistics().bytes == 0 && store.statistics().objects == 0 }
        } else {
            try eventually { store.find("a") != nil }
            let found = try #require(store.find("a"))
            #expect(found !== played && found.isComplete)
            #expect(try read(found, 0..<3 << 20) == body(0..<3 << 20))
            let now = store.statistics()
            #expect(now.bytes == stored.bytes && now.objects == stored.objects)
        }
    }

    /// What happens to an object whose file cannot be opened.
    enum Ending: CaseIterable {
        case purge, replacement
    }

    @Test(arguments: Ending.allCases)
    func `a body that a disk could neither read nor delete needs no row to be removed`(
        ending: Ending
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) {
            $0.deletionInterval = .milliseconds(20)
            // The index gets no row meanwhile.
            $0.indexInterval = .seconds(1_000 as Int64)
        }
        defer { store.close() }
        // The comparison after a start writes rows.
        try eventually { store.statistics().isReconciled }
        let played = try store.add("a", total: 3 << 20)
        let path = objectPath(folder.path, "a")
        rename(path, folder.path + "/elsewhere")
        try makeFolder(path)
        for _ in 0..<2 { played.noteUnreadable(at: 0, SystemError("pread", code: EIO)) }
        #expect(store.find("a") == nil)
        switch ending {
        case .purge:
            store.remove(played.key)
            try exchangeFiles(folder.path + "/elsewhere", path)
            try eventually { !exists(path) }
            #expect(store.find("a") == nil)
            #expect(store.statistics().bytes == 0 && store.statistics().objects == 0)
        case .replacement:
            // rename(2) replaces no folder, and open(2) refuses a link to itself.
            rmdir(path)
            symlink(path, path)
            try store.add("a", total: 12_288)
            try store.flushed()
            #expect(store.statistics().bytes == 16_384 && store.statistics().objects == 1)
        }
    }

    @Test func `bytes that a disk could neither read nor delete are compared before they are used`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.deletionInterval = .milliseconds(20) }
        defer { store.close() }
        let played = try store.add("a", total: 3 << 20)
        try store.flushed()
        let path = objectPath(folder.path, "a")
        rename(path, folder.path + "/elsewhere")
        try makeFolder(path)
        for _ in 0..<2 { played.noteUnreadable(at: 0, SystemError("pread", code: EIO)) }
        #expect(store.find("a") == nil)
        do {
            let file = try openFile(folder.path + "/elsewhere", flags: O_RDWR)
            let spoiled: [UInt8] = [1, 2, 3]
            try write(spoiled, to: file.number, at: played.bodyOffset + 2 << 20)
        }
        try exchangeFiles(folder.path + "/elsewhere", path)
        try eventually { store.find("a") != nil }
        let found = try #require(store.find("a"))
        #expect(found.state(at: 0) == .present(count: 1 << 20))
        guard case .hole = found.state(at: 2 << 20) else {
            Issue.record("spoiled bytes are offered")
            return
        }
        store.close()
        // Bytes of other objects may be wrong, too.
        #expect(!exists(folder.path + "/clean"))
    }

    @Test(arguments: Ending.allCases)
    func `an object that cannot be opened gives its room back`(ending: Ending) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 12_288)
        first.close()
        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        let before = store.statistics()
        // open(2) refuses a link to itself.
        let path = objectPath(folder.path, "a")
        unlink(path)
        symlink(path, path)
        #expect(store.find("a") == nil)
        switch ending {
        case .purge:
            store.remove(ObjectKey(sha256Of: "a"))
            #expect(store.statistics().bytes == 0 && store.statistics().objects == 0)
            var link = stat()
            let isGone = lstat(path, &link) != 0
            #expect(isGone)
        case .replacement:
            try store.add("a", total: 12_288)
            try store.flushed()
            #expect(store.statistics().bytes == before.bytes)
            #expect(store.statistics().objects == before.objects)
            #expect(store.find("a")?.isComplete == true)
        }
    }

    @Test(arguments: [false, true])
    func `a stop is clean once bodies that were left are gone`(isCleared: Bool) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.deletionInterval = .milliseconds(20) }
        let played = try store.add("a", total: 3 << 20)
        try store.flushed()
        // unlink(2) refuses a folder.
        let path = objectPath(folder.path, "a")
        rename(path, folder.path + "/elsewhere")
        try makeFolder(path)
        for _ in 0..<2 { played.noteUnreadable(at: 0, SystemError("pread", code: EIO)) }
        #expect(store.find("a") == nil)
        try exchangeFiles(folder.path + "/elsewhere", path)
        try eventually { store.find("a") != nil }
        if isCleared {
            _ = try store.clear(sparingPinned: false)
        } else {
            store.remove(played.key)
        }
        store.close()
        #expect(exists(folder.path + "/clean"))
    }

    @Test(arguments: Ending.allCases)
    func `an object whose row is still to be deleted gives its room back once`(
        ending: Ending
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let key = try store.add("a", total: 12_288).key
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        // No mail is taken meanwhile.
        let (isHeld, goesOn) = (try ThreadSemaphore(), try ThreadSemaphore())
        defer { goesOn.signal() }
        let worker = try #require(store.core.channel.worker)
        worker.enqueue { _, _ in
            isHeld.signal()
            _ = goesOn.wait(atMost: .seconds(100 as Int64))
        }
        #expect(isHeld.wait(atMost: .seconds(100 as Int64)))
        store.remove(key)
        // open(2) refuses a link to itself.
        let path = objectPath(folder.path, "a")
        symlink(path, path)
        switch ending {
        case .purge:
            store.remove(key)
            #expect(store.statistics().bytes == 0 && store.statistics().objects == 0)
        case .replacement:
            try store.add("a", total: 12_288)
            #expect(store.statistics().objects == 1)
        }
    }

    @Test func `deleted subfolders are created again`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        rmdir(folder.path + "/new")
        for byte in 0..<256 {
            let digits = String(byte, radix: 16)
            rmdir(folder.path + "/objects/" + (digits.count == 1 ? "0" : "") + digits)
        }
        rmdir(folder.path + "/objects")
        try store.add("a", total: 10_000)
        try store.flushed()
        #expect(store.find("a")?.isComplete == true)
        #expect(exists(objectPath(folder.path, "a")))
    }

    @Test func `the index of a newer version is rejected and not changed`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.path).close()
        try addMigration("99", to: folder.path + "/index.sqlite")
        let before = try listFolder(folder.path).map(\.name).sorted()
        #expect(throws: StoreError.newerIndex(folder: folder.path)) { try openStore(folder.path) }
        #expect(try listFolder(folder.path).map(\.name).sorted() == before)
    }

    @Test func `the state database of a newer version is rejected and not changed`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.path).close()
        try addMigration("99", to: folder.path + "/state.sqlite")
        let before = try listFolder(folder.path).map(\.name).sorted()
        #expect(throws: StoreError.newerState(folder: folder.path)) { try openStore(folder.path) }
        #expect(try listFolder(folder.path).map(\.name).sorted() == before)
    }

    /// No byte exceeds what may be granted in advance, for any sequence of reservations.
    @Test func `a start that fails for want of descriptors leaves no thread behind`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            try openStore(path).close()
            // The descriptors of loops, of which each thread has some.
            let before = try openFiles(under: "anon_inode:").count
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            var limit = rlimit()
            #expect(getrlimit(resource, &limit) == 0)
            let usual = limit.rlim_cur
            let least = try listFolder("/proc/self/fd").count
            var isOpened = false
            for allowed in least..<least + 200 where !isOpened {
                limit.rlim_cur = UInt(allowed)
                #expect(setrlimit(resource, &limit) == 0)
                let store = try? openStore(path)
                limit.rlim_cur = usual
                #expect(setrlimit(resource, &limit) == 0)
                store?.close()
                isOpened = store != nil
                if !isOpened { #expect(try openFiles(under: "anon_inode:").count == before) }
            }
            #expect(isOpened)
        }
    }

    @Test func `the budget and its advance are respected at every moment`() throws {
        let folder = try TemporaryFolder()
        let budget: Int64 = 1 << 20
        let store = try openStore(folder.path, budget: budget)
        defer { store.close() }
        for name in 0..<40 {
            let object = try store.create(describe("\(name)", total: name % 2 == 0 ? nil : 90_000))
            try? store.publish(object)
            var writer = FillWriter(object, from: 0, to: nil)
            for _ in 0..<9 {
                let bytes = body(writer.offset..<writer.offset + 10_000)
                guard (try? bytes.withUnsafeBytes { try writer.append($0) }) != nil else { break }
                if object.isStorable { #expect(store.statistics().bytes <= 2 * budget + 90_112) }
            }
            writer.end(failure: nil)
            store.finish(object)
        }
        try eventually { store.statistics().bytes <= budget }
    }
}

/// Records a migration in an index, as a newer version would (sqlite3_exec).
private func addMigration(_ name: String, to path: String) throws {
    typealias Open =
        @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>) ->
        CInt
    typealias Execute =
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>, OpaquePointer?, OpaquePointer?, OpaquePointer?
        ) -> CInt
    typealias Close = @convention(c) (OpaquePointer?) -> CInt
    let library = try #require(dlopen("libsqlite3.so.0", RTLD_NOW))
    let open = unsafeBitCast(try #require(dlsym(library, "sqlite3_open")), to: Open.self)
    let execute = unsafeBitCast(try #require(dlsym(library, "sqlite3_exec")), to: Execute.self)
    let close = unsafeBitCast(try #require(dlsym(library, "sqlite3_close")), to: Close.self)
    var database: OpaquePointer?
    #expect(open(path, &database) == 0)
    #expect(execute(database, "INSERT INTO grdb_migrations VALUES ('\(name)')", nil, nil, nil) == 0)
    #expect(close(database) == 0)
}

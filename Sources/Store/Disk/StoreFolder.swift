// The folder of a store: its layout, its lock and its format version.
//
//     format                 "SLUICE STORE <version>"; written last, so its presence means a store
//     lock                   locked while a store uses the folder; says "daemon" or "command", and
//                            the process ID
//     clean                  "SLUICE CLEAN <epoch>"; exists only while no store uses the folder,
//                            and only if the last one closed with everything synced
//     index.sqlite           can be rebuilt: objects describe themselves
//     index.lost             empty; exists from the loss of the index until it is known what was
//                            lost with it
//     state.sqlite           what cannot be rebuilt: pins, sessions, downloads and so on
//     reserve                disk blocks for a start on a full disk
//     reserve-stop           disk blocks for a stop on a full disk
//     reserve-<number>       empty files, for a start or stop on a disk that can create none
//     running                empty; exists while a crash would count against recordings, feeds or
//                            downloads; a clean stop removes it
//     tls-sessions           TLS sessions with origins, if the daemon keeps them over restarts
//     new/<generation>       objects that are not published; emptied at every start
//     objects/<2 hex>/<62 hex>
import Glibc
import Numbers
import Posix
import Synchronization

/// The users of syncfs(2).
///
/// The kernel reports a failed write once to each open file. Each user has a file of its own, so
/// that none misses a failure that was reported to another.
enum SyncUser: CaseIterable {
    case commits, batches, clearing
}

/// A folder locked by this process.
final class StoreFolder: Sendable {
    /// The version that this program writes.
    ///
    /// Version 1 had headers without checksums; they can be read, and are rewritten as version 2.
    /// Version 2 kept state in rows of the index and in text files. An older program, which looks
    /// for state there, would evict pinned objects, so it must reject the folder.
    static let formatVersion = 3
    private static let formatPrefix = "SLUICE STORE "
    private static let cleanPrefix = "SLUICE CLEAN "

    let path: String
    /// The number shared by the runs of the store from one unclean stop to the next.
    ///
    /// Bytes claimed by headers of this epoch need not be compared with their checksums.
    let epoch: UInt64
    /// True if the last store closed with everything synced, or if the folder is new.
    let wasClean: Bool
    let isNew: Bool
    /// What opened the folder.
    private let kind: FolderHolder.Kind
    // Closing the descriptor releases the lock, also when the process is killed.
    private let lock: Mutex<SharedDescriptor?>
    private let syncFiles: Mutex<[SyncUser: SharedDescriptor]>
    private let lost = Atomic<Bool>(false)
    /// The folder itself, while the path leads to it.
    private let identity: Mutex<FileIdentity?>
    private let lossNotes = Atomic<Int>(0)
    /// True if a disk was mounted at the path when this folder was locked.
    private let wasMounted: Atomic<Bool>

    var newFolder: String { path + "/new" }
    /// Computed once: every lookup of an object that is not open makes a path of it.
    let objectsFolder: String
    var indexPath: String { path + "/index.sqlite" }
    private var cleanPath: String { path + "/clean" }

    func newPath(_ generation: UInt64) -> String {
        path + "/new/" + String(generation, radix: 16)
    }

    func objectsFolder(of byte: UInt8) -> String {
        "\(objectsFolder)/\(String(byte, radix: 16, width: 2))"
    }

    func objectPath(_ key: ObjectKey) -> String {
        let folder = objectsFolder.utf8
        let start = folder.count
        return String(unsafeUninitializedCapacity: start + 66) { buffer in
            let room = UnsafeMutableRawBufferPointer(
                rebasing: UnsafeMutableRawBufferPointer(buffer)[..<start])
            // One copy: every lookup of an object that is not open makes a path.
            if folder.withContiguousStorageIfAvailable({
                room.copyMemory(from: UnsafeRawBufferPointer($0))
            }) == nil {
                room.copyBytes(from: folder)
            }
            key.writeHex(into: UnsafeMutableBufferPointer(rebasing: buffer[(start + 2)...]))
            // The first two digits name the folder.
            buffer[start] = 0x2F
            buffer[start + 1] = buffer[start + 2]
            buffer[start + 2] = buffer[start + 3]
            buffer[start + 3] = 0x2F
            return start + 66
        }
    }

    // MARK: Opening

    /// Opens and locks a folder, creating it if necessary; blocks on the disk.
    ///
    /// Every check that can reject the folder comes before any change except to the lock's file.
    ///
    /// - Parameters:
    ///   - path: the folder.
    ///   - kind: what opens it, for others that find it in use.
    ///   - wait: how long to wait for a command that has it.
    /// - Throws: the reason why the folder cannot be used.
    init(
        _ path: String, as kind: FolderHolder.Kind = .daemon, waiting wait: Interval = .zero
    ) throws(StoreError) {
        self.path = path
        objectsFolder = path + "/objects"
        do throws(SystemError) {
            try makeFolder(path)
        } catch {
            throw .unusable(folder: path, error)
        }
        _ = try Self.inspect(path)
        identity = Mutex(FileIdentity(at: path))
        wasMounted = Atomic(Self.isMounted(path))
        self.kind = kind
        do throws(SystemError) {
            lock = Mutex(try Self.lock(path, as: kind, waiting: wait))
            syncFiles = Mutex(try Self.openSyncFiles(path))
        } catch {
            if error.code == EAGAIN { throw .inUse(folder: path, by: Self.holder(of: path)) }
            throw .unusable(folder: path, error)
        }
        // Once more: whoever had the lock may have changed the folder.
        isNew = try Self.inspect(path)
        do throws(SystemError) {
            // The mark of a folder that was deleted says nothing of a new one.
            let former = try isNew ? nil : Self.readEpoch(path + "/clean")
            wasClean = isNew || former != nil
            epoch = former ?? UInt64.random(in: 1...UInt64.max)
        } catch {
            throw .unusable(folder: path, error)
        }
    }

    private static func lock(
        _ path: String, as kind: FolderHolder.Kind, waiting wait: Interval = .zero
    ) throws(SystemError) -> SharedDescriptor {
        let file = try openFile(path + "/lock", flags: O_RDWR | O_CREAT)
        let deadline = Monotonic.now() + wait
        while try !lockExclusively(file.number) {
            // A daemon keeps it.
            guard holder(of: path)?.kind != .daemon, .now() < deadline else {
                throw SystemError("fcntl", code: EAGAIN)
            }
            usleep(20_000)
        }
        // For others only: a full disk, which cannot take it, is not a reason to fail.
        let number = file.number
        if ftruncate(number, 0) == 0 {
            let line = Array("\(kind.rawValue) \(getpid())\n".utf8)
            try? line.withUnsafeBytes { try writeAll($0, to: number, at: 0) }
        }
        return SharedDescriptor(file)
    }

    /// Returns the process that has the lock of a folder in use, as far as it could be written.
    private static func holder(of path: String) -> FolderHolder? {
        guard let bytes = try? readStart(path + "/lock", atMost: fewBytes) else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard words.count == 2, let kind = FolderHolder.Kind(rawValue: String(words[0])),
            let id = ExternalNumber.integer(words[1], in: 1...Int(Int32.max))
        else { return nil }
        return FolderHolder(kind: kind, processID: id)
    }

    private static func openSyncFiles(
        _ path: String
    ) throws(SystemError) -> [SyncUser: SharedDescriptor] {
        var files: [SyncUser: SharedDescriptor] = [:]
        for user in SyncUser.allCases {
            files[user] = SharedDescriptor(try openFile(path + "/lock", flags: O_RDONLY))
        }
        return files
    }

    /// A limit above the size of any one-line file.
    private static let fewBytes = 4_096

    private static func readEpoch(_ path: String) throws(SystemError) -> UInt64? {
        do throws(SystemError) {
            let text = String(decoding: try readStart(path, atMost: fewBytes), as: UTF8.self)
            guard text.hasPrefix(cleanPrefix), text.hasSuffix("\n") else { return nil }
            let digits = text.dropFirst(cleanPrefix.count).dropLast()
            return ExternalNumber.integer(digits, in: 0...UInt64.max, radix: 16)
        } catch {
            guard error.code == ENOENT else { throw error }
            return nil
        }
    }

    /// Inspects the folder without changing it: true for an empty folder, false for a known format.
    private static func inspect(_ path: String) throws(StoreError) -> Bool {
        let names: [String]
        let text: String?
        do throws(SystemError) {
            names = try listFolder(path).map(\.name)
            text =
                names.contains("format")
                ? String(
                    decoding: try readStart(path + "/format", atMost: fewBytes), as: UTF8.self)
                : nil
        } catch {
            throw .unusable(folder: path, error)
        }
        if let text {
            let digits = text.dropFirst(formatPrefix.count).prefix { $0 != "\n" }
            guard text.hasPrefix(formatPrefix),
                let version = ExternalNumber.integer(digits, in: 0...ExternalNumber.largest)
            else { throw .foreignFolder(folder: path, holds: "format") }
            guard version <= formatVersion else {
                throw .newerFormat(folder: path, found: version, supported: formatVersion)
            }
            return false
        }
        // Left by an interrupted first start, or part of a fresh file system.
        var harmless: Set = ["lock", "format.new", "lost+found", "objects", "new", "index.sqlite"]
        // Left by a stop while the folder was deleted; another file of that name is not ours.
        if (try? readEpoch(path + "/clean")) != nil { harmless.insert("clean") }
        let besideIndex = Set(indexSuffixes.map { "index.sqlite" + $0 })
        if let stranger = names.first(where: { !harmless.union(besideIndex).contains($0) }) {
            throw .foreignFolder(folder: path, holds: stranger)
        }
        return true
    }

    /// Inspects the folder as opening it would, without changing it or taking its lock.
    ///
    /// - Throws: the reason why a store could not be opened there.
    static func judge(_ path: String) throws(StoreError) {
        if try inspect(path) { return }
        let isInUse: Bool
        do throws(SystemError) {
            let lock = try openFile(path + "/lock", flags: O_RDWR)
            isInUse = try isLocked(lock.number)
            _ = try readEpoch(path + "/clean")
        } catch {
            // Without its lock's file, as in a copy, nothing uses it.
            guard error.code != ENOENT else { return }
            throw .unusable(folder: path, error)
        }
        if isInUse { throw .inUse(folder: path, by: holder(of: path)) }
    }

    /// Prepares the folder for changes, once every check has passed; blocks on the disk.
    ///
    /// - Returns: the number of unpublished files of earlier runs; they are deleted.
    func begin() throws(SystemError) -> Int {
        try furnish()
        // Durable before the first change; otherwise a power cut could leave a changed folder that
        // looks clean.
        try removeFile(cleanPath)
        // Left by a file replacement that was interrupted before its rename.
        for entry in try listFolder(path) where entry.name.hasSuffix(".new") {
            try removeFile("\(path)/\(entry.name)")
        }
        try syncFolder(path)
        let leftovers = try listFolder(newFolder)
        for entry in leftovers { try removeFile("\(newFolder)/\(entry.name)") }
        return leftovers.count
    }

    /// Creates the folders and the format file of a store, durably; blocks on the disk.
    func furnish() throws(SystemError) {
        try makeFolder(newFolder)
        for byte in UInt8.min...UInt8.max { try makeFolder(objectsFolder(of: byte)) }
        try syncFolder(objectsFolder)
        guard !hasThisFormat else { return }
        try replaceFile(path + "/format", with: Self.formatLine, in: path)
    }

    private static let formatLine = Array("\(formatPrefix)\(formatVersion)\n".utf8)

    /// True if the folder has the format that this program writes, and has had a state database: that
    /// is made before.
    var hasThisFormat: Bool {
        (try? readWhole(path + "/format", atMost: Self.fewBytes)) == Self.formatLine
    }

    /// Marks the folder as clean: everything is synced, and nothing may change afterwards.
    func markClean() throws(SystemError) {
        let text = Self.cleanPrefix + String(epoch, radix: 16) + "\n"
        try replaceFile(cleanPath, with: Array(text.utf8), in: path)
    }

    /// Releases the lock, so that another store can use the folder.
    func unlock() {
        lock.withLock { lock in
            if let file = lock { _ = ftruncate(file.number, 0) }
            lock = nil
        }
        syncFiles.withLock { $0 = [:] }
    }

    /// Lists a folder inside this one; none if someone deleted it by hand.
    func entries(of path: String) throws(SystemError) -> [FolderEntry] {
        do throws(SystemError) {
            return try listFolder(path)
        } catch {
            // The whole cache folder may be away for a while.
            guard error.code == ENOENT, isInPlace else { throw error }
        }
        // It may have come back in between.
        do throws(SystemError) {
            return try listFolder(path)
        } catch {
            guard error.code == ENOENT else { throw error }
            return []
        }
    }

    // MARK: Replaced folders

    /// True from the time the folder was found missing until it is back.
    var isLost: Bool {
        get { lost.load(ordering: .relaxed) }
        set { lost.store(newValue, ordering: .relaxed) }
    }

    /// True if the folder at this path is the locked one; asks the file system.
    var isInPlace: Bool {
        guard let there = FileIdentity(at: path + "/lock") else { return false }
        return lock.withLock { lock in
            lock.flatMap { FileIdentity(of: $0.number) } == there
        }
    }

    /// True if the folder at this path is empty or has leftovers of an interrupted first start, and
    /// is not what the loss of a disk has uncovered.
    var isRemade: Bool { !lacksDisk && (try? Self.inspect(path)) == true }

    /// True if the folder was that of a disk mounted at its path, and none is mounted there now.
    ///
    /// The empty folder below is on another disk, which is not meant for the cache: what is stored
    /// there is hidden once the disk is back.
    var lacksDisk: Bool { wasMounted.load(ordering: .relaxed) && !Self.isMounted(path) }

    /// True if a file system is mounted at a path.
    private static func isMounted(_ path: String) -> Bool {
        guard let folder = FileIdentity(at: path), let parent = FileIdentity(at: path + "/..")
        else { return false }
        return !folder.isOnDisk(of: parent)
    }

    /// True if the path leads to another folder that is not empty, of another store or mounted there.
    var isReplaced: Bool {
        guard let there = FileIdentity(at: path) else { return false }
        return there != identity.withLock { $0 } && !isRemade
    }

    /// Locks and prepares the folder that is now at this path, which must be empty; blocks on the
    /// disk.
    func takeAnew() throws(SystemError) {
        let taken = try Self.lock(path, as: kind)
        let files = try Self.openSyncFiles(path)
        try furnish()
        lock.withLock { $0 = taken }
        syncFiles.withLock { $0 = files }
        identity.withLock { $0 = FileIdentity(at: path) }
        wasMounted.store(Self.isMounted(path), ordering: .relaxed)
    }

    /// Waits until everything on the folder's file system is synced; blocks (syncfs(2)).
    func syncEverything(for user: SyncUser) throws(SystemError) {
        guard let file = syncFile(of: user) else { return }
        try syncFileSystem(of: file.number)
    }

    /// Returns the file by which a user syncs the file system; nil once the folder is unlocked.
    func syncFile(of user: SyncUser) -> SharedDescriptor? { syncFiles.withLock { $0[user] } }

    // MARK: Index

    /// The suffixes of SQLite's files next to a database: the write-ahead log, its index, and the
    /// rollback journal from before the log exists (the SQLite documentation, "Temporary Files Used
    /// By SQLite").
    private static let indexSuffixes = ["-wal", "-shm", "-journal"]

    /// Creates an empty index file if none exists, so that SQLite gives its files the same mode,
    /// 0600.
    ///
    /// - Returns: true if it was created.
    func makeIndexFile() throws(SystemError) -> Bool {
        guard access(indexPath, F_OK) != 0 else { return false }
        // SQLite would replay a log without its database into the new one.
        for suffix in Self.indexSuffixes { try removeFile(indexPath + suffix) }
        _ = try openFile(indexPath, flags: O_RDWR | O_CREAT)
        return true
    }

    private var lostIndexPath: String { path + "/index.lost" }

    /// True if the index is missing although the folder is not new.
    var lacksIndex: Bool { !isNew && access(indexPath, F_OK) != 0 }

    /// True from `noteLosses` until `forgetLosses`, also in later runs.
    var mayHaveLosses: Bool { access(lostIndexPath, F_OK) == 0 }

    /// Notes durably that objects may be lost, before the index no longer shows which.
    func noteLosses() throws(SystemError) {
        lossNotes.add(1, ordering: .sequentiallyConsistent)
        _ = try openFile(lostIndexPath, flags: O_RDWR | O_CREAT)
        try syncFolder(path)
    }

    /// Like `noteLosses`, but does not wait until the note is on the disk; without a note if the
    /// disk refuses it.
    ///
    /// - Returns: true if the folder is to be synced, since no losses were noted yet.
    func noteLossesUnsynced() -> Bool {
        // Before the look for the file: see `forgetLosses`.
        lossNotes.add(1, ordering: .sequentiallyConsistent)
        guard !mayHaveLosses else { return false }
        do throws(SystemError) {
            _ = try openFile(lostIndexPath, flags: O_RDWR | O_CREAT)
            return true
        } catch {
            return false
        }
    }

    /// Grows with each note.
    var notedLosses: Int { lossNotes.load(ordering: .sequentiallyConsistent) }

    /// Ends what `noteLosses` began, unless it was called again meanwhile; after a power cut it may
    /// not have ended.
    ///
    /// - Parameter noted: `notedLosses` before the look for what is lost.
    /// - Throws: `SystemError` when the note cannot be deleted, or made again.
    func forgetLosses(noted: Int) throws(SystemError) {
        guard notedLosses == noted else { return }
        try removeFile(lostIndexPath)
        // A loss that was counted in between may have found the file still there.
        if notedLosses != noted { try noteLosses() }
    }

    /// Renames the index together with SQLite's files next to it, and returns the new path.
    func setIndexAside(at time: WallTime) throws(SystemError) -> String {
        let aside = "\(path)/index.damaged-\(time.seconds)"
        for suffix in [""] + Self.indexSuffixes {
            do throws(SystemError) {
                try renameFile(indexPath + suffix, to: aside + suffix)
            } catch {
                guard error.code == ENOENT else { throw error }
            }
        }
        return aside
    }
}

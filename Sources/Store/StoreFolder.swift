// The folder of a store: its layout, its lock and its format version.
//
//     format                 "SLUICE STORE <version>"; written last, so its presence means a store
//     lock                   locked while a store has the folder
//     clean                  "SLUICE CLEAN <epoch>"; there only while no store has the folder, and
//                            only when the last one closed with everything synced
//     index.sqlite           can be lost: objects describe themselves
//     state.sqlite           what cannot be made again: pins, sessions, downloads and so on
//     tls-sessions           sessions with origins, where the daemon keeps them over restarts
//     new/<generation>       objects that are not published; emptied at every start
//     objects/<2 hex>/<62 hex>
import Glibc
import Numbers
import Posix
import Synchronization

/// A folder that this process has to itself.
final class StoreFolder: Sendable {
    /// The version that this program writes.
    ///
    /// Version 1 had headers without checksums; they are read, and written anew as version 2.
    /// Version 2 kept state in rows of the index and in text files. A program that looks for it there
    /// would evict what is pinned, so it has to refuse the folder.
    static let formatVersion = 3
    private static let formatPrefix = "SLUICE STORE "
    private static let cleanPrefix = "SLUICE CLEAN "

    let path: String
    /// The runs of the store from one unclean stop to the next have one number.
    ///
    /// What objects say in headers of this epoch need not be compared with their checksums.
    let epoch: UInt64
    /// True when the last store closed with everything synced, or there was none.
    let wasClean: Bool
    let isNew: Bool
    // The lock ends with the descriptor, also when the process is killed.
    private let lock: Mutex<SharedDescriptor?>
    private let lost = Atomic<Bool>(false)

    var newFolder: String { path + "/new" }
    /// Made once: every lookup of an object that is not open makes a path of it.
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
            // At once: every lookup of an object that is not open makes a path.
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

    // MARK: Taking it

    /// Takes a folder, making it if need be; blocks on the disk.
    ///
    /// Whatever speaks against it is found before anything in it is changed but the lock's file.
    init(_ path: String) throws(StoreError) {
        self.path = path
        objectsFolder = path + "/objects"
        do throws(SystemError) {
            try makeFolder(path)
        } catch {
            throw .unusable(folder: path, error)
        }
        isNew = try Self.inspect(path)
        do throws(SystemError) {
            lock = Mutex(try Self.lock(path))
            let former = try Self.readEpoch(path + "/clean")
            wasClean = isNew || former != nil
            epoch = former ?? UInt64.random(in: 1...UInt64.max)
        } catch {
            if error.code == EAGAIN { throw .inUse(folder: path) }
            throw .unusable(folder: path, error)
        }
    }

    private static func lock(_ path: String) throws(SystemError) -> SharedDescriptor {
        let file = try openFile(path + "/lock", flags: O_RDWR | O_CREAT)
        guard try lockExclusively(file.number) else { throw SystemError("fcntl", code: EAGAIN) }
        return SharedDescriptor(file)
    }

    /// More than the files of one line have.
    private static let fewBytes = 4_096

    private static func readEpoch(_ path: String) throws(SystemError) -> UInt64? {
        do throws(SystemError) {
            let text = String(decoding: try readStart(path, atMost: fewBytes), as: UTF8.self)
            guard text.hasPrefix(cleanPrefix), text.hasSuffix("\n") else { return nil }
            let digits = text.dropFirst(cleanPrefix.count).dropLast()
            return OutsideNumber.integer(digits, in: 0...UInt64.max, radix: 16)
        } catch {
            guard error.code == ENOENT else { throw error }
            return nil
        }
    }

    /// Looks without touching: true for an empty folder, false for a store of a known format.
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
                let version = OutsideNumber.integer(digits, in: 0...OutsideNumber.largest)
            else { throw .foreignFolder(folder: path, holds: "format") }
            guard version <= formatVersion else {
                throw .newerFormat(folder: path, found: version, supported: formatVersion)
            }
            return false
        }
        // What a first start that was cut short leaves, and what a fresh file system has.
        let harmless: Set = ["lock", "format.new", "lost+found", "objects", "new", "index.sqlite"]
        let besideIndex = Set(indexSuffixes.map { "index.sqlite" + $0 })
        if let stranger = names.first(where: { !harmless.union(besideIndex).contains($0) }) {
            throw .foreignFolder(folder: path, holds: stranger)
        }
        return true
    }

    /// Begins to change the folder, once nothing speaks against it; blocks on the disk.
    ///
    /// - Returns: the number of files that former runs left unpublished, and that are deleted.
    func begin() throws(SystemError) -> Int {
        try furnish()
        // Durable before the first change, or a cut would leave a changed folder that looks clean.
        try removeFile(cleanPath)
        // What a replacement of a file left that was cut short before its rename.
        for entry in try listFolder(path) where entry.name.hasSuffix(".new") {
            try removeFile("\(path)/\(entry.name)")
        }
        try syncFolder(path)
        let leftovers = try listFolder(newFolder)
        for entry in leftovers { try removeFile("\(newFolder)/\(entry.name)") }
        return leftovers.count
    }

    /// Makes what every store has, and makes it durable; blocks on the disk.
    func furnish() throws(SystemError) {
        try makeFolder(newFolder)
        for byte in UInt8.min...UInt8.max { try makeFolder(objectsFolder(of: byte)) }
        try syncFolder(objectsFolder)
        let text = "\(Self.formatPrefix)\(Self.formatVersion)\n"
        let known = try? readWhole(path + "/format", atMost: Self.fewBytes)
        guard known != Array(text.utf8) else { return }
        try replaceFile(path + "/format", with: Array(text.utf8), in: path)
    }

    /// Says that everything is on the disk; nothing in the folder may change afterwards.
    func markClean() throws(SystemError) {
        let text = Self.cleanPrefix + String(epoch, radix: 16) + "\n"
        try replaceFile(cleanPath, with: Array(text.utf8), in: path)
    }

    /// Lets another store have the folder.
    func unlock() {
        lock.withLock { $0 = nil }
    }

    // MARK: Moved away

    /// True from when the folder was found to be gone until it is back.
    var isLost: Bool {
        get { lost.load(ordering: .relaxed) }
        set { lost.store(newValue, ordering: .relaxed) }
    }

    /// True when the folder of this path is the one that was taken: asks the file system.
    var isInPlace: Bool {
        var there = stat()
        var ours = stat()
        guard stat(path + "/lock", &there) == 0 else { return false }
        return lock.withLock { lock in
            guard let lock, fstat(lock.number, &ours) == 0 else { return false }
            return there.st_dev == ours.st_dev && there.st_ino == ours.st_ino
        }
    }

    /// True when there is an empty folder at this path, or one that can be made into a store.
    var isRemade: Bool { (try? Self.inspect(path)) == true }

    /// Takes the folder that is at this path now, which has nothing in it; blocks on the disk.
    func takeAnew() throws(SystemError) {
        let taken = try Self.lock(path)
        try furnish()
        lock.withLock { $0 = taken }
    }

    /// Waits until everything on the folder's file system is on the disk; blocks (syncfs(2)).
    func syncEverything() throws(SystemError) {
        guard let file = lock.withLock({ $0 }) else { return }
        try syncFileSystem(of: file.number)
    }

    // MARK: Index

    /// What SQLite keeps beside a database: its log, the index of that, and the journal from before
    /// there is a log (the SQLite documentation, "Temporary Files Used By SQLite").
    private static let indexSuffixes = ["-wal", "-shm", "-journal"]

    /// Makes an empty index if there is none, so that SQLite gives its files this one's mode, 0600.
    ///
    /// - Returns: true when there was none.
    func makeIndexFile() throws(SystemError) -> Bool {
        guard access(indexPath, F_OK) != 0 else { return false }
        // A log without its database would be played back into the new one.
        for suffix in Self.indexSuffixes { try removeFile(indexPath + suffix) }
        _ = try openFile(indexPath, flags: O_RDWR | O_CREAT)
        return true
    }

    /// Moves the index aside, with what SQLite keeps next to it.
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

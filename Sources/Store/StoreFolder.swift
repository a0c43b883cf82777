/// The folder of a store: its layout, its lock and its format version.
///
///     format                 "SLUICE STORE <version>"; written last, so its presence means a store
///     lock                   locked while a store has the folder
///     index.sqlite           can be lost: objects describe themselves
///     pins                   titles that are never evicted
///     new/<generation>       objects that are not published; emptied at every start
///     objects/<2 hex>/<62 hex>
import Glibc
import Posix
import Synchronization

/// A folder that this process has to itself.
final class StoreFolder: Sendable {
    static let formatVersion = 1
    private static let formatPrefix = "SLUICE STORE "

    let path: String
    // The lock ends with the descriptor, also when the process is killed.
    private let lock: Mutex<SharedDescriptor?>

    var newFolder: String { path + "/new" }
    var objectsFolder: String { path + "/objects" }
    var indexPath: String { path + "/index.sqlite" }
    var pinsPath: String { path + "/pins" }

    func newPath(_ generation: UInt64) -> String {
        "\(newFolder)/\(String(generation, radix: 16))"
    }

    func objectPath(_ key: ObjectKey) -> String {
        let hex = key.hex
        return "\(objectsFolder)/\(hex.prefix(2))/\(hex.dropFirst(2))"
    }

    /// Takes a folder, making it if need be; blocks on the disk.
    ///
    /// Whatever speaks against it is found before anything in it is changed.
    init(_ path: String) throws(StoreError) {
        self.path = path
        do throws(SystemError) {
            try makeFolder(path)
        } catch {
            throw .unusable(folder: path, error)
        }
        let isNew = try Self.inspect(path)
        do throws(SystemError) {
            let file = try openFile(path + "/lock", flags: O_RDWR | O_CREAT)
            guard try lockExclusively(file.number) else { throw SystemError("fcntl", code: EAGAIN) }
            lock = Mutex(SharedDescriptor(file))
            if isNew { try Self.furnish(path) }
            for folder in ["/new", "/objects"] { try makeFolder(path + folder) }
            for entry in try listFolder(path + "/new") {
                try removeFile("\(path)/new/\(entry.name)")
            }
        } catch {
            if error.code == EAGAIN { throw .inUse(folder: path) }
            throw .unusable(folder: path, error)
        }
    }

    /// Looks without touching: true for an empty folder, false for a store of a known format.
    private static func inspect(_ path: String) throws(StoreError) -> Bool {
        let names: [String]
        let text: String?
        do throws(SystemError) {
            names = try listFolder(path).map(\.name)
            text = names.contains("format") ? String(decoding: try readWhole(path + "/format"), as: UTF8.self) : nil
        } catch {
            throw .unusable(folder: path, error)
        }
        if let text {
            guard text.hasPrefix(formatPrefix),
                let version = Int(text.dropFirst(formatPrefix.count).prefix { $0 != "\n" })
            else { throw .foreignFolder(folder: path) }
            guard version <= formatVersion else {
                throw .newerFormat(folder: path, found: version, supported: formatVersion)
            }
            return false
        }
        // What a first start that was cut short leaves, and what a fresh file system has.
        let harmless: Set = ["lock", "format.new", "lost+found"]
        guard names.allSatisfy(harmless.contains) else { throw .foreignFolder(folder: path) }
        return true
    }

    private static func furnish(_ path: String) throws(SystemError) {
        let text = Array("\(formatPrefix)\(formatVersion)\n".utf8)
        try replaceFile(path + "/format", with: text, in: path)
    }

    /// Lets another store have the folder.
    func unlock() {
        lock.withLock { $0 = nil }
    }

    /// Makes an empty index if there is none, so that SQLite gives its files this one's mode, 0600.
    func makeIndexFile() throws(SystemError) {
        guard access(indexPath, F_OK) != 0 else { return }
        // A log without its database would be played back into the new one.
        for suffix in ["-wal", "-shm"] { try removeFile(indexPath + suffix) }
        _ = try openFile(indexPath, flags: O_RDWR | O_CREAT)
    }

    /// Moves the index aside, with what SQLite keeps next to it.
    func setIndexAside(at time: WallTime) throws(SystemError) -> String {
        let aside = "\(path)/index.damaged-\(time.seconds)"
        for suffix in ["", "-wal", "-shm"] {
            do throws(SystemError) {
                try renameFile(indexPath + suffix, to: aside + suffix)
            } catch {
                guard error.code == ENOENT else { throw error }
            }
        }
        return aside
    }
}

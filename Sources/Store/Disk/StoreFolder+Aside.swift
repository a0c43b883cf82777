// Set-aside folders: objects that a clear removed from the store, deleted in the background.
//
//     gone-<number>-<objects>-<bytes>/<2 hex>/<62 hex>
//
// No lookup searches these folders. A clear creates such a folder, hard-links the objects to keep
// into it, and exchanges it with the objects folder. Before the exchange it holds those links,
// afterwards everything else and the original links. So whatever a kill leaves under such a name
// can be deleted.
import Glibc
import Numbers
import Posix

/// A set-aside folder, to be deleted.
struct ClearedFolder: Sendable {
    static let prefix = "gone-"

    let path: String
    /// The number of its objects, and their bytes that stay charged until they are deleted.
    var objects: Int
    var bytes: Int64

    /// Returns the path of the subfolder for keys that begin with this byte.
    func subfolder(of byte: UInt8) -> String { "\(path)/\(String(byte, radix: 16, width: 2))" }
}

extension ClearedFolder {
    /// Parses a name in the store's folder; nil if it is not a set-aside folder.
    init?(name: String, in folder: String) {
        guard name.hasPrefix(Self.prefix) else { return nil }
        // A suffix after the number of bytes comes from an exchange that was interrupted.
        let parts = name.dropFirst(Self.prefix.count).prefix { $0 != "." }.split(separator: "-")
        let numbers = parts.map {
            ExternalNumber.integer($0, in: 0...Int64(ExternalNumber.largest)) ?? 0
        }
        let isWhole = parts.count == 3
        self.init(
            path: "\(folder)/\(name)", objects: isWhole ? Int(numbers[1]) : 0,
            bytes: isWhole ? numbers[2] : 0)
    }
}

extension StoreFolder {
    /// The number of files that a set-aside folder takes on the file system: itself and its subfolders.
    static let filesOfAside: Int64 = 257

    /// Returns the folders that earlier clears set aside; blocks on the disk.
    func clearedFolders() -> [ClearedFolder] {
        let entries = (try? listFolder(path)) ?? []
        return entries.filter(\.isFolder).compactMap { ClearedFolder(name: $0.name, in: path) }
    }

    /// Creates a folder that can replace the objects folder; blocks on the disk.
    ///
    /// - Parameters:
    ///   - objects: the current number of objects.
    ///   - bytes: the bytes that they take.
    /// - Returns: the folder, with empty subfolders.
    /// - Throws: errors of the file system.
    func makeAside(objects: Int, bytes: Int64) throws(SystemError) -> ClearedFolder {
        let number = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        let made = ClearedFolder(
            path: "\(path)/\(ClearedFolder.prefix)\(number)-\(objects)-\(bytes)", objects: objects,
            bytes: bytes)
        let paths = (UInt8.min...UInt8.max).map(made.subfolder(of:))
        do throws(SystemError) {
            for path in paths { try makeFolder(path) }
        } catch {
            // A part of it would take the last files of a disk that has too few for all of it.
            for path in paths { rmdir(path) }
            rmdir(made.path)
            throw error
        }
        return made
    }

    /// Returns the path of an object in a set-aside folder.
    func path(of key: ObjectKey, in aside: ClearedFolder) -> String {
        aside.path + objectPath(key).dropFirst(objectsFolder.utf8.count)
    }
}

// Folders that were set aside: what a clear took out of the store, and is deleted in the background.
//
//     gone-<number>-<objects>-<bytes>/<2 hex>/<62 hex>
//
// Nothing looks for objects in there. Such a folder is made with second names of what a clear spares,
// and exchanged with the folder of objects; before that it holds those, afterwards everything else and
// the first names. So whatever a kill leaves under such a name can be deleted.
import Numbers
import Posix

/// A folder to delete.
struct AsideFolder: Sendable {
    static let prefix = "gone-"

    private static func number(_ text: some StringProtocol) -> Int64 {
        OutsideNumber.integer(text, in: 0...Int64(OutsideNumber.largest)) ?? 0
    }

    let path: String
    /// How many objects it had, and the bytes of theirs that count until they are deleted.
    let objects: Int
    let bytes: Int64

    init(path: String, objects: Int, bytes: Int64) {
        self.path = path
        self.objects = objects
        self.bytes = bytes
    }

    /// Reads a name in the store's folder; nil for one that was not set aside.
    init?(name: String, in folder: String) {
        guard name.hasPrefix(Self.prefix) else { return nil }
        // What stands behind the number of bytes comes from an exchange that was cut short.
        let parts = name.dropFirst(Self.prefix.count).prefix { $0 != "." }.split(separator: "-")
        path = "\(folder)/\(name)"
        objects = parts.count == 3 ? Int(Self.number(parts[1])) : 0
        bytes = parts.count == 3 ? Self.number(parts[2]) : 0
    }
}

extension StoreFolder {
    /// The folders that former clears set aside; blocks on the disk.
    func asideFolders() -> [AsideFolder] {
        let entries = (try? listFolder(path)) ?? []
        return entries.filter(\.isFolder).compactMap { AsideFolder(name: $0.name, in: path) }
    }

    /// Makes a folder that can take the place of the one of objects; blocks on the disk.
    ///
    /// - Parameters:
    ///   - objects: how many there are now.
    ///   - bytes: what they take.
    /// - Returns: the folder, with its parts and nothing in them.
    /// - Throws: what the disk says.
    func makeAside(objects: Int, bytes: Int64) throws(SystemError) -> AsideFolder {
        let number = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        let made = AsideFolder(
            path: "\(path)/\(AsideFolder.prefix)\(number)-\(objects)-\(bytes)", objects: objects,
            bytes: bytes)
        for byte in UInt8.min...UInt8.max {
            try makeFolder(made.path + objectsFolder(of: byte).dropFirst(objectsFolder.utf8.count))
        }
        return made
    }

    /// Where an object lies in a folder that was set aside.
    func path(of key: ObjectKey, in aside: AsideFolder) -> String {
        aside.path + objectPath(key).dropFirst(objectsFolder.utf8.count)
    }
}

package import Posix

/// Why a store cannot be opened.
///
/// `inUse`, `newerFormat` and `foreignFolder` are thrown before anything in the folder is changed,
/// except for the lock's file.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Another store, in this or another process, has the folder; the holder is nil if it has not
    /// said what it is.
    case inUse(folder: String, by: FolderHolder?)
    /// A newer program wrote the folder.
    case newerFormat(folder: String, found: Int, supported: Int)
    /// The folder holds other things than a store.
    case foreignFolder(folder: String, holds: String)
    /// The folder cannot be made, read or written; the daemon can run without storing.
    case unusable(folder: String, SystemError)
    /// SQLite cannot make an index there.
    case index(folder: String, reason: String)
    /// A newer program wrote the index.
    case newerIndex(folder: String)
    /// The state database cannot be opened.
    case state(folder: String, reason: String)
    /// A newer program wrote the state database.
    case newerState(folder: String)

    package var description: String {
        switch self {
        case .inUse(let folder, let holder):
            "the cache folder \(folder) is in use by another process"
                + (holder.map { ": \($0)" } ?? "")
        case .newerFormat(let folder, let found, let supported):
            "the store \(folder) has format \(found), of a newer program, and this one knows up to \(supported); use the newer one, or another folder"
        case .foreignFolder(let folder, let name):
            "\(folder) is no store and not empty, it holds '\(name)'; choose another folder"
        case .unusable(let folder, let error): "the store \(folder) cannot be used: \(error)"
        case .index(let folder, let reason): "the index of the store \(folder) fails: \(reason)"
        case .newerIndex(let folder):
            "a newer program wrote the index of the store \(folder); use that, or another folder"
        case .state(let folder, let reason):
            "the state database of the store \(folder) fails: \(reason)"
        case .newerState(let folder):
            "a newer program wrote the state database of the store \(folder); use that, or another folder"
        }
    }
}

/// The process that has the folder of a store.
package struct FolderHolder: Equatable, Sendable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        /// Has the folder for as long as it runs.
        case daemon
        /// Has the folder for one order, mostly for a moment.
        case command
    }

    package let kind: Kind
    package let processID: Int

    package var description: String { "a \(kind.rawValue), process ID \(processID)" }
}

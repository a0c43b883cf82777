import GRDB
import Glibc
import Logging
import Posix
import Testing

@testable import DurableState

/// A temporary folder, removed with its content.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/state-tests-XXXXXX".utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
    }

    deinit { Self.remove(path) }

    private static func remove(_ path: String) {
        for entry in (try? listFolder(path)) ?? [] {
            if entry.isFolder {
                remove("\(path)/\(entry.name)")
            } else {
                unlink("\(path)/\(entry.name)")
            }
        }
        rmdir(path)
    }

    var names: [String] { ((try? listFolder(path)) ?? []).map(\.name).sorted() }

    /// Opens the database with a logger that logs only critical messages.
    func open() throws(StateFault) -> StateDatabase {
        var log = Logger(label: "state-tests")
        log.logLevel = getenv("STATE_LOG") == nil ? .critical : .info
        return try StateDatabase(folder: path, log: log)
    }

    /// Changes the database without the checks of this target.
    func execute(_ sql: String) throws {
        let queue = try DatabaseQueue(path: path + "/state.sqlite")
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    /// Copies the folder as it is now, as a process killed now would leave it.
    func copy() throws -> TemporaryFolder {
        let copy = try TemporaryFolder()
        try Self.copy(path, to: copy.path)
        return copy
    }

    private static func copy(_ from: String, to path: String) throws {
        for entry in try listFolder(from) {
            let (source, target) = ("\(from)/\(entry.name)", "\(path)/\(entry.name)")
            if entry.isFolder {
                try makeFolder(target)
                try copy(source, to: target)
            } else {
                try writeFile(target, try readWhole(source, atMost: .max))
            }
        }
    }
}

func writeFile(_ path: String, _ bytes: [UInt8]) throws {
    let file = try openFile(path, flags: O_RDWR | O_CREAT | O_TRUNC)
    try write(bytes, to: file.number, at: 0)
}

func session(_ id: UInt64, _ fields: String = "Cookie: a=b\n") -> SessionRecord {
    SessionRecord(id: id, window: nil, recording: nil, fields: fields)
}

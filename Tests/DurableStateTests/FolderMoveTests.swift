import GRDB
import Glibc
import Posix
import Testing

@testable import DurableState

/// Damage that is found while a new cache folder takes the place of a missing one.
@Suite struct FolderMoveTests {
    /// Fills the state of a folder, damages its file on request, and removes all files.
    private func fillAndRemove(
        _ state: StateDatabase, in folder: TemporaryFolder, isDamaged: Bool
    ) throws {
        let text = String(repeating: "padding ", count: 30)
        for id in 0..<500 { state.put(session(UInt64(id), "A: \(id) \(text)\n")) }
        try state.commit()
        try state.queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        let path = folder.path + "/state.sqlite"
        if isDamaged {
            let size = try readWhole(path, atMost: .max).count
            let file = try openFile(path, flags: O_RDWR)
            for page in 1..<Int64(size / 4_096) where page % 2 == 0 {
                try write([UInt8](repeating: 0xEE, count: 4_096), to: file.number, at: page * 4_096)
            }
        }
        try state.queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA shrink_memory") }
        for name in folder.names { unlink(folder.path + "/" + name) }
    }

    @Test(arguments: [false, true])
    func `rows that a new folder lacks because of damage are noted for later runs`(
        isDamaged: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
        try fillAndRemove(state, in: folder, isDamaged: isDamaged)
        try state.moveIntoNewFolder()
        #expect((state.records(SessionRecord.self).count < 500) == isDamaged)
        #expect(state.mayLackRows == isDamaged)
        let next = try folder.copy()
        let found = try next.open()
        defer { found.close() }
        #expect(found.mayLackRows == isDamaged)
    }

    @Test func `damage is noted before any row is in the new folder, once for repeated moves`()
        throws
    {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
        try fillAndRemove(state, in: folder, isDamaged: true)
        func marks() -> [String] { folder.names.filter { $0.hasPrefix("state.damaged-") } }
        // No database can be created there.
        try makeFolder(folder.path + "/state.sqlite")
        #expect(throws: (any Error).self) { try state.moveIntoNewFolder() }
        let first = marks()
        #expect(first.count == 1)
        rmdir(folder.path + "/state.sqlite")
        // A mark of another second.
        for name in first {
            #expect(rename("\(folder.path)/\(name)", "\(folder.path)/state.damaged-1") == 0)
        }
        try state.moveIntoNewFolder()
        #expect(marks() == ["state.damaged-1"])
        try state.keep([session(1_000)])
        #expect(state.records(SessionRecord.self).contains { $0.id == 1_000 })
    }
}

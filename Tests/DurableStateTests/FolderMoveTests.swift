import GRDB
import Glibc
import Posix
import Testing

@testable import DurableState

/// Damage that is found while a new cache folder takes the place of a missing one.
@Suite struct FolderMoveTests {
    @Test(arguments: [false, true])
    func `rows that a new folder lacks because of damage are noted for later runs`(
        isDamaged: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
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
        try state.moveIntoNewFolder()
        #expect((state.records(SessionRecord.self).count < 500) == isDamaged)
        #expect(state.mayLackRows == isDamaged)
        let next = try folder.copy()
        let found = try next.open()
        defer { found.close() }
        #expect(found.mayLackRows == isDamaged)
    }
}

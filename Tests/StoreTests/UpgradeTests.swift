import DurableState
import Glibc
import Logging
import Posix
import Testing

@testable import Store

/// Migration of a folder of 0.4.0: `Fixtures/upgrade/0.4.0` was written by its binary, see
/// `UpgradeTests` of OperationStories.
@Suite struct UpgradeTests {
    private func former() throws -> TemporaryFolder {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let folder = try TemporaryFolder()
        try copyFolder("/\(root)/Fixtures/upgrade/0.4.0", to: folder.path)
        return folder
    }

    private func expectAll(in store: ObjectStore) {
        let state = store.state
        let sessions = state.records(SessionRecord.self)
        #expect(sessions.contains { $0.fields == "X-Viewer: me\n" && $0.recording == nil })
        #expect(sessions.contains { $0.recording != nil })
        let findings = state.records(KeyFindingRecord.self)
        #expect(findings.map(\.name) == ["sess"] && (findings.first?.pairs ?? 0) >= 4)
        #expect(findings.first?.paths.count == 3)
        #expect(state.records(LiveListRecord.self).count == 1)
        #expect(state.records(FeedRecord.self).map(\.name) == ["home"])
        #expect(store.pins().count == 3 && store.pins().allSatisfy { $0.url.hasPrefix("http://") })
        let downloads = state.records(DownloadRecord.self)
        #expect(downloads.map(\.state) == ["complete"])
        #expect(downloads.first?.order.headers == "X-Viewer:me\n")
        let recordings = state.records(RecordingRecord.self)
        #expect(recordings.map(\.name) == ["News"] && recordings.first?.lists.count == 1)
    }

    @Test func `everything stored by 0.4.0 is found, also after the next start`() throws {
        let folder = try former()
        for _ in 0..<2 {
            let store = try openStore(folder.path)
            expectAll(in: store)
            // The folder has no media.
            #expect(store.core.folder.mayHaveLosses)
            store.close()
            #expect(try !listFolder(folder.path).contains { $0.name == "pins" })
            #expect(try listFolder(folder.path + "/downloads").isEmpty)
            #expect(try readFile(folder.path + "/format") == Array("SLUICE STORE 3\n".utf8))
        }
    }

    /// The states of the disk after a kill: all former files with the new database, with and
    /// without its log, beside any part of the former places.
    @Test func `a kill at any point of the first start loses and duplicates nothing`() throws {
        let whole = try former()
        let moved = try former()
        let store = try openStore(moved.path)
        // Killed after everything was migrated, while the log was not yet in the database.
        let database = ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm"]
        let killed = try TemporaryFolder()
        try copyFolder(moved.path, to: killed.path, except: ["objects"])
        store.close()
        let places = ["index.sqlite", "pins", "downloads", "recordings"]
        for count in 0...places.count {
            let folder = try TemporaryFolder()
            try copyFolder(killed.path, to: folder.path, except: Set(places))
            for (index, name) in places.enumerated() {
                let from = index < count ? killed.path : whole.path
                guard access("\(from)/\(name)", F_OK) == 0 else { continue }
                if name == "pins" || name == "index.sqlite" {
                    try writeFile("\(folder.path)/\(name)", try readFile("\(from)/\(name)"))
                } else {
                    try copyFolder("\(from)/\(name)", to: "\(folder.path)/\(name)")
                }
            }
            for name in database {
                #expect(access("\(folder.path)/\(name)", F_OK) == 0, "\(name)")
            }
            let next = try openStore(folder.path)
            expectAll(in: next)
            next.close()
        }
        // Killed before the commit: the log, which would contain the transaction, does not exist.
        let before = try former()
        var log = Logger(label: "store-tests")
        log.logLevel = .critical
        try StateDatabase(folder: before.path, log: log).close()
        let last = try openStore(before.path)
        expectAll(in: last)
        last.close()
    }
}

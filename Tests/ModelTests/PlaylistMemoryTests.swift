import DurableState
import Logging
import Posix
import Routing
import Testing
import URISyntax

@testable import Model

/// The variables of a session with several multivariant playlists, before and after a restart.
@Suite struct PlaylistMemoryTests {
    private let session = SessionID(7)

    private func withDatabase(_ body: (StateDatabase) throws -> Void, in folder: String) throws {
        var log = Logger(label: "playlist-memory-tests")
        log.logLevel = .critical
        let database = try StateDatabase(folder: folder, log: log)
        defer { database.close() }
        try body(database)
    }

    @Test func `a session keeps the variables of all its playlists, its own first`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        let (own, other) = (try AbsoluteURL("http://h/m"), try AbsoluteURL("http://h/ad"))
        let all = ["d": "own", "e": "other"]
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                #expect(memory.knownVariables(of: session) == nil)
                memory.remember(["d": "own"], definedIn: own, of: session)
                memory.remember(["d": "other", "e": "other"], definedIn: other, of: session)
                memory.remember([:], definedIn: try AbsoluteURL("http://h/none"), of: session)
                #expect(memory.variables(of: session) == all)
            }, in: folder)
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                #expect(memory.variables(of: session) == all)
                memory.remember(["d": "own"], definedIn: own, of: session)
                #expect(memory.variables(of: session) == all)
            }, in: folder)
    }

    @Test func `a list imports the variables of the playlist that names it`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        let (one, two) = (try AbsoluteURL("http://h/1"), try AbsoluteURL("http://h/2"))
        let (a, b) = (try AbsoluteURL("http://h/a"), try AbsoluteURL("http://h/b"))
        let other = try AbsoluteURL("http://h/c")
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                func values(_ list: AbsoluteURL) -> [String?] {
                    let variables = memory.variables(of: session, in: list)
                    return [variables["d"], variables["e"]]
                }
                memory.remember(["d": "1"], definedIn: one, of: session, naming: [a])
                memory.remember(["d": "2", "e": "2"], definedIn: two, of: session, naming: [b])
                #expect(values(a) == ["1", "2"] && values(b) == ["2", "2"])
                #expect(values(other) == ["1", "2"])
                memory.remember(["d": "3"], definedIn: two, of: session, naming: [b])
                #expect(values(a) == ["1", "2"] && values(b) == ["3", "2"])
            }, in: folder)
    }

    @Test func `of too many parents the one read first is forgotten, and no other`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                let count = PlaylistMemory.mostParents + 1
                let lists = try (0..<count).map { try AbsoluteURL("http://h/\($0).m3u8") }
                for (number, list) in lists.enumerated() {
                    memory.remember(
                        ["d": "\(number)"], definedIn: try AbsoluteURL("http://h/m\(number)"),
                        of: session, naming: [list])
                }
                let found = lists.map { memory.variables(of: session, in: $0)["d"] }
                // That of the first one is the session's own too.
                let values: [String?] = (0..<count).map { "\($0)" }
                #expect(found == values)
            }, in: folder)
    }

    @Test func `a parent that is read again is forgotten after those that are not`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                func read(_ number: Int) throws {
                    memory.remember(
                        ["d": "\(number)"], definedIn: try AbsoluteURL("http://h/m\(number)"),
                        of: session, naming: [try AbsoluteURL("http://h/\(number).m3u8")])
                }
                for number in 0..<PlaylistMemory.mostParents { try read(number) }
                try read(1)
                // These take the places of the first one, whose values count for all the same as
                // the session's own, and of the third one.
                let count = PlaylistMemory.mostParents + 2
                for number in PlaylistMemory.mostParents..<count { try read(number) }
                let found = try (0..<count).map { number in
                    let list = try AbsoluteURL("http://h/\(number).m3u8")
                    return memory.variables(of: session, in: list)["d"]
                }
                let values: [String?] = (0..<count).map { $0 == 2 ? "0" : "\($0)" }
                #expect(found == values)
                // Lists import the same, in whatever order their parents were read.
                let other = SessionID(9)
                let areNews = try ["a", "b", "c", "b"].map { name in
                    let list = try AbsoluteURL("http://h/\(name)")
                    return memory.remember([name: "1"], definedIn: list, of: other)
                }
                #expect(areNews == [true, true, true, false])
            }, in: folder)
    }

    @Test func `what changes how lists are read is told, and nothing else`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        let (one, two) = (try AbsoluteURL("http://h/1"), try AbsoluteURL("http://h/2"))
        let (a, b) = (try AbsoluteURL("http://h/a"), try AbsoluteURL("http://h/b"))
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                func tells(
                    _ variables: [String: String], _ parent: AbsoluteURL, _ child: AbsoluteURL
                ) -> Bool {
                    memory.remember(variables, definedIn: parent, of: session, naming: [child])
                }
                #expect(!tells([:], one, a))
                #expect(tells(["d": "1"], one, a) && !tells(["d": "1"], one, a))
                #expect(tells(["d": "2"], two, b) && !tells(["d": "2"], two, b))
                // Another parent names it.
                #expect(tells(["d": "2"], two, a) && !tells(["d": "2"], two, a))
                #expect(memory.rememberSubtitles([a], of: session) == [a])
                #expect(memory.rememberSubtitles([a, b], of: session) == [b])
                #expect(memory.rememberSubtitles([a, b], of: session).isEmpty)
                #expect(memory.version == 5)
            }, in: folder)
    }

    @Test func `further playlists are bounded in bytes, and the latest counts`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                for number in 0..<10 {
                    memory.remember(
                        ["v\(number)": String(repeating: "x", count: 40_000)],
                        definedIn: try AbsoluteURL("http://h/\(number)"), of: session)
                }
                #expect(Set(memory.variables(of: session).keys) == ["v0", "v9"])
            }, in: folder)
    }

    @Test func `a playlist that names other variables each time is bounded too`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        let own = try AbsoluteURL("http://h/m")
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                for number in 0..<10 {
                    let value = String(repeating: "x", count: 40_000)
                    memory.remember(["v\(number)": value], definedIn: own, of: session)
                }
                #expect(Set(memory.variables(of: session).keys) == ["v8", "v9"])
            }, in: folder)
    }

    @Test func `sessions without variables do not displace those that have some`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        let list = try AbsoluteURL("http://h/m")
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                memory.remember(["d": "1"], definedIn: list, of: session)
                for number in 0..<UInt64(2_000) {
                    memory.remember([:], definedIn: list, of: SessionID(1_000 + number))
                }
                #expect(memory.variables(of: session) == ["d": "1"])
                #expect(memory.knownVariables(of: SessionID(2_999))?.isEmpty == true)
            }, in: folder)
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                #expect(memory.variables(of: session) == ["d": "1"])
            }, in: folder)
    }

    @Test func `variables of more sessions than have rows are known`() throws {
        let folder = try makeTemporaryFolder("playlist-memory-tests")
        defer { removeTree(folder) }
        let list = try AbsoluteURL("http://h/m")
        let count = VariablesRecord.mostSessions + 10
        let sessions = (0..<count).map { SessionID(UInt64($0)) }
        try withDatabase(
            { database in
                let memory = PlaylistMemory(database: database)
                for (number, session) in sessions.enumerated() {
                    memory.remember(["d": "\(number)"], definedIn: list, of: session)
                }
                for (number, session) in sessions.enumerated() {
                    #expect(memory.variables(of: session) == ["d": "\(number)"])
                }
            }, in: folder)
        // Versions that kept no more would delete further rows as invalid.
        try withDatabase(
            { database in
                let rows = database.records(VariablesRecord.self)
                #expect(rows.map(\.session).sorted() == sessions.suffix(rows.count).map(\.number))
                #expect(rows.count == VariablesRecord.mostSessions)
            }, in: folder)
    }

    @Test func `what is used stays, within the limits of keys and bytes`() {
        var map = RecentlyUsedMap<Int, Int>(mostKeys: 3, mostBytes: 100)
        func kept() -> [Int] { (1...6).filter { map[$0] != nil } }
        for key in 1...3 { map.keep(key, bytes: 1, for: key) }
        let (used, unknown) = (map.use(1), map.use(7))
        #expect(used == 1 && unknown == nil)
        map.keep(4, bytes: 1, for: 4)
        #expect(kept() == [1, 3, 4])
        map.keep(5, bytes: 1, for: 5)
        #expect(kept() == [1, 4, 5])
        map.keep(6, bytes: 99, for: 6)
        #expect(kept() == [5, 6])
        // What is kept last stays, whatever its size.
        map.keep(50, bytes: 200, for: 5)
        #expect(kept() == [5] && map[5] == 50)
    }
}

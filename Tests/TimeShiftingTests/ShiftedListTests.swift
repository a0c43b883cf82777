import CachePolicy
import Glibc
@testable import HLS
import HTTP
import Library
@testable import Model
import Posix
import Routing
import Store
import Synchronization
import Testing
import TimeShiftSupport
@testable import TimeShifting
import URISyntax

/// The time shift window of one playlist, which several threads read from the store.
@Suite final class ShiftedListTests {
    private let folder: String
    private let table: TimeShiftTable
    private let list: ShiftedList
    private let base: AbsoluteURL

    init() throws {
        folder = try makeTemporaryFolder("shifted-list")
        var settings = ProxySettings()
        settings.privateHosts = ["nas.lan"]
        table = try TimeShiftTable(in: folder, settings: settings)
        base = try AbsoluteURL("http://h/l.m3u8")
        list = table.list(
            base, of: Session(id: SessionID(7), fields: Fields(), shift: .init(window: 600)))
    }

    deinit {
        table.thread.stop()
        table.store.close()
        removeTree(folder)
    }

    /// Merges a text with segments of these numbers; without `steady`, it is from an earlier run.
    @discardableResult
    private func merge(
        _ numbers: ClosedRange<Int>, _ letter: String, wall: Int64, steady: Int64?,
        generation: UInt64, hasEnded: Bool = false, into other: ShiftedList? = nil,
        from source: String? = nil
    ) throws -> ShiftedList.Outcome {
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n"
        let text =
            numbers.reduce(head) { $0 + "#EXTINF:2,\n\(letter)\($1).ts\n" }
            + (hasEnded ? "#EXT-X-ENDLIST\n" : "")
        let times = steady.map {
            SteadyTimes(
                requested: Monotonic(nanoseconds: $0), received: Monotonic(nanoseconds: $0))
        }
        let time = WallTime(seconds: wall)
        let base = try source.map { try AbsoluteURL($0) } ?? base
        let facts = ObjectFacts(
            head: StoredHead(
                status: .ok, fields: Fields(), requestTime: time, responseTime: time,
                finalURL: base.text, isPlaylist: true),
            generation: generation, times: times)
        return try (other ?? list).merge(
            .init(
                body: Array(text.utf8), base: base, key: ObjectKey(sha256Of: "list"), facts: facts),
            table)
    }

    @Test func `a paused recording contacts no origin, like one that has ended`() {
        let session = Session(id: SessionID(9), fields: Fields(), shift: .init(recording: "r"))
        let thread = table.thread
        #expect(thread.isOver(session) && thread.pausedRecording(session) == nil)
        thread.note(.paused, of: session.id)
        #expect(thread.isOver(session) && thread.pausedRecording(session) == "r")
        thread.note(.running, of: session.id)
        #expect(!thread.isOver(session) && thread.pausedRecording(session) == nil)
        thread.note(nil, of: session.id)
        #expect(thread.isOver(session) && !thread.isOver(list.session))
    }

    private var fileNames: [String] {
        list.shift.segments.map { $0.url?.lastPathSegment ?? "" }
    }

    @Test func `a list that will get thousands of placeholders is known before a merge`() throws {
        let other = table.list(try AbsoluteURL("http://h/m.m3u8"), of: list.session)
        try merge(0...3, "a", wall: 100, steady: 1, generation: 900)
        #expect(!list.isFarBehind(nil) && !list.isFarBehind(other.shift))
        for (time, first) in [0, 1_500, 3_000].enumerated() {
            try merge(
                first...first + 3, "b", wall: 101 + Int64(time), steady: 2 + Int64(time),
                generation: 901 + UInt64(time), into: other)
            #expect(list.isFarBehind(other.shift) == (first == 3_000))
        }
        #expect(!list.isLong)
        try merge(3_000...3_001, "a", wall: 110, steady: 10, generation: 910)
        #expect(!list.isFarBehind(other.shift))
        #expect(list.shift.segments.last?.number == 3_001 && list.shift.epoch == 0)
    }

    @Test func `a text that is merged after a newer one changes nothing`() throws {
        try merge(5...8, "a", wall: 100, steady: 1, generation: 900)
        // The origin counts anew, and the clock was set back.
        try merge(0...1, "b", wall: 90, steady: 2, generation: 901)
        let known = fileNames
        #expect(known.count == 6 && known.last == "b1.ts" && list.shift.epoch == 1)
        let late = try merge(5...8, "a", wall: 100, steady: 1, generation: 900)
        #expect(late.isShifted)
        #expect(fileNames == known && list.shift.epoch == 1)
        #expect(list.hasMerged(901))
        try merge(0...2, "b", wall: 92, steady: 3, generation: 902)
        #expect(fileNames.last == "b2.ts" && list.shift.epoch == 1)
    }

    @Test func `a closed list takes in nothing that is listed later`() throws {
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        let version = list.version
        list.close()
        let late = try merge(1...4, "a", wall: 102, steady: 2, generation: 2)
        #expect(late.isShifted && late.relation == .stale && late.dropped.isEmpty)
        #expect(fileNames == ["a0.ts", "a1.ts", "a2.ts"] && list.version == version)
        // Its text need not be read again.
        #expect(list.hasMerged(2))
    }

    @Test func `a window is private until what a private host listed has left it`() throws {
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        #expect(!list.mayBePrivate)
        let home = "http://nas.lan/l.m3u8"
        try merge(1...3, "a", wall: 102, steady: 2, generation: 2, from: home)
        #expect(list.mayBePrivate)
        try merge(2...4, "a", wall: 104, steady: 3, generation: 3)
        #expect(fileNames == ["a0.ts", "a1.ts", "a2.ts", "a3.ts", "a4.ts"])
        #expect(list.mayBePrivate)
        #expect(try TimeShift(snapshot: list.shift.snapshot()).mayBePrivate)
        // 600 s of newer segments.
        try merge(4...310, "a", wall: 700, steady: 4, generation: 4)
        #expect(fileNames.first == "a4.ts" && !list.mayBePrivate)
        #expect(try !TimeShift(snapshot: list.shift.snapshot()).mayBePrivate)
    }

    @Test(arguments: [false, true])
    func `a list keeps in step with the renditions of its own stream only`(_ isSame: Bool) throws {
        let url = try AbsoluteURL("http://h/o.m3u8")
        let session = list.session
        for (parent, child) in [("1", base), (isSame ? "1" : "2", url)] {
            table.memory.remember(
                [:], definedIn: try AbsoluteURL("http://h/\(parent)"), of: session.id,
                naming: [child])
        }
        let other = table.list(url, of: session)
        try merge(5...8, "a", wall: 100, steady: 1, generation: 1)
        try merge(100...103, "o", wall: 100, steady: 1, generation: 2, into: other)
        // Both origins count anew.
        try merge(0...1, "p", wall: 110, steady: 2, generation: 3, into: other)
        try merge(0...1, "b", wall: 110, steady: 2, generation: 4)
        let gaps = list.shift.segments.count(where: { $0.url == nil })
        #expect(gaps == (isSame ? 95 : 0) && fileNames.last == "b1.ts")
    }

    @Test func `the lists of a session are found without those of others`() throws {
        let other = table.list(
            base, of: Session(id: SessionID(9), fields: Fields(), shift: .init(window: 600)))
        #expect(table.all.count == 2)
        let found = table.all(of: list.session.id)
        #expect(found.count == 1 && found.first === list)
        #expect(table.known(base, of: other.session) === other)
        table.forget(other)
        #expect(table.all(of: other.session.id).isEmpty && table.all.count == 1)
    }

    @Test func `the stream of a list is that of the URL that players used last`() throws {
        let urls = try ["http://h/o.m3u8", "http://h/p.m3u8"].map { try AbsoluteURL($0) }
        table.memory.remember(
            [:], definedIn: try AbsoluteURL("http://h/1"), of: list.session.id,
            naming: [base] + urls)
        let (ahead, behind) = (
            table.list(urls[0], of: list.session), table.list(urls[1], of: list.session)
        )
        try merge(2...4, "p", wall: 100, steady: 1, generation: 1, into: behind)
        try merge(5...8, "o", wall: 100, steady: 1, generation: 2, into: ahead)
        #expect(table.sibling(of: list)?.segments.last?.number == 8)
        // No multivariant playlist has named this URL.
        ahead.noteAsked(
            try AbsoluteURL("http://h/o.m3u8?token=2"), at: Monotonic(nanoseconds: 1),
            isForPage: false)
        #expect(table.sibling(of: list)?.segments.last?.number == 4)
    }

    @Test(arguments: [(0, false), (0.9, false), (1, true), (60, true), (62, false)])
    func `a list is watched once it was requested before, and not long ago`(
        after seconds: Double, isWatched: Bool
    ) throws {
        let url = try AbsoluteURL("http://h/l.m3u8")
        let start = Monotonic(nanoseconds: 1_000_000_000)
        let later = Monotonic(nanoseconds: start.nanoseconds + Int64(seconds * 1e9))
        #expect(!list.isWatched(at: start))
        for time in [start, later] { list.noteAsked(url, at: time, isForPage: false) }
        #expect(list.isWatched(at: later) == isWatched)
    }

    @Test func `the text of an earlier run is older than any of this one`() throws {
        // The clock was set back between the runs, and generations start anywhere.
        try merge(0...1, "b", wall: 90, steady: 1, generation: 5)
        try merge(5...8, "a", wall: 100, steady: nil, generation: 900)
        #expect(fileNames == ["b0.ts", "b1.ts"] && list.shift.epoch == 0)
    }

    @Test func `texts of earlier runs are merged in the order of their receipt`() throws {
        try merge(5...8, "a", wall: 100, steady: nil, generation: 900)
        try merge(0...1, "b", wall: 110, steady: nil, generation: 7)
        try merge(5...8, "a", wall: 100, steady: nil, generation: 900)
        #expect(fileNames.last == "b1.ts" && list.shift.epoch == 1)
        try merge(0...2, "b", wall: 50, steady: 1, generation: 8)
        #expect(fileNames.last == "b2.ts" && list.shift.epoch == 1)
    }

    @Test func `the origin is asked for whole lists only, with its own numbers`() throws {
        let asked = QueryItem.items(of: "_HLS_msn=11&_HLS_part=1&_HLS_skip=YES")
        // Nothing has been read yet: a delta update would begin the window.
        let first = table.translated(asked, for: base, list.session)
        #expect(first == QueryItem.items(of: "_HLS_msn=11&_HLS_part=1"))
        try merge(5...8, "a", wall: 100, steady: 1, generation: 1)
        try merge(0...1, "b", wall: 110, steady: 2, generation: 2)
        #expect(list.shift.segments.map(\.number) == Array(5...10))
        let later = table.translated(asked, for: base, list.session)
        #expect(later == QueryItem.items(of: "_HLS_msn=2&_HLS_part=1"))
        let plain = Session(id: SessionID(8), fields: Fields())
        #expect(table.translated(asked, for: base, plain) == asked)
    }

    @Test func `a list of a recording that does not run leaves memory when it is idle`() throws {
        let session = Session(
            id: SessionID(9), fields: Fields(), shift: .init(recording: "0011aabb"))
        let recorded = table.list(base, of: session)
        let loaded = Monotonic(nanoseconds: 1)
        let later = loaded + .seconds(901 as Int64)
        #expect(!recorded.isIdle(at: loaded, isOver: true))
        #expect(!recorded.isIdle(at: loaded + .seconds(900 as Int64), isOver: true))
        #expect(recorded.isIdle(at: later, isOver: true))
        #expect(!recorded.isIdle(at: later, isOver: false))
        // A player's list that nobody asked for goes at once.
        #expect(list.isIdle(at: loaded, isOver: false))
    }

    @Test func `a segment that is found missing while a check runs stays missing`() throws {
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        try merge(2...4, "a", wall: 104, steady: 2, generation: 2)
        list.lookForKept(table)
        // They may still be on their way: the check leaves them out.
        let check = list.beginCheck(table)
        #expect(check.open == [0, 1] && check.missing.isEmpty)
        try merge(4...12, "a", wall: 120, steady: 3, generation: 3)
        try merge(12...14, "a", wall: 124, steady: 4, generation: 4)
        list.lookForKept(table)
        #expect(list.state.withLock { $0.missing } == [0, 1, 2, 3])
        list.end(check, with: WindowCheck.Result())
        #expect(list.state.withLock { $0.missing } == [0, 1, 2, 3])
        // The next check is later than that.
        list.end(list.beginCheck(table), with: WindowCheck.Result())
        #expect(list.state.withLock { $0.missing }.isEmpty)
    }

    /// The first number and the count of gaps of the list as it would be served.
    private func listing(_ ending: TimeShift.Ending = .live) throws -> [Int?] {
        let segments = try Playlist(list.playlist(ending: ending), base: nil).media?.segments ?? []
        return [segments.first?.mediaSequence, segments.count(where: \.isGap)]
    }

    @Test func `a start that was served does not go back when a segment arrives late`() throws {
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        try merge(2...4, "a", wall: 104, steady: 2, generation: 2)
        list.lookForKept(table)
        // They may still be on their way: they keep their places.
        #expect(try listing() == [0, 2])
        try merge(4...12, "a", wall: 120, steady: 3, generation: 3)
        try merge(12...14, "a", wall: 124, steady: 4, generation: 4)
        list.lookForKept(table)
        #expect(try listing() == [4, 8])
        // A check finds all of those that were given up.
        list.end(list.beginCheck(table), with: WindowCheck.Result())
        #expect(list.state.withLock { $0.missing }.isEmpty)
        #expect(try listing() == [4, 8])
        #expect(try TimeShift(snapshot: list.shift.snapshot()).listStart == 4)
        #expect(try listing(.recorded) == [0, 8])
    }

    @Test func `a start that was served is saved`() throws {
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        try merge(12...14, "a", wall: 124, steady: 2, generation: 2)
        list.lookForKept(table)
        list.state.withLock { $0.isUnsaved = false }
        #expect(try listing(.recorded).first == 12)
        #expect(!list.state.withLock { $0.isUnsaved })
        #expect(try listing().first == 12)
        #expect(list.state.withLock { $0.isUnsaved })
    }

    @Test func `a list whose saved window cannot be read is in no table`() throws {
        table.forget(list)
        // Nothing can be read where a file takes the place of the folder.
        let windows = table.store.folderPath + "/windows"
        try replaceFile(windows, with: [0], in: table.store.folderPath)
        let unread = table.list(base, of: list.session)
        #expect(unread.isUnread && unread.name == nil)
        #expect(table.all.isEmpty)
        try removeFile(windows)
        let read = table.list(base, of: list.session)
        #expect(!read.isUnread && read.name != nil)
        #expect(table.known(base, of: list.session) === read)
    }

    @Test func `a saved window that cannot be read for half a minute of reloads is set aside`()
        throws
    {
        table.forget(list)
        let name = table.name(of: base, in: list.session)
        let (folder, file) = (table.windows.folder, name.fileName)
        try makeFolder(folder)
        // No file can be behind another one.
        #expect(symlink("/dev/null/none", "\(folder)/\(file)") == 0)
        func isUnread(after seconds: Int64) -> Bool {
            let now = Monotonic(nanoseconds: 1) + .seconds(seconds)
            let saved = table.saved(base, of: list.session, named: name, now: now)
            return saved?.isUnread ?? false
        }
        // With the pause after the first one, the failure is another.
        for seconds in [0, 130, 159] as [Int64] {
            #expect(isUnread(after: seconds), "\(seconds)")
        }
        #expect(!isUnread(after: 160))
        #expect(try listFolder(folder).map(\.name) == ["\(file).unread"])
    }

    @Test func `a list that is requested is checked every two minutes`() throws {
        let start = Monotonic(nanoseconds: 1)
        func begins(at seconds: Int64) -> Bool {
            list.beginsVerifying(now: start + .seconds(seconds))
        }
        #expect(!begins(at: 0))
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        #expect(begins(at: 1))
        try merge(1...3, "a", wall: 102, steady: 2, generation: 2)
        #expect(!begins(at: 3))
        #expect(!begins(at: 120))
        #expect(begins(at: 121))
        #expect(!begins(at: 123))
    }

    @Test(arguments: [false, true])
    func `a list is checked again at once after a purge or a clear`(_ isClear: Bool) throws {
        let start = Monotonic(nanoseconds: 1)
        func begins(at seconds: Int64) -> Bool {
            table.noteRemovals()
            return list.beginsVerifying(now: start + .seconds(seconds))
        }
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        #expect(begins(at: 1))
        #expect(!begins(at: 2))
        if isClear {
            _ = try table.store.clear(sparingPinned: false)
        } else {
            _ = try table.store.purge(where: { _ in true }, goesOn: { _ in true })
        }
        #expect(begins(at: 3))
        #expect(!begins(at: 4))
        #expect(!begins(at: 122))
        #expect(begins(at: 123))
    }

    @Test func `a doubtful list waits while the keeper has no time for it`() throws {
        let start = Monotonic(nanoseconds: 1)
        func begins(at seconds: Int64, countsDoubt: Bool) -> Bool {
            list.beginsVerifying(now: start + .seconds(seconds), countsDoubt: countsDoubt)
        }
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        #expect(begins(at: 1, countsDoubt: false))
        _ = try table.store.purge(where: { _ in true }, goesOn: { _ in true })
        table.noteRemovals()
        #expect(!begins(at: 2, countsDoubt: false))
        #expect(begins(at: 3, countsDoubt: true))
        #expect(!begins(at: 4, countsDoubt: true))
        #expect(begins(at: 123, countsDoubt: false))
    }

    @Test func `a list that has ended is followed anew only as often as it is checked`() throws {
        let start = Monotonic(nanoseconds: 1)
        func begins(at seconds: Int64) -> Bool {
            list.beginsFollowing(now: start + .seconds(seconds))
        }
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        #expect(begins(at: 1))
        #expect(!begins(at: 2))
        let isChecked = list.beginsVerifying(now: start + .seconds(2 as Int64))
        #expect(isChecked)
        func giveUp() { list.state.withLock { $0.followed = nil } }
        giveUp()
        #expect(begins(at: 3))
        giveUp()
        try merge(0...2, "a", wall: 101, steady: 2, generation: 2, hasEnded: true)
        #expect(!begins(at: 4))
        #expect(!begins(at: 121))
        #expect(begins(at: 122))
    }

    @Test func `a list that has ended is followed and checked at once after a purge`() throws {
        let start = Monotonic(nanoseconds: 1)
        func begins(at seconds: Int64) -> Bool {
            list.beginsFollowing(now: start + .seconds(seconds))
        }
        try merge(0...2, "a", wall: 100, steady: 1, generation: 1)
        let isChecked = list.beginsVerifying(now: start + .seconds(2 as Int64))
        #expect(isChecked)
        try merge(0...2, "a", wall: 101, steady: 2, generation: 2, hasEnded: true)
        #expect(!begins(at: 3))
        _ = try table.store.purge(where: { _ in true }, goesOn: { _ in true })
        table.noteRemovals()
        #expect(begins(at: 4))
        let isCheckedAgain = list.beginsVerifying(now: start + .seconds(5 as Int64))
        #expect(isCheckedAgain)
        list.state.withLock { $0.followed = nil }
        #expect(!begins(at: 6))
    }
}

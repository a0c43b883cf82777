import Glibc
import HLS
import Library
import Logging
import Posix
import Routing
import Testing
import URISyntax

/// Saved windows of time shift and recordings.
@Suite final class TimeShiftFilesTests {
    private let files: TimeShiftFiles
    private let url: AbsoluteURL
    private var window: WindowName { WindowName(session: SessionID(7), url: url) }

    init() throws {
        files = TimeShiftFiles(
            folder: try makeTemporaryFolder("windows"),
            log: Logger(label: "windows") { _ in SwiftLogNoOpLogHandler() })
        url = try AbsoluteURL("http://h/l.m3u8")
    }

    deinit { removeTree(files.folder) }

    private var names: [String] { get throws { try listFolder(files.folder).map(\.name) } }

    private func shift(_ segments: String...) throws -> TimeShift {
        var shift = TimeShift()
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
        let text = segments.reduce(head) { $0 + "#EXTINF:2,\n\($1)\n" }
        _ = try shift.merge(Array(text.utf8), base: url)
        return shift
    }

    private func saveWindow(_ segment: String = "s0.ts") throws {
        try files.save(try shift(segment), window)
    }

    @Test func `a restored window has the limits of its session`() throws {
        try saveWindow()
        var limits = TimeShift.Limits()
        limits.segmentCount = 200_000
        let shift = try files.load(window, limits: limits)
        #expect(shift?.segments.count == 1 && shift?.limits == limits)
    }

    @Test func `a window named by URL has the file of former versions`() throws {
        try saveWindow()
        #expect(try names == ["60d9b963f6b09252ea303e988b9377aa"])
        let asked = try AbsoluteURL("http://H:80/l.m3u8?_HLS_msn=3")
        #expect(WindowName(session: SessionID(7), url: asked) == window)
        let others = [
            WindowName(session: SessionID(8), url: url),
            WindowName(session: SessionID(7), url: try AbsoluteURL("http://h/l.m3u8?q=1")),
        ]
        for other in others { #expect(try files.load(other, limits: .init()) == nil) }
    }

    @Test(arguments: ["SLUICE WINDOW 2\n#EXTM3U\n", "SLUICE WINDOW 1\n<html>\n"])
    func `a window that cannot be read is set aside, and not replaced`(text: String) throws {
        try saveWindow()
        let name = try #require(try names.first)
        try replaceFile("\(files.folder)/\(name)", with: Array(text.utf8), in: files.folder)
        #expect(try files.load(window, limits: .init()) == nil)
        try saveWindow()
        let aside = try readWhole("\(files.folder)/\(name).unread", atMost: 1_000)
        #expect(aside == Array(text.utf8))
        #expect(try files.load(window, limits: .init())?.segments.count == 1)
        files.remove(window)
        #expect(try names.isEmpty)
    }

    @Test func `a window that cannot be read now stays, and its segments are not removed`() throws {
        try saveWindow()
        let name = try #require(try names.first)
        let segments = try shift("s0.ts", "s1.ts").segments
        let saved = SavedWindows(files)
        let now = Monotonic(nanoseconds: 7)
        // Nothing can be read where a file takes the place of the folder.
        let away = files.folder + ".away"
        try renameFile(files.folder, to: away)
        _ = try openFile(files.folder, flags: O_CREAT | O_WRONLY)
        #expect(throws: SystemError.self) {
            _ = try files.load(window, limits: .init())
        }
        #expect(throws: SystemError.self) {
            _ = try saved.unnamed(segments, besides: [], wall: nil, now: now)
        }
        try removeFile(files.folder)
        try renameFile(away, to: files.folder)
        let left = try saved.unnamed(segments, besides: [], wall: nil, now: now)
        #expect(left?.map { $0.url?.lastPathSegment } == ["s1.ts"])
        #expect(try names == [name])
        #expect(try files.load(window, limits: .init())?.segments.count == 1)
    }

    @Test func `a window that stays unreadable spares its segments for half a minute`() throws {
        try saveWindow()
        try files.save(try shift("s1.ts"), WindowName(session: SessionID(8), url: url))
        let segments = try shift("s0.ts", "s1.ts", "s2.ts").segments
        let saved = SavedWindows(files)
        let path = "\(files.folder)/\(window.fileName)"
        try removeFile(path)
        // No file can be behind another one.
        #expect(symlink("/dev/null/none", path) == 0)
        func left(after seconds: Int64) throws -> [String?]? {
            let now = Monotonic(nanoseconds: 7) + .seconds(seconds)
            let left = try saved.unnamed(segments, besides: [], wall: nil, now: now)
            return left?.map { $0.url?.lastPathSegment }
        }
        // One of these reads the other window.
        for seconds in [0, 1] as [Int64] { _ = try? left(after: seconds) }
        #expect(throws: SystemError.self) { _ = try left(after: 29) }
        #expect(try left(after: 31) == ["s0.ts", "s2.ts"])
    }

    @Test func `the oldest windows beyond the limit are deleted, except those in memory`() throws {
        let windows = (0..<3).map { WindowName(session: SessionID(UInt64($0)), url: url) }
        let now = WallTime.now()
        // The first one is the oldest.
        for (index, window) in windows.enumerated() {
            try files.save(try shift("s0.ts"), window)
            let saved = timeval(tv_sec: Int(now.seconds) - 300 + 100 * index, tv_usec: 0)
            #expect(utimes("\(files.folder)/\(window.fileName)", [saved, saved]) == 0)
        }
        let path = "\(files.folder)/\(windows[0].fileName)"
        let size = Int64(try readWhole(path, atMost: 10_000).count)
        files.clean(now: now, besides: [windows[0]], mostBytes: 2 * size)
        #expect(try Set(names) == [windows[0].fileName, windows[2].fileName])
        // Two days without a change, by a clock that is trusted.
        files.clean(now: nil, besides: [windows[0]])
        #expect(try names.count == 2)
        files.clean(now: now + .seconds(172_600 as Int64), besides: [windows[0]])
        #expect(try names.count == 2)
        files.clean(now: now + .seconds(173_000 as Int64), besides: [windows[0]])
        #expect(try names == [windows[0].fileName])
    }

    @Test func `a saved window names its segments for a day unless its list is loaded`() throws {
        let segments = try shift("s0.ts", "s1.ts").segments
        let wall = WallTime.now()
        let now = Monotonic(nanoseconds: 7)
        try saveWindow()
        var saved = SavedWindows(files)
        func left(
            _ loaded: [WindowName] = [], after seconds: Int64 = 0, isTrusted: Bool = true
        ) throws -> [String?]? {
            let length = Interval.seconds(seconds)
            let left = try saved.unnamed(
                segments, besides: loaded, wall: isTrusted ? wall + length : nil,
                now: now + length)
            return left?.map { $0.url?.lastPathSegment }
        }
        #expect(try left() == ["s1.ts"])
        #expect(try left([window]) == ["s0.ts", "s1.ts"])
        try saveWindow("s1.ts")
        saved.note(saved: window, at: now)
        #expect(try left() == ["s0.ts"])
        #expect(try left(isTrusted: false) == ["s0.ts"])
        // It was saved in this run, whatever the wall clock says.
        #expect(try left(after: 90_000, isTrusted: false) == ["s0.ts", "s1.ts"])
        // A clock that is not trusted ends no window of an earlier run.
        saved = SavedWindows(files)
        #expect(try left(after: 90_000, isTrusted: false) == ["s0.ts"])
        #expect(try left(after: 180_000) == ["s0.ts", "s1.ts"])
    }
}

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

    private func saveWindow() throws {
        var shift = TimeShift()
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\ns0.ts\n"
        _ = try shift.merge(Array(text.utf8), base: url)
        try files.save(shift, window)
    }

    @Test func `a restored window has the limits of its session`() throws {
        try saveWindow()
        var limits = TimeShift.Limits()
        limits.segmentCount = 200_000
        let shift = files.load(window, limits: limits)
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
        for other in others { #expect(files.load(other, limits: .init()) == nil) }
    }

    @Test(arguments: ["SLUICE WINDOW 2\n#EXTM3U\n", "SLUICE WINDOW 1\n<html>\n"])
    func `a window that cannot be read is set aside, and not replaced`(text: String) throws {
        try saveWindow()
        let name = try #require(try names.first)
        try replaceFile("\(files.folder)/\(name)", with: Array(text.utf8), in: files.folder)
        #expect(files.load(window, limits: .init()) == nil)
        try saveWindow()
        let aside = try readWhole("\(files.folder)/\(name).unread", atMost: 1_000)
        #expect(aside == Array(text.utf8))
        #expect(files.load(window, limits: .init())?.segments.count == 1)
        files.remove(window)
        #expect(try names.isEmpty)
    }
}

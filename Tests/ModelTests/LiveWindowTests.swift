import DurableState
import HLS
import Logging
import Posix
import Routing
import Store
import Testing
import URISyntax

@testable import Model

/// Which names belong to a live stream, whatever else its session plays.
@Suite struct LiveWindowTests {
    @Test func `only names of lists that segments leave are in a window`() throws {
        let folder = try makeTemporaryFolder("live-window-tests")
        defer { removeTree(folder) }
        var log = Logger(label: "live-window-tests")
        log.logLevel = .critical
        let database = try StateDatabase(folder: folder, log: log)
        defer { database.close() }
        let start = WallTime(seconds: 1_800_000_000)
        let live = LiveMemory(database: database, counters: Counters(), now: start)
        var generation: UInt64 = 0
        func read(_ list: String, _ lines: String, wasLive: Bool = false) throws {
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n" + lines
            let reading = try #require(
                try LiveReading(
                    Array(text.utf8), base: try AbsoluteURL("http://h/\(list).m3u8"),
                    wasLive: wasLive, options: PlaylistReading()))
            generation += 1
            let at = start + .seconds(Int64(generation))
            let place = LiveMemory.Place(
                list: ObjectKey(sha256Of: list), generation: generation,
                times: EpochTable.Times(requested: at, received: at), keyVersion: 0)
            live.take(reading, at: place) { url, _ in ObjectKey(sha256Of: url.text) }
        }
        func isInWindow(_ name: String) -> Bool {
            live.isInWindow(ObjectKey(sha256Of: "http://h/\(name)"))
        }
        #expect(!isInWindow("a"))
        try read("live", "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:1,\na\n#EXTINF:1,\nb\n")
        try read("event", "#EXT-X-PLAYLIST-TYPE:EVENT\n#EXTINF:1,\ne\n")
        #expect(isInWindow("a") && isInWindow("k") && !isInWindow("e") && !isInWindow("film"))
        try read("live", "#EXT-X-MEDIA-SEQUENCE:1\n#EXTINF:1,\nb\n#EXTINF:1,\nc\n")
        #expect(isInWindow("a") && isInWindow("c"))
        try read(
            "live", "#EXT-X-MEDIA-SEQUENCE:1\n#EXTINF:1,\nb\n#EXTINF:1,\nc\n#EXT-X-ENDLIST\n",
            wasLive: true)
        #expect(!isInWindow("a") && !isInWindow("c"))
    }

    @Test func `windows beyond the limit in bytes are dropped, the last one stays`() throws {
        let folder = try makeTemporaryFolder("live-window-bytes-tests")
        defer { removeTree(folder) }
        var log = Logger(label: "live-window-bytes-tests")
        log.logLevel = .critical
        let database = try StateDatabase(folder: folder, log: log)
        defer { database.close() }
        let start = WallTime(seconds: 1_800_000_000)
        let live = LiveMemory(
            database: database, counters: Counters(), now: start, epochs: EpochTable(mostBytes: 1))
        /// The file name that is found at the first segment of a list; nil for an unread list.
        func first(of list: String) -> String? {
            let key = ObjectKey(sha256Of: list)
            let found = live.find(.segment(0), role: .segment, in: (key, .first))
            guard case .url(let url, _) = found else { return nil }
            return url.lastPathSegment
        }
        for (time, list) in ["a", "b"].enumerated() {
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n\(list).ts\n"
            let reading = try #require(
                try LiveReading(
                    Array(text.utf8), base: try AbsoluteURL("http://h/\(list).m3u8"),
                    options: PlaylistReading()))
            let at = start + .seconds(Int64(time))
            let place = LiveMemory.Place(
                list: ObjectKey(sha256Of: list), generation: UInt64(time),
                times: EpochTable.Times(requested: at, received: at), keyVersion: 0)
            live.take(reading, at: place) { url, _ in ObjectKey(sha256Of: url.text) }
            #expect(first(of: list) == "\(list).ts")
        }
        #expect(first(of: "a") == nil)
        // That it is live is known for longer.
        #expect(live.list(ObjectKey(sha256Of: "a")) != nil)
    }
}

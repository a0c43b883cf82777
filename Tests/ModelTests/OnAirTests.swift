import CachePolicy
import DurableState
import HLS
import HTTP
import Logging
import Posix
import Routing
import Store
import Testing
import URISyntax

@testable import Model

/// What belongs to a live stream: nodes neither ask the second level for it nor write it there.
@Suite struct OnAirTests {
    private let plain = Session(id: SessionID(7), fields: Fields())
    private let shifted = Session(
        id: SessionID(8), fields: Fields(), shift: Session.Shift(window: 7_200))

    private func withMemories(_ body: (LiveMemory, PlaylistMemory) throws -> Void) throws {
        let folder = try makeTemporaryFolder("on-air-tests")
        defer { removeTree(folder) }
        var log = Logger(label: "on-air-tests")
        log.logLevel = .critical
        let database = try StateDatabase(folder: folder, log: log)
        defer { database.close() }
        let start = WallTime(seconds: 1_800_000_000)
        let live = LiveMemory(database: database, counters: Counters(), now: start)
        try body(live, PlaylistMemory(database: database))
    }

    private func resource(
        _ name: String, _ role: ResourceRole?, of session: Session
    ) throws -> Resource {
        let url = "http://h/\(name)"
        return Resource(
            .init(
                url: try AbsoluteURL(url), cacheKey: CacheKey(url: url), session: session,
                role: role, policy: .media, forwardedFields: Fields()))
    }

    @Test func `segments of a longer window are on air, however far behind the origin's`() throws {
        try withMemories { live, playlists in
            let segment = try resource("s.ts", .segment, of: shifted)
            #expect(!segment.isOnAir(live, playlists))
            playlists.remember(isLive: true, of: shifted.id)
            #expect(segment.isOnAir(live, playlists))
            #expect(segment.isOnAir(live, playlists, isPlaylist: false))
            // Its stream has ended.
            playlists.remember(isLive: false, of: shifted.id)
            #expect(!segment.isOnAir(live, playlists))
        }
    }

    @Test func `a segment of a film is not on air beside a live stream of its session`() throws {
        try withMemories { live, playlists in
            playlists.remember(isLive: true, of: plain.id)
            let segment = try resource("f.ts", .segment, of: plain)
            let master = try resource("m.m3u8", .playlist, of: plain)
            #expect(!segment.isOnAir(live, playlists) && master.isOnAir(live, playlists))
        }
    }

    @Test func `a film of a channel list is not on air beside a channel`() throws {
        try withMemories { live, playlists in
            let film = try resource("film.mp4", .media, of: plain)
            let unknown = try resource("play.php", .media, of: plain)
            let channel = try resource("7.ts", .media, of: plain)
            playlists.remember(isLive: true, of: plain.id)
            #expect(!film.isOnAir(live, playlists) && unknown.isOnAir(live, playlists))
            #expect(!unknown.isOnAir(live, playlists, isPlaylist: false))
            #expect(!channel.isOnAir(live, playlists))
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\ns.ts\n"
            let reading = try #require(
                try LiveReading(
                    Array(text.utf8), base: channel.url, wasLive: false,
                    options: PlaylistReading()))
            let now = WallTime(seconds: 1_800_000_001)
            let place = LiveMemory.Place(
                list: channel.listKey, generation: 1,
                times: EpochTable.Times(requested: now, received: now), keyVersion: 0)
            live.take(reading, at: place) { url, _ in ObjectKey(sha256Of: url.text) }
            #expect(channel.isOnAir(live, playlists) && !film.isOnAir(live, playlists))
        }
    }
}

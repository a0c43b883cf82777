import Lookahead
import Testing

/// The capacity that players leave to downloads, with simulated players and links.
@Suite struct PlayerRoomTests {
    /// Notes requests that begin at these times, with their durations.
    private func room(_ requests: [(at: Double, takes: Double)]) -> PlayerIdleTime {
        var room = PlayerIdleTime()
        for request in requests {
            room.note(playersWait: true, at: request.at)
            room.note(playersWait: false, at: request.at + request.takes)
        }
        return room
    }

    @Test func `no download runs beside a player that has just begun`() {
        var room = PlayerIdleTime()
        room.note(playersWait: true, at: 10)
        #expect(room.holdsDownloads(at: 10))
        room.note(playersWait: false, at: 11)
        // The player may request the next segment at any moment.
        #expect(room.holdsDownloads(at: 11.1))
        #expect(room.change(after: 11.1) == 11.25)
        #expect(!room.holdsDownloads(at: 11.3))
    }

    @Test func `a player with regular pauses shares the first part of each`() {
        var room = room([(0, 1), (4, 1), (8, 1)])
        room.note(playersWait: true, at: 12)
        #expect(!room.holdsDownloads(at: 13.5))
        #expect(room.holdsDownloads(at: 13.7))
    }

    @Test func `a short gap within a request is not a pause`() {
        var room = room([(0, 0.5), (0.52, 0.5), (4, 1), (8, 0.3), (8.32, 0.7)])
        room.note(playersWait: true, at: 12)
        #expect(room.sharedUntil != nil)
    }

    @Test(arguments: [
        // Filling the buffer, out of step, with short pauses, and a low-latency stream's parts.
        [(0, 1), (1, 1), (2, 1), (3, 1)], [(0, 1), (4, 1), (8, 1), (10.5, 1)],
        [(0, 3.9), (4, 3.9), (8, 3.9), (12, 3.9)], [(0, 0.2), (1, 0.2), (2, 0.2), (3, 0.2)],
    ])
    func `no download runs beside a player with a low buffer`(
        requests: [(at: Double, takes: Double)]
    ) throws {
        var room = room(requests.dropLast())
        let last = try #require(requests.last)
        room.note(playersWait: true, at: last.at)
        #expect(room.sharedUntil == nil)
    }

    @Test(arguments: [0.2, 0.4, 0.6, 0.8, 0.95], [6.0, 10, 30])
    func `a player beside downloads stalls no more often than alone`(
        load: Double, buffer: Double
    ) {
        for downloads in [0, 1, 2, 4, 16] {
            let player = SimulatedPlayer(load: load, buffer: buffer, downloads: downloads)
            let (stalls, _) = player.play()
            #expect(stalls == 0)
        }
    }

    @Test func `downloads get most of the capacity that a player leaves`() {
        let player = SimulatedPlayer(load: 0.4, buffer: 10, downloads: 2)
        #expect(player.play().downloaded > 0.75 * 0.6)
    }
}

/// A player of two-second segments on a link of one unit per second that downloads share, in steps
/// of 10 ms.
struct SimulatedPlayer {
    /// The share of the link that the title needs.
    var load: Double
    /// The seconds that the player buffers.
    var buffer: Double
    var downloads: Int
    /// The most of the link that one connection gets.
    var single = 1.0

    /// Plays ten minutes: how often the player stalled, and the share of the link that downloads
    /// got.
    func play() -> (stalls: Int, downloaded: Double) {
        var room = PlayerIdleTime()
        var loaded = 0.0
        var shown = 0.0
        var left = 0.0
        var stalls = 0
        var isDry = true
        var downloaded = 0.0
        for step in 0..<60_000 {
            let now = Double(step) / 100
            if left <= 0, loaded - shown <= buffer {
                left = load * 2
                room.note(playersWait: true, at: now)
            }
            let others = room.holdsDownloads(at: now) ? 0 : downloads
            if left > 0 {
                left -= min(single, 1 / Double(1 + others)) / 100
                downloaded += Double(others) / Double(1 + others) / 100
                if left <= 0 {
                    loaded += 2
                    isDry = false
                    room.note(playersWait: false, at: now + 0.01)
                }
            } else if others > 0 {
                downloaded += 0.01
            }
            guard !isDry else { continue }
            shown += 0.01
            if shown > loaded {
                isDry = true
                stalls += 1
            }
        }
        return (stalls, downloaded / 600)
    }
}

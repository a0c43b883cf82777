import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The memory of many slow players: a bound that grows neither with bodies nor with time.
extension Stories {
    @Suite(.tags(.timed)) struct MemoryTests {
        @Test func `700 slow players stay under 40 MB`() throws {
            let story = try Story()
            let cached = (0..<20).map { segment("cached\($0)", 2_000_000) }
            for path in cached { #expect(isContent(try story.get(path).body, of: path)) }
            let before = story.daemon.rssBytes
            story.cdn.setBehaviour("rate=200000", for: "/bytes/3000000/*")
            var streams = try (0..<500).map { index in
                try story.open(cached[index % cached.count], receiveBuffer: 4_096)
            }
            streams += try (0..<200).map { index in
                try story.open(segment("missing\(index)", 3_000_000), receiveBuffer: 4_096)
            }
            #expect(try story.settled("slots_in_use") { $0 == 32 } == 32)
            var most = 0
            for _ in 0..<20 {
                for stream in streams.prefix(500) { _ = try stream.read(2_000) }
                most = max(most, story.daemon.rssBytes)
            }
            let anonymous = story.daemon.anonymousBytes
            print("700 slow players: at most \(most >> 10) KiB, before them \(before >> 10) KiB")
            #expect(try story.stat("connections") >= 700)
            #expect(anonymous < 20 << 20)
            // The code of an unoptimised build alone takes more than that.
            #expect(most < 40 << 20 || before > 36 << 20)
            for stream in streams { stream.abort() }
        }

        @Test func `long playlists that are requested repeatedly stay within their memory`() throws
        {
            let story = try Story()
            let names = (0..<160).map { "/l\($0).m3u8" }
            for name in names {
                let segments = (0..<2_500).map { "\(name)-a-segment-with-a-long-name-\($0).ts" }
                story.cdn.put(name, text: vod(segments))
            }
            let before = story.daemon.anonymousBytes
            let player = story.player()
            for name in names {
                for _ in 0..<4 { #expect(try player.get(story.url(name)).status == 200) }
            }
            let grown = story.daemon.anonymousBytes - before
            print("160 long playlists: \(grown >> 10) KiB more anonymous memory")
            #expect(grown < 40 << 20)
        }

        @Test func `a body of any size passes through the same memory`() throws {
            let story = try Story()
            _ = try story.get(segment("warm", 1_000_000))
            let before = story.daemon.anonymousBytes
            let path = segment("huge", 200_000_000)
            let stream = try story.open(path)
            var taken = 0
            while !stream.isDone { taken += try stream.read(8_000_000).count }
            #expect(taken == 200_000_000)
            let grown = story.daemon.anonymousBytes - before
            print("200 MB passed: \(grown >> 10) KiB more anonymous memory")
            #expect(grown < 8 << 20)
        }
    }
}

// A small cache, a full disk and a read-only folder: streaming continues.
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Whether this machine lets tests mount file systems and drop capabilities.
private let isRoot = geteuid() == 0

extension Stories {
    @Suite(.tags(.timed, .threads)) struct EvictionTests {
        @Test func `the cache keeps its size limit and evicts the oldest first`() throws {
            let story = try Story(["--cache-size", "5MB", "--min-free", "0"])
            let paths = (0..<30).map { segment("seg\($0)", 500_000) }
            for path in paths { #expect(isContent(try story.get(path).body, of: path)) }
            #expect(try story.settled("stored_bytes") { $0 <= 5_000_000 } <= 5_000_000)
            #expect(eventually { diskBytes(story.cacheFolder) <= 5_000_000 })
            story.cdn.resetLog()
            #expect(isContent(try story.get(paths[29]).body, of: paths[29]))
            #expect(story.cdn.requestCount() == 0)
            #expect(isContent(try story.get(paths[0]).body, of: paths[0]))
            #expect(story.cdn.requestCount() == 1)
        }

        @Test func `a playlist whose URL does not tell its type counts as a playlist`() throws {
            let story = try Story()
            story.cdn.put("/go", text: vod(["/bytes/3000/s0.ts"]))
            #expect(try story.get("/go").status == 200)
            // The index is complete then.
            try story.restart()
            let use = try story.player().get("/api/df").text
            #expect(use.contains(#"{"name":"playlists, keys, init","objects":1,"#), "\(use)")
        }

        @Test func `used objects stay, unused ones are evicted`() throws {
            let story = try Story(["--cache-size", "5MB", "--min-free", "0"])
            let favourite = segment("favourite", 500_000)
            _ = try story.get(favourite)
            for index in 0..<20 {
                _ = try story.get(segment("other\(index)", 500_000))
                #expect(isContent(try story.get(favourite).body, of: favourite))
            }
            #expect(story.cdn.requestCount(favourite) == 1)
        }

        @Test func `a reader finishes an object that is evicted meanwhile`() throws {
            let story = try Story(["--cache-size", "6MB", "--min-free", "0"])
            let path = segment("read", 5_000_000)
            _ = try story.get(path)
            let stream = try story.open(path, receiveBuffer: 4_096)
            let begin = try stream.read(100_000)
            let others = (0..<20).map { segment("push\($0)", 1_000_000) }
            for other in others { #expect(isContent(try story.get(other).body, of: other)) }
            #expect(isContent(begin + (try stream.readRest()), of: path))
            #expect(try story.settled("stored_bytes") { $0 <= 6_000_000 } <= 6_000_000)
        }

        @Test func `a body larger than the whole cache streams`() throws {
            let story = try Story(["--cache-size", "2MB", "--min-free", "0"])
            let path = segment("whale", 12_000_000)
            let answers = try inParallel(3) { _ in try story.get(path) }
            for answer in answers { #expect(isContent(answer.body, of: path)) }
            #expect(try story.settled("stored_bytes") { $0 <= 2_000_000 } <= 2_000_000)
        }

        @Test func `each response that is passed on for want of room is counted`() throws {
            let story = try Story(["--cache-size", "2MB", "--min-free", "0"])
            for count in 1...3 {
                let path = segment("whale\(count)", 3_000_000)
                let answer = try story.get(path)
                #expect(answer["Cache-Status"]?.contains("detail=no-room") == true)
                #expect(isContent(answer.body, of: path))
                #expect(try story.stat("not_stored_total") == count)
            }
        }

        @Test func `parts of one body that do not fit together all arrive`() throws {
            let story = try Story(["--cache-size", "4MB", "--min-free", "0"])
            let size = 16_000_000
            let path = segment("parts", size)
            story.cdn.setBehaviour(Behaviour(query: "rate=8000000"), for: path)
            let answers = try inParallel(8) { part in
                let start = part * 2_000_000
                return try story.get(path, range: "bytes=\(start)-\(start + 1_999_999)").body
            }
            for (part, body) in answers.enumerated() {
                #expect(isContent(body, of: path, from: part * 2_000_000, count: 2_000_000))
            }
            #expect(try story.stat("own_errors_total") == 0)
        }

        @Test(
            .enabled(if: isRoot, "mounting a small file system needs root"),
            arguments: [("fb=0", 12_000_000), ("chunked=1", 12_000_000), ("fb=0", 72_000_000)])
        func `a disk that fills up in the middle does not stop the stream`(
            framing: String, size: Int
        ) throws {
            let disk = try MountedDisk(megabytes: 8)
            let story = try Story(["--min-free", "0"], cacheFolder: disk.path)
            let small = segment("small", 100_000)
            _ = try story.get(small)
            let path = segment("flood", size)
            story.cdn.setBehaviour(Behaviour(query: framing), for: path)
            let answers = try inParallel(2) { _ in try story.get(path) }
            for answer in answers { #expect(answer.complete && isContent(answer.body, of: path)) }
            // A body whose length exceeds the room is not attempted.
            let refused = try story.stat("storage_failures_total") + story.stat("bypassed_total")
            #expect(refused > 0)
            #expect(isContent(try story.get(path).body, of: path))
            try story.restart()
            #expect(isContent(try story.get(path).body, of: path))
            #expect(isContent(try story.get(small).body, of: small))
            story.stop()
        }

        @Test(.enabled(if: isRoot, "mounting a small file system needs root"))
        func `a full disk evicts old objects for new ones`() throws {
            let disk = try MountedDisk(megabytes: 8)
            let story = try Story(["--min-free", "1MB"], cacheFolder: disk.path)
            for index in 0..<40 {
                let path = segment("roll\(index)", 500_000)
                #expect(isContent(try story.get(path).body, of: path))
            }
            // Eviction has made room; after the pause for a full disk, storing resumes.
            let path = segment("kept", 500_000)
            let isKept = try eventually(within: .seconds(15)) {
                try story.get(path)["Cache-Status"]?.contains("hit") == true
            }
            #expect(isKept)
            #expect(isContent(try story.get(path).body, of: path))
            story.stop()
        }

        @Test(.enabled(if: isRoot && Tool.exists("setpriv"), "needs setpriv and root"))
        func `a folder that rejects all writes stops no stream`() throws {
            let story = try Story(mayWriteAnywhere: false)
            let before = segment("before", 300_000)
            _ = try story.get(before)
            let modes: (mode_t) -> Void = { mode in
                for name in ["/new", "/objects", ""] { chmod(story.cacheFolder + name, mode) }
                for name in listFolder(story.cacheFolder + "/objects") {
                    chmod(story.cacheFolder + "/objects/" + name, mode)
                }
            }
            modes(0o555)
            for index in 0..<5 {
                let path = segment("during\(index)", 300_000)
                #expect(isContent(try story.get(path).body, of: path))
            }
            #expect(isContent(try story.get(before).body, of: before))
            modes(0o755)
            try story.restart()
            #expect(isContent(try story.get(before).body, of: before))
            #expect(story.cdn.requestCount(before) == 1)
        }
    }
}

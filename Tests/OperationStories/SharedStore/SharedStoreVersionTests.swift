import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Stories of objects that change while a node reads or writes them.
extension Stories.SharedStoreTests {
    @Test func `a shorter version in the store replaces the header of the longer one`() throws {
        let tier = try Tier()
        let path = "/f/film.ts"
        let long = FixtureCDN.syntheticBytes("film.ts", 0..<900_000)
        /// Has a fresh node write the version that the origin has.
        func written() throws -> [String: [UInt8]] {
            tier.bucket.objects = [:]
            let node = try tier.patientNode()
            _ = try node.get(path)
            #expect(try node.settled("writes_total") { $0 == 1 } == 1)
            return tier.bucket.cached
        }
        tier.cdn.put(path, text: "short")
        let short = try written()
        tier.cdn.put(path, long)
        #expect(try written().keys == short.keys)
        let node = try tier.patientNode()
        #expect(isSame(try node.get(path, range: "bytes=0-99999").body, Array(long[..<100_000])))
        #expect(try node.stat("hits_total") == 1)
        tier.bucket.objects = short
        for start in [300_000, 500_000, 700_000] {
            let part = try node.get(path, range: "bytes=\(start)-\(start + 99_999)")
            #expect(isSame(part.body, Array(long[start..<start + 100_000])))
        }
        #expect(try node.stat("failures_total") == 0 && node.stat("up") == 1)
    }

    @Test func `an origin's error is not kept back for longer where a read takes two requests`()
        throws
    {
        let tier = try Tier()
        let paths = (1...3).map { "/bytes/400000/gone\($0).ts" }
        let first = try tier.patientNode()
        for path in paths { #expect(isContent(try first.get(path).body, of: path)) }
        #expect(try first.settled("writes_total") { $0 == paths.count } == paths.count)
        tier.cdn.setBehaviour(Behaviour(query: "status=404"), for: "/bytes/*")
        // The header and the bytes, each within the time for one request: four seconds for both.
        tier.bucket.fault = .slowReads("/o/", 2_000)
        let second = try tier.node()
        let statuses = try inParallel(paths.count) { index in
            try second.get(paths[index], range: "bytes=300000-399999").status
        }
        #expect(statuses == [404, 404, 404])
        #expect(try second.stat("hits_total") == 0 && second.stat("losses_total") == 3)
        // It has kept the limit of each request, so that what takes one may still be read.
        #expect(try second.stat("failures_total") == 0 && second.stat("up") == 1)
    }

    @Test func `an error that is known before the store is asked waits no longer for it`() throws {
        let tier = try Tier()
        let path = "/bytes/400000/gone.ts"
        let (second, hole) = try tier.nodeOfSilentOrigin(afterWriting: path)
        defer { hole.end() }
        // The header and the bytes take four seconds.
        tier.bucket.fault = .slowReads("/o/", 2_000)
        #expect(try second.get(path, range: "bytes=300000-399999").status == 504)
        #expect(try second.stat("hits_total") == 0 && second.stat("up") == 1)
    }

    @Test func `an object that the own disk has lost is dropped, and the next one is written`()
        throws
    {
        let tier = try Tier()
        tier.bucket.fault = .slow(2_000)
        let node = try tier.patientNode()
        let path = "/bytes/20000000/film.mp4"
        #expect(isContent(try node.get(path).body, of: path))
        // Its checksums are known then, and no part of it was read.
        #expect(eventually { tier.bucket.requests.contains { $0.method == "POST" } })
        let file = try #require(storedFiles(node.story.cacheFolder).first)
        #expect(truncate(file, 100_000) == 0)
        #expect(try node.settled("dropped_writes_total") { $0 == 1 } == 1)
        #expect(try node.stat("write_failures_total") == 0)
        tier.bucket.fault = nil
        let next = "/bytes/20000/next.ts"
        #expect(isContent(try node.get(next).body, of: next))
        #expect(try node.settled("writes_total") { $0 == 1 } == 1)
        #expect(eventually { tier.bucket.openUploads == 0 })
    }
}

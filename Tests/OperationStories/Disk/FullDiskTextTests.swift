import FixtureCDN
import ScenarioSupport
import Testing

extension Stories {
    @Suite(
        .tags(.crowded),
        .enabled(if: Tool.cCompiler != nil, "faults are made by a library that is built here"))
    struct FullDiskTextTests {
        @Test func `a list that fills the disk halfway still reaches all its players`() throws {
            let disk = try FullDisk()
            let story = disk.story
            let path = "/full/list.m3u8"
            story.cdn.put(path, text: vod((0..<4_000).map { "s\($0).ts" }))
            story.cdn.setBehaviour("chunked=1", for: path)
            story.cdn.hold(path, afterBytes: 20_000)
            let known = try story.stat("requests_total")
            let empty = diskBytes(story.cacheFolder)
            let players = (0..<3).map { _ in Background { try story.get(path) } }
            #expect(try story.haveArrived(3, since: known))
            #expect(eventually { diskBytes(story.cacheFolder) > empty }, "the beginning is stored")
            try disk.fill()
            story.cdn.release(path)
            for player in players {
                let answer = try player.value()
                #expect(answer.status == 200 && answer.complete)
                #expect(answer.text.contains("s3999.ts"))
            }
            #expect(story.cdn.requestCount(path) == 2)
            try disk.makeRoom()
        }
    }
}

import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The file of what waits to be written to the shared store.
extension Stories {
    @Suite(.tags(.crowded)) struct SharedQueueTests {
        @Test func `a queue that cannot be read at a start is kept, and taken up later`() throws {
            let tier = try Tier()
            tier.bucket.fault = .refusingWrites(503)
            let node = try tier.patientNode()
            _ = try node.get("/bytes/20000/a.ts")
            #expect(try node.settled("waiting_writes") { $0 == 1 } == 1)
            node.story.stop()
            tier.bucket.fault = nil
            let path = node.story.cacheFolder + "/shared-store-queue"
            #expect(rename(path, path + ".kept") == 0)
            // A link to itself cannot be opened, not even by root.
            #expect(symlink(path, path) == 0)
            try node.story.restart()
            // This run's own writes do not replace it either.
            _ = try node.get("/bytes/20000/b.ts")
            #expect(try node.settled("writes_total") { $0 == 1 } == 1)
            var target: [CChar] = [0]
            #expect(readlink(path, &target, 1) == 1, "it is still there")
            #expect(rename(path + ".kept", path) == 0)
            #expect(try node.settled("writes_total") { $0 == 2 } == 2)
            #expect(eventually(within: .seconds(30)) { access(path, F_OK) != 0 })
        }
    }
}

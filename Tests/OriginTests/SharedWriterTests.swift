import BucketClient
import Glibc
import HLS
import Logging
import Model
import Posix
import Reactor
import SharedStore
import Store
import Synchronization
import Testing
import URISyntax
import Upstream

@testable import Origin

/// Writing to the second level: failed writes, and a stop of the daemon.
@Suite struct SharedWriterTests {
    private static let url = "http://h/film.m3u8"
    private static let text =
        "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na.ts\n#EXT-X-ENDLIST\n"

    /// Whether each of several failed writes of one object counts as an attempt.
    private func attempts(
        _ failures: [(failure: BucketFailure, written: Int)]
    ) throws -> [Bool] {
        var candidate = SharedCandidate(
            key: ObjectKey(sha256Of: "a"), generation: 1, url: try AbsoluteURL("http://h/a.ts"),
            role: ResourceRole.media.letter, isKey: false, setsCookies: false, isFilm: true)
        let counts = failures.map { candidate.failed($0.failure, written: $0.written) }
        #expect(candidate.attempts == counts.count { $0 })
        return counts
    }

    private static let refusal = BucketFailure.refused(status: 403, code: "AccessDenied")

    @Test func `a 403 counts against an object once another was written after the first one`()
        throws
    {
        let refused = [7, 7, 8, 8, 8].map { (failure: Self.refusal, written: $0) }
        #expect(try attempts(refused) == [false, false, true, true, true])
    }

    @Test func `a 403 for all objects counts against none`() throws {
        let refused = Array(repeating: (failure: Self.refusal, written: 7), count: 20)
        #expect(try attempts(refused) == Array(repeating: false, count: 20))
    }

    @Test(arguments: ["ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"])
    func `credentials that are refused now and then count against no object`(code: String) throws {
        let refusal = BucketFailure.refused(status: 403, code: code)
        let refused = [7, 8, 8, 8, 9].map { (failure: refusal, written: $0) }
        #expect(try attempts(refused) == Array(repeating: false, count: 5))
    }

    @Test func `what fails because of the store counts against no object`() throws {
        let failures: [BucketFailure] = [
            Self.refusal, .refused(status: 503, code: nil),
            .failed(UpstreamError(.connect, host: "store.test")), .refused(status: 401, code: nil),
            .refused(status: 413, code: nil),
        ]
        let failed = failures.enumerated().map { (failure: $1, written: $0) }
        #expect(try attempts(failed) == [false, false, false, false, true])
    }

    @Test func `a stop leaves the object that is being read to the next run`() throws {
        let folder = try makeTemporaryFolder("shared-writer")
        defer { removeTree(folder) }
        let log = Logger(label: "shared-writer-tests")
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0), log: log)
        defer { store.close() }
        let object = try keepPlaylist(Self.text, at: Self.url, in: store)
        var settings = SharedStoreSettings(
            try BucketLocation("s3://films/tier"), keys: AccessKeys(id: "a", secret: "b")
        ) { nil }
        let backlog = folder + "/shared-store-queue"
        settings.backlogFile = backlog
        let sent = Atomic<Int>(0)
        let writer = SharedWriter(
            store: store, counters: Counters(), report: SharedStoreReport(settings.location),
            log: log, limits: .standard, settings: settings,
            onLevel: { _ in sent.add(1, ordering: .relaxed) })
        let (hasBegun, mayEnd) = (try ThreadSemaphore(), try ThreadSemaphore())
        writer.offer(
            SharedCandidate(
                key: object.key, generation: object.generation, url: try AbsoluteURL(Self.url),
                // Playlists wait for their children before they join the queue.
                role: ResourceRole.media.letter, isKey: false, setsCookies: false, isFilm: true,
                isLive: {
                    // Asked in the midst of the reading.
                    hasBegun.signal()
                    _ = mayEnd.wait(atMost: .seconds(20 as Int64))
                    return false
                }))
        #expect(hasBegun.wait(atMost: .seconds(20 as Int64)))
        let stopper = try PosixThread(name: "stop") { writer.stop() }
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while !writer.stopping.isTold, .now() < deadline { sched_yield() }
        mayEnd.signal()
        stopper.join()
        #expect(sent.load(ordering: .relaxed) == 0)
        let waiting = WriteBacklog.parse(try readWhole(backlog, atMost: WriteBacklog.largest))
        #expect(waiting.map(\.key) == [object.key.hex])
    }
}

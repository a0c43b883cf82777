import DurableState
import HTTP
import Library
import Model
import Posix
import Store
import Testing
import URISyntax

@testable import Ahead
@testable import SharedStore

/// What becomes of downloads after a restart.
@Suite struct SavedDownloadTests {
    private func record(_ state: String, _ reason: String? = nil) throws -> DownloadRecord {
        let order = DownloadOrder(url: try AbsoluteURL("http://h/m.m3u8"))
        var record = DownloadRecord(id: 7, order: order.record)
        (record.state, record.reason) = (state, reason)
        (record.pieces, record.done, record.bytes) = (10, 4, 4_000)
        return record
    }

    private func saved(_ state: String, _ reason: String? = nil) throws -> SavedDownload {
        try #require(SavedDownload(try record(state, reason)))
    }

    @Test(arguments: ["running", "a state of a later version"])
    func `a download that was under way begins by checking what is stored`(_ state: String) throws {
        let saved = try saved(state, "left over")
        #expect(saved.state == .queued)
        #expect(saved.summary.pieces == 10 && saved.summary.done == 4)
    }

    @Test func `a download that rests stays as it was, with its reason`() throws {
        let paused = try saved("paused", "it may have crashed the daemon")
        #expect(paused.state == .paused(reason: "it may have crashed the daemon"))
        let failed = try saved("failed", "no")
        #expect(failed.state == .failed("no"))
        #expect(try saved("failed").state == .failed(""))
        #expect(try saved("complete").state == .complete)
    }

    @Test func `a complete download keeps the time of its last refresh and why that failed`() throws
    {
        var record = try record("complete", "the origin answered 503")
        #expect(SavedDownload(record)?.lastRefresh == nil)
        record.refreshed = 1_795_000_000
        let ended = WallTime(seconds: 1_795_000_000)
        #expect(
            SavedDownload(record)?.lastRefresh
                == Download.LastRefresh(ended: ended, failure: "the origin answered 503"))
        // This reason is that of the state.
        record.state = "failed"
        #expect(
            SavedDownload(record)?.lastRefresh
                == Download.LastRefresh(ended: ended, failure: nil))
    }

    @Test func `two refreshes that end within a second have different times`() {
        let now = WallTime(seconds: 1_795_000_000)
        var last = Download.LastRefresh(endingAt: now, after: nil, failure: nil)
        #expect(last.ended == now)
        for _ in 0..<3 {
            let next = Download.LastRefresh(endingAt: now, after: last, failure: nil)
            #expect(next.ended.seconds != last.ended.seconds)
            last = next
        }
        let later = WallTime(seconds: 1_795_000_009)
        #expect(Download.LastRefresh(endingAt: later, after: last, failure: nil).ended == later)
    }

    @Test func `a download keeps the keys of what its next refresh removes`() throws {
        var record = try record("complete")
        #expect(SavedDownload(record)?.formerKeys.isEmpty == true)
        let keys = [ObjectKey(sha256Of: "a"), ObjectKey(sha256Of: "b")]
        // A damaged row ends within a key.
        record.formerKeys = keys.flatMap(\.bytes) + [1, 2, 3]
        #expect(SavedDownload(record)?.formerKeys == Set(keys))
    }

    @Test func `the name that an earlier version made of a token is not shown`() throws {
        let order = DownloadOrder(url: try AbsoluteURL("http://h/films/sea.m3u8?tok=s3cret-token"))
        var record = DownloadRecord(id: 7, order: order.record)
        record.name = "My s3cret-token"
        #expect(SavedDownload(record)?.name == "films/sea")
        record.name = "The Sea"
        #expect(SavedDownload(record)?.name == "The Sea")
    }

    @Test func `a name that this version made stays, though its URL has it too`() throws {
        let order = DownloadOrder(url: try AbsoluteURL("http://h/play.m3u8?title=The%20Harbour"))
        var record = DownloadRecord(id: 7, order: order.record)
        record.name = "The Harbour"
        #expect(SavedDownload(record)?.name == "h/play")
        record.hasCleanName = true
        #expect(SavedDownload(record)?.name == "The Harbour")
    }

    @Test func `the name that a node of an earlier version made of a token is not listed`() throws {
        let id = try #require(SharedOrderID(.download, "7"))
        let url = PercentCoding.queryComponent("http://h/films/sea.m3u8?tok=s3cret-token")
        let order = try #require(
            SharedOrder(id, .run, query: "url=\(url)", given: WallTime(seconds: 1), node: "a"))
        func listed(_ name: String) -> String {
            let progress = SharedOrderProgress(
                id: id, state: "running", percent: 1, bytes: 1, name: name)
            let view = OrderBoard.View(
                order: order, holder: "a", holderName: "a", progress: progress, isHeard: true,
                isHere: false, isRefused: false)
            return view.downloadJSON.encoded
        }
        #expect(!listed("My s3cret-token").contains("s3cret"))
        #expect(listed("The Sea").contains("The Sea"))
    }

    @Test func `an incomplete download shows at most 99 percent`() {
        var summary = Download.Summary()
        #expect(summary.percent == 0)
        summary.pieces = 1_000
        var last: Int64 = 0
        for done in 0...1_000 {
            summary.done = done
            #expect(summary.percent >= last && summary.percent <= 99)
            last = summary.percent
        }
        #expect(last == 99)
    }
}

// A client on its own loop thread, and probes that record the reports of its transfers.
import Glibc
import HTTP
import Posix
import Reactor
import Synchronization
import Testing
import URISyntax
import Upstream

/// The reports of a transfer so far.
struct Record: Sendable {
    var starts = 0
    var heads: [TransferHead] = []
    var interims: [ResponseHead] = []
    var body: [UInt8] = []
    var offers = 0
    var roundEnds = 0
    var redirects: [Redirect] = []
    var results: [TransferResult] = []

    var failure: UpstreamError? {
        guard case .failure(let error)? = results.first else { return nil }
        return error
    }

    var timings: TransferTimings? {
        guard case .success(let timings)? = results.first else { return nil }
        return timings
    }

    var status: UInt16? { heads.first?.status.rawValue }
    var text: String { String(decoding: body, as: UTF8.self) }
}

/// The actions of a test within delegate calls; each closure runs on the loop.
struct Script: Sendable {
    var onStart: @Sendable (Transfer) -> Void = { _ in }
    var onHead: @Sendable (Transfer) -> Void = { _ in }
    /// Receives the number of the offer, from 1.
    var onBytes: @Sendable (Transfer, Int) -> Void = { _, _ in }
    var onRedirect: @Sendable (Redirect) -> String? = { _ in nil }
}

/// Waits for a condition, which is looked at after each `pause`; false if it does not hold within
/// `limit`.
@discardableResult
func comesTrue(
    within limit: Duration = .seconds(10), pausing pause: Duration = .microseconds(500),
    _ condition: () throws -> Bool
) rethrows -> Bool {
    let end = ContinuousClock.now + limit
    while try !condition() {
        guard ContinuousClock.now < end else { return false }
        usleep(UInt32(pause / .microseconds(1)))
    }
    return true
}

/// Records one transfer; readable from the test's thread.
final class Probe: Sendable {
    let record = Mutex(Record())
    let transfer = Mutex<LoopBound<Transfer>?>(nil)

    /// The record once `condition` holds; an issue after ten seconds.
    @discardableResult
    func wait(
        _ what: String = "the end", sourceLocation: SourceLocation = #_sourceLocation,
        until condition: (Record) -> Bool = { !$0.results.isEmpty }
    ) -> Record {
        var done: Record?
        comesTrue {
            // Copied only at the end: an earlier copy would make each later append copy the body.
            done = record.withLock { condition($0) ? $0 : nil }
            return done != nil
        }
        if let done { return done }
        Issue.record("waited in vain for \(what)", sourceLocation: sourceLocation)
        return record.withLock { $0 }
    }

    /// Runs `body` with the transfer on the loop.
    func act(_ body: @escaping @Sendable (Transfer) -> Void) {
        comesTrue { transfer.withLock { $0 != nil } }
        transfer.withLock { $0 }?.enqueue { transfer, _ in body(transfer) }
    }
}

private final class Recorder: TransferDelegate {
    let probe: Probe
    let script: Script

    init(_ probe: Probe, _ script: Script) {
        self.probe = probe
        self.script = script
    }

    func transferDidStart(_ transfer: Transfer) {
        probe.record.withLock { $0.starts += 1 }
        script.onStart(transfer)
    }

    func transfer(_ transfer: Transfer, willFollow redirect: Redirect) -> String? {
        probe.record.withLock { $0.redirects.append(redirect) }
        return script.onRedirect(redirect)
    }

    func transfer(_ transfer: Transfer, didReceiveInterim head: ResponseHead) {
        probe.record.withLock { $0.interims.append(head) }
    }

    func transfer(_ transfer: Transfer, didReceive head: TransferHead) {
        probe.record.withLock { $0.heads.append(head) }
        script.onHead(transfer)
    }

    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) {
        let offer = probe.record.withLock { record in
            record.offers += 1
            return record.offers
        }
        script.onBytes(transfer, offer)
        probe.record.withLock { $0.body += bytes }
    }

    func transferRoundDidEnd(_ transfer: Transfer) {
        probe.record.withLock { $0.roundEnds += 1 }
    }

    func transfer(_ transfer: Transfer, didFinish result: TransferResult) {
        probe.record.withLock { $0.results.append(result) }
    }
}

/// A client and its thread; `stop` ends both.
final class Harness: Sendable {
    private let thread: LoopThread
    private let client: LoopBound<UpstreamClient>

    init(_ change: @escaping @Sendable (inout UpstreamConfiguration) -> Void = { _ in }) throws {
        let made = Made()
        thread = try LoopThread(name: "upstream") { loop in
            var configuration = UpstreamConfiguration()
            configuration.addressPolicy.allowsPrivate = true
            change(&configuration)
            let client = try? UpstreamClient(loop: loop, configuration: configuration)
            if let client { made.client.withLock { $0 = LoopBound(client, to: loop) } }
        }
        comesTrue { made.client.withLock { $0 != nil } }
        client = try #require(made.client.withLock { $0 })
    }

    private final class Made: Sendable {
        let client = Mutex<LoopBound<UpstreamClient>?>(nil)
    }

    func start(_ request: TransferRequest, _ script: Script = Script()) -> Probe {
        let probe = Probe()
        client.enqueue { client, loop in
            let transfer = client.start(request, delegate: Recorder(probe, script))
            probe.transfer.withLock { $0 = LoopBound(transfer, to: loop) }
        }
        return probe
    }

    func start(_ url: String, lane: Lane = .playback, _ script: Script = Script()) throws -> Probe {
        start(TransferRequest(url: try AbsoluteURL(url), lane: lane), script)
    }

    /// Fetches and waits for the end.
    func fetch(
        _ url: String, _ change: (inout TransferRequest) -> Void = { _ in },
        script: Script = Script(), sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Record {
        var request = TransferRequest(url: try AbsoluteURL(url))
        change(&request)
        return start(request, script).wait(sourceLocation: sourceLocation)
    }

    /// The client's counters, read on its loop.
    func statistics() -> UpstreamStatistics? {
        let found = Found()
        client.enqueue { client, _ in found.value.withLock { $0 = client.statistics() } }
        comesTrue(pausing: .microseconds(200)) { found.value.withLock { $0 != nil } }
        return found.value.withLock { $0 }
    }

    private final class Found: Sendable {
        let value = Mutex<UpstreamStatistics?>(nil)
        let figures = Mutex<TransferFigures?>(nil)
    }

    /// The transfer figures, read on the client's loop.
    func figures() -> TransferFigures? {
        let found = Found()
        client.enqueue { client, _ in found.figures.withLock { $0 = client.figures } }
        comesTrue { found.figures.withLock { $0 != nil } }
        return found.figures.withLock { $0 }
    }

    /// Runs `body` with the client on its loop.
    func act(_ body: @escaping @Sendable (UpstreamClient) -> Void) {
        client.enqueue { client, _ in body(client) }
    }

    func shutDown() { client.enqueue { client, _ in client.shutdown() } }

    func stop() {
        shutDown()
        thread.stopAndJoin()
    }
}

// The upstream half of a passed-through request.
package import HTTP
package import Model
import Reactor
package import Upstream

/// What the server loop is sent: any number of interim heads, then a head or a failure.
package enum PassthroughEvent: Sendable {
    case interim(ResponseHead)
    case head(TransferHead)
    /// Only before a head; after it, the pipe reports the failure.
    case failed(UpstreamError)
}

/// One transfer whose body goes into a pipe.
///
/// Lives on the upstream loop, from its start to `didFinish`.
final class PassthroughFlight: TransferDelegate {
    private let pipe: BytePipe
    private let counters: Counters
    private let loop: EventLoop
    private let report: @Sendable (PassthroughEvent) -> Void
    private let ended: () -> Void
    private var transfer: Transfer?
    private var hasHead = false
    /// Bytes still to come; nil if only the end of the transfer delimits the body.
    private var remaining: Int64?

    init(
        into pipe: BytePipe, loop: EventLoop, counters: Counters, ended: @escaping () -> Void,
        report: @escaping @Sendable (PassthroughEvent) -> Void
    ) {
        self.pipe = pipe
        self.counters = counters
        self.report = report
        self.ended = ended
        self.loop = loop
    }

    func start(_ request: TransferRequest, on client: UpstreamClient) {
        transfer = client.start(request, delegate: self)
    }

    func cancel() { transfer?.cancel() }

    // MARK: TransferDelegate

    func transferDidStart(_ transfer: Transfer) { counters.add(.originRequests) }

    func transfer(_ transfer: Transfer, didReceiveInterim head: ResponseHead) {
        report(.interim(head))
    }

    func transfer(_ transfer: Transfer, didReceive head: TransferHead) {
        hasHead = true
        remaining = head.contentLength
        report(.head(head))
        if remaining == 0 { pipe.end(isWhole: true) }
    }

    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) {
        counters.add(.bytesFromOrigin, Int64(bytes.count))
        let bound = LoopBound(self, to: loop)
        let hasRoom = pipe.write(bytes) {
            bound.enqueue { flight, _ in flight.transfer?.resume() }
        }
        if !hasRoom { transfer.pause() }
        guard let left = remaining.map({ $0 - Int64(bytes.count) }) else { return }
        remaining = left
        // The origin may respond in full before it has the whole request.
        if left <= 0 { pipe.end(isWhole: true) }
    }

    func transfer(_ transfer: Transfer, didFinish result: TransferResult) {
        self.transfer = nil
        switch result {
        case .success:
            pipe.end(isWhole: true)
        case .failure(let error):
            if error.kind != .cancelled { counters.add(.originFailures) }
            pipe.end(isWhole: false)
            if !hasHead { report(.failed(error)) }
        }
        ended()
    }
}

/// All passed-through requests, with a separate client: however slowly clients send and read, they
/// hold no slot that playback waits for.
///
/// Lives on the upstream loop.
final class PassthroughTable {
    /// The most concurrent requests, beside the extra ones that `AdmissionQueue` allows so that a
    /// slow host does not starve the others; further ones wait.
    private static let slots = 128

    let client: UpstreamClient
    private let counters: Counters
    private var flights: [FetchID: PassthroughFlight] = [:]

    /// Shares settings, figures and TLS sessions with `other`, but neither slots nor connections.
    ///
    /// - Throws: `UpstreamError` when libcurl cannot start.
    init(loop: EventLoop, like other: UpstreamClient, counters: Counters) throws(UpstreamError) {
        var configuration = other.configuration
        configuration.slots = Self.slots
        configuration.perHostLimit = 0
        configuration.hostLimits = HostLimits()
        configuration.queueLimit = 1024
        configuration.hasSlotOptions = false
        client = try UpstreamClient(loop: loop, configuration: configuration, sharing: other)
        self.counters = counters
    }

    func start(
        _ request: TransferRequest, id: FetchID, into pipe: BytePipe,
        report: @escaping @Sendable (PassthroughEvent) -> Void
    ) {
        let flight = PassthroughFlight(
            into: pipe, loop: client.loop, counters: counters,
            ended: { [weak self] in self?.flights[id] = nil }, report: report)
        flights[id] = flight
        flight.start(request, on: client)
    }

    func cancel(_ id: FetchID) { flights[id]?.cancel() }
}

extension Flights {
    /// Passes a request through; `report` is called on the upstream loop.
    package func passThrough(
        _ request: TransferRequest, id: FetchID, into pipe: BytePipe,
        report: @escaping @Sendable (PassthroughEvent) -> Void
    ) {
        onLoop { table in
            do throws(UpstreamError) {
                try table.passthroughs().start(request, id: id, into: pipe, report: report)
            } catch {
                report(.failed(error))
            }
        }
    }

    /// Cancels a passed-through request unless it has ended.
    package func cancelPassthrough(_ id: FetchID) {
        onLoop { $0.openPassthroughs?.cancel(id) }
    }
}

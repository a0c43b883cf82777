// The upstream loop as the threads of the server see it: its start, its end, requests sent to it.
import Library
import Model
import HTTP
import Logging
import Posix
import Reactor
import Store
import Synchronization
import URISyntax
import Upstream

/// What the upstream loop shares with the server loops.
struct FlightCore: Sendable {
    let store: ObjectStore
    let settings: ProxySettings
    let counters: Counters
    let readers: Readers
    let isShared: Bool
    let keys: KeyTable
    let playlistMemory: PlaylistMemory
    let live: LiveMemory
    let texts: TextWorker
    let health: OriginHealth
    let log: Logger
    let ahead: AheadGauge
    let concurrency: ConcurrencyReport
    let lines: LineSpeeds
}

/// The flights as other threads see them.
package final class Flights: Sendable {
    private let thread: LoopThread
    private let table: Mutex<LoopBound<FlightTable>?>

    /// Starts the upstream loop; blocks until libcurl is ready.
    init(core: FlightCore, configuration: UpstreamConfiguration) throws {
        let ready = try Latch()
        let holder = TableHolder()
        thread = try LoopThread(
            name: "upstream", onHold: core.counters.loopHoldObserver(log: core.log)
        ) { loop in
            holder.install(core, configuration, on: loop)
            ready.open()
        }
        guard ready.wait(atMost: .seconds(10)), let bound = holder.table else {
            throw ProxyFailure(.us, .internalServerError, "libcurl could not be started")
        }
        table = Mutex(bound)
    }

    private final class TableHolder: Sendable {
        private let made = Mutex<LoopBound<FlightTable>?>(nil)

        var table: LoopBound<FlightTable>? { made.withLock { $0 } }

        func install(_ core: FlightCore, _ configuration: UpstreamConfiguration, on loop: EventLoop)
        {
            guard let client = try? UpstreamClient(loop: loop, configuration: configuration) else {
                return
            }
            let bound = LoopBound(FlightTable(loop: loop, client: client, core: core), to: loop)
            made.withLock { $0 = bound }
        }
    }

    private func enqueue(_ body: @escaping @Sendable (FlightTable) -> Void) {
        let bound = table.withLock { $0 }
        bound?.enqueue { table, _ in body(table) }
    }

    /// Runs `body` on the upstream loop.
    func onLoop(_ body: @escaping @Sendable (FlightTable) -> Void) { enqueue(body) }

    /// Starts or joins a flight; `reply` is called once, on the upstream loop, unless cancelled.
    func fetch(
        _ request: FetchRequest, id: FetchID, reply: @escaping @Sendable (FetchReply) -> Void
    ) {
        enqueue { $0.fetch(request, id: id, reply: reply) }
    }

    /// Asks origins whether they answer; `reply` is called once, on the upstream loop.
    func inquire(of urls: [AbsoluteURL], reply: @escaping @Sendable () -> Void) {
        enqueue { $0.inquiries.ask(urls, reply: reply) }
    }

    /// Takes a request back; its reply may still be on its way.
    func cancel(_ id: FetchID) {
        enqueue { $0.cancel(id) }
    }

    /// Tells that a reader of an object that is not complete has gone.
    func readerLeft(_ key: ObjectKey) {
        enqueue { $0.readerLeft(key) }
    }

    /// Asks for the upstream figures; `reply` is called on the upstream loop.
    func statistics(_ reply: @escaping @Sendable (UpstreamStatistics) -> Void) {
        enqueue { reply($0.client.statistics()) }
    }

    /// Cancels all transfers and ends the loop; blocks.
    package func stop() {
        enqueue { $0.shutdown() }
        thread.stopAndJoin()
        table.withLock { $0 = nil }
    }
}

// The second level on the upstream loop: whether it is asked, its requests, what it is told.
import BucketClient
import CachePolicy
import DurableState
import HTTP
import Logging
import Model
import Posix
import Reactor
import SharedStore
import Store
import Upstream

/// The object store that nodes share; lives on the upstream loop.
final class SharedLevel {
    /// The most pages of a listing: gateways that ignore the token of a page repeat it for ever.
    static let mostPages = 200
    let settings: SharedStoreSettings
    let bucket: BucketClient
    let report: SharedStoreReport
    let counters: Counters
    let log: Logger
    let loop: EventLoop
    private(set) var writer: SharedWriter?
    private var health = StoreHealth()
    /// Headers of objects that were read in part, by key.
    var headers = RecentMap<ObjectKey, KnownHeader>(capacity: 64)
    private(set) var isShutDown = false
    /// When the credentials were last read again because of a refusal.
    private var keysReadAt: Monotonic?
    /// The shortest time between two such readings: a refusal may concern one object for good.
    private static let keysPause = Interval.seconds(10 as Int64)
    /// Purges and pins of other nodes.
    private(set) lazy var changes = SharedChanges(self, keys: keys, node: node)
    /// Downloads and recordings of all nodes.
    private(set) var orders: SharedOrders?
    private let keys: KeyTable
    private let node: NodeChanges

    /// A header, and the entity tag of the object that it belongs to.
    struct KnownHeader: Sendable {
        let header: SharedHeader
        let tag: String?
    }

    /// Nil, and logged, if libcurl has no resources for it.
    init?(
        _ level: FlightServices.SecondLevel, loop: EventLoop, client: UpstreamClient,
        services: FlightServices
    ) {
        let (settings, report) = (level.settings, level.report)
        self.settings = settings
        self.loop = loop
        self.report = report
        counters = services.counters
        keys = services.keys
        log = services.log
        node = level.changes
        do throws(UpstreamError) {
            bucket = try BucketClient(
                settings.location, keys: settings.keys, loop: loop, like: client)
        } catch {
            report.note(isUp: false, reason: error.message)
            services.log.error("the shared store is not used: \(error.message)")
            return nil
        }
        let bound = LoopBound(self, to: loop)
        writer = SharedWriter(
            store: services.store, counters: services.counters, report: report, log: services.log,
            limits: services.settings.playlistLimits, settings: settings,
            onLevel: { work in bound.enqueue { level, _ in work(level) } })
        orders = SharedOrders(self, level.orders, state: services.store.state)
        bucket.didRefuseKeys = { [weak self] in self?.readKeysAgain() }
        bucket.didMissBucket = { [weak self] in self?.missedBucket() }
    }

    var isUp: Bool { health.state == .up && !isShutDown }

    func forgetHeaders() { headers = RecentMap(capacity: 64) }

    // MARK: Health

    /// Notes an answer that was in time.
    func answered() { health.answered() }

    func failed(_ reason: String) {
        counters.add(.sharedFailures)
        log.info("the shared store failed", metadata: ["reason": "\(reason)"])
        if let pause = health.failed() { leaveOut(reason, probeAfter: pause) }
    }

    /// Notes that an object was written.
    func wrote() { health.wrote() }

    /// Notes that the origin answered first.
    func lost() {
        counters.add(.sharedLosses)
        let pause = health.lost()
        if let pause { leaveOut("it is slower than the origins", probeAfter: pause) }
    }

    /// Notes a read that was so slow that the origin sends the rest.
    func slowed() {
        counters.add(.sharedLosses)
        if let pause = health.slowed() { leaveOut("it sends too slowly", probeAfter: pause) }
    }

    /// Notes a read that brought all of its bytes.
    func completed(_ bytes: Int64) { health.completed(bytes) }

    private func missedBucket() {
        guard let pause = health.missedBucket() else { return }
        leaveOut("the bucket does not exist", probeAfter: pause)
    }

    private func leaveOut(_ reason: String, probeAfter pause: Interval) {
        counters.add(.sharedOutages)
        report.note(isUp: false, reason: reason)
        log.warning(
            "the shared store is left out; origins are asked without it",
            metadata: ["store": "\(settings.location)", "reason": "\(reason)"])
        probe(after: pause)
    }

    /// Asks for an object that nobody writes: 404 is the answer of a store that works.
    private func probe(after pause: Interval) {
        loop.schedule(after: pause) { [weak self] _ in
            guard let self, !isShutDown, health.state == .out else { return }
            // The credentials may have been replaced.
            writer?.findKeys()
            _ = bucket.read(SharedNames.probe, limit: StoreHealth.probeLimit, lane: .express) {
                [weak self] result in
                guard let self, !isShutDown else { return }
                var succeeded = true
                if case .failure(let failure) = result {
                    if case .missing = failure {} else { succeeded = false }
                }
                if let next = health.probed(succeeded) { return probe(after: next) }
                report.note(isUp: true)
                log.notice("the shared store is used again")
                writer?.wake()
            }
        }
    }

    /// Reads the credentials again after a refusal: a node whose players miss nothing asks for no
    /// object, so that the store is not left out and no probe does it.
    private func readKeysAgain() {
        let now = loop.now
        if let last = keysReadAt, now - last < Self.keysPause { return }
        keysReadAt = now
        writer?.findKeys()
    }

    func take(_ keys: AccessKeys) { bucket.keys = keys }

    func shutdown() {
        isShutDown = true
        writer?.stop()
        bucket.shutdown()
    }
}

extension SharedStoreReport {
    /// Notes how a task has ended, and logs when it begins to fail and when it works again.
    func note(_ task: StoreTroubles.Task, _ failure: BucketFailure?, log: Logger) {
        guard let failure else {
            if worked(task) { log.notice("\(task.title) again") }
            return
        }
        guard failed(task, "\(failure)") else { return }
        log.warning(
            "\(task.trouble)", metadata: ["store": "\(location)", "reason": "\(failure)"])
    }
}

extension StoreTroubles.Task {
    fileprivate var title: String {
        switch self {
        case .changes: "purges and pins of other nodes are read"
        case .orders: "downloads and recordings of all nodes are read"
        case .writes: "objects are written to the shared store"
        }
    }

    fileprivate var trouble: String {
        switch self {
        case .changes: "purges and pins of other nodes cannot be read from the shared store"
        case .orders:
            "downloads and recordings of other nodes cannot be read from the shared store"
        case .writes: "objects cannot be written to the shared store"
        }
    }
}

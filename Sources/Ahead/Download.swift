// One download: a title, or a part of one, brought into the store whole and kept there.
//
// Life cycle; everything happens on the downloads' thread.
//
//     queued ──▶ planning ──▶ running ──▶ checking ──▶ complete
//                   │ ▲          │ ▲          │ what is missing is fetched again
//                   └─┴─waiting◀─┴─┘          └──▶ running
//                         the origin, the disk, quiet hours or the day's budget
//     any of these ──pause──▶ paused ──resume──▶ queued
//     planning, running, checking ──▶ failed ──resume──▶ queued
//
// What has come is in the store and nowhere else: a download that is taken up again looks there.
import HLS
import HTTP
import Library
import Lookahead
package import Model
package import Origin
import Posix
import Reactor
package import Routing
package import Store
import Upstream

/// One of them; lives in `DownloadTable`.
package final class Download {
    package enum State: Sendable, Equatable {
        case queued
        case planning
        case running
        /// Goes on by itself; says what it waits for.
        case waiting(String)
        case checking
        case paused
        case complete
        case failed(String)

        /// Whether it takes part in what is fetched now, or will by itself.
        var isActive: Bool {
            switch self {
            case .paused, .complete, .failed: false
            default: true
            }
        }
    }

    package let id: SessionID
    package let session: Session
    var order: DownloadOrder
    package unowned let table: DownloadTable
    package var state = State.queued
    package var name: String
    var plan = DownloadPlan()
    /// Playlists that are still to be read, in their order.
    var toRead: [ChosenPlaylist] = []
    /// Pieces to be fetched, by their place in the plan, the next one last.
    var pending: [Int] = []
    package var running: [Int: BackgroundFetch] = [:]
    /// Bytes of those under way that were there when they were asked for.
    private(set) var presentBefore: [Int: Int64] = [:]
    /// Bytes of each piece that is there.
    var present: [Int: Int64] = [:]
    /// What could not be had, and why.
    package var refused: [Int: String] = [:]
    /// The playlists that were read, with where they are kept.
    package var playlists: [ObjectKey] = []
    /// Bytes that this run brought.
    var broughtBytes: Int64 = 0
    var goodput = Goodput(halfLife: 3)
    /// What the bytes of the last second are counted against.
    var bytesAtTick: Int64 = 0
    /// Bytes that the rate still allows; may fall below 0.
    var credit: Double = 0
    var failuresInARow = 0
    /// Why it was paused, where nobody asked for that.
    var pauseReason: String?
    /// When what failed is tried again.
    var retryAt: Monotonic?
    /// How often checking found something missing.
    var checks = 0
    /// Whether the first part of a file is awaited, which tells the file's length and kind.
    var isFirstPart = false
    /// Whether fetching the entry as a file has failed already.
    var isNoFile = false
    /// Set while this is a proposal for changing another download; told once whether it can be met.
    var verdict: ((Verdict) -> Void)?
    /// Tells the replies of this run from those of one that was stopped.
    package var run = 0
    /// What is shown of one that is not running: from its file.
    var kept = Summary()

    /// Whether a proposed order can be met.
    package enum Verdict: Sendable {
        case canBeMet
        case cannotBeMet(String)
        /// The origin does not answer.
        case cannotBeToldNow(String)
    }

    /// Figures that outlive a run.
    struct Summary: Sendable, Equatable {
        var pieces = 0
        /// Of these in the store when it was last looked.
        var done = 0
        package var bytes: Int64 = 0
        package var seconds = 0.0
        var labels: [String] = []

        /// Below 100, which is for what was checked.
        package var percent: Int64 {
            pieces > 0 ? Int64(min(99, max(0, Double(done) / Double(pieces) * 100))) : 0
        }
    }

    init(_ order: DownloadOrder, id: SessionID, session: Session, table: DownloadTable) {
        self.order = order
        self.id = id
        self.session = session
        self.table = table
        name = TitleName.derived(from: order.url)
    }

    // MARK: Fetching

    func beginFile() {
        plan.addFirstPart(of: order.url)
        isFirstPart = true
        begin()
    }

    func begin() {
        guard !plan.pieces.isEmpty else {
            return fail("nothing of the title lies between the times that were given")
        }
        plan.sort()
        pending = Array(plan.pieces.indices.reversed())
        if let verdict {
            self.verdict = nil
            verdict(.canBeMet)
        }
        table.pin(self)
        guard state == .planning else { return }
        state = .running
        credit = 0
        table.wake()
        pump()
    }

    /// Starts as many pieces as may be; to be called whenever one ends, and now and then.
    func pump() {
        guard state == .running else { return }
        let most = window
        while running.count < most, let index = pending.last {
            pending.removeLast()
            fetch(index)
        }
        if running.isEmpty, pending.isEmpty { check() }
    }

    /// A few more than may run, so that a slot that gets free never waits for us.
    private var window: Int {
        guard retryAt == nil, table.hasBudget else { return 0 }
        let most = min(table.services.concurrency.now.limit + 2, ConcurrencyPlan.most + 2)
        guard let rate = table.rate(of: self) else { return most }
        guard credit > 0 else { return 0 }
        // Few at once, so that what is under way does not pass the rate by much.
        return max(1, min(most, Int(rate / 1_000_000)))
    }

    private func fetch(_ index: Int) {
        let piece = plan.pieces[index]
        let resource = table.services.names.resource(
            piece.url, session, role: piece.role, forwarding: Fields())
        var wanted = BackgroundFetch.Request(resource: resource)
        wanted.range = piece.range
        wanted.lane = .background
        let bound = LoopBound(self, to: table.loop)
        presentBefore[index] = table.present(index, of: self).bytes
        running[index] = table.services.flights.bring(wanted) { [run] end in
            bound.enqueue { download, _ in
                guard download.run == run else { return }
                download.ended(index, end)
            }
        }
    }

    private func ended(_ index: Int, _ end: BackgroundFetch.End) {
        running[index] = nil
        presentBefore[index] = nil
        switch end {
        case .stored(let report):
            count(report.broughtBytes)
            failuresInARow = 0
            if isFirstPart {
                isFirstPart = false
                if table.holdsPlaylist(self), !isNoFile { return turnIntoPlaylist() }
                if let total = report.total { extendFile(to: total) }
            }
            let piece = plan.pieces[index]
            let whole = report.total ?? report.broughtBytes
            present[index] = piece.range.map { min($0.upperBound, whole) - $0.lowerBound } ?? whole
        case .failed(let failure, let report):
            count(report.broughtBytes)
            failed(index, failure)
        case .cancelled(let report):
            count(report.broughtBytes)
            if state.isActive { pending.append(index) }
        }
        if state == .running { pump() }
    }

    private func count(_ bytes: Int64) {
        broughtBytes += bytes
        credit -= Double(bytes)
        table.count(bytes)
    }

    /// The first part of a file told its length.
    private func extendFile(to total: Int64) {
        let known = plan.pieces.count
        plan.addParts(of: order.url, total: total)
        pending.insert(contentsOf: (known..<plan.pieces.count).reversed(), at: 0)
    }

    private func failed(_ index: Int, _ failure: ProxyFailure) {
        if Self.isWorthWaiting(failure) {
            pending.append(index)
            guard state == .running else { return }
            wait(for: failure.message)
        } else if isFirstPart, failure.originStatus == .rangeNotSatisfiable {
            // Nothing of a file lies there; what is generated, as playlists may be, has no ranges.
            turnIntoPlaylist()
        } else {
            refused[index] = failure.message
            // A wrong token refuses everything: nothing is gained by asking for all of it.
            if refused.count >= 10, present.isEmpty { finishRefused() }
        }
    }

    /// Whether what failed may work later without anybody doing anything.
    static func isWorthWaiting(_ failure: ProxyFailure) -> Bool {
        if failure.fault == .us { return failure.status != .internalServerError }
        return failure.allowsStale
    }

    // MARK: Waiting

    /// Stands still, and goes on by itself: after a second, then two, up to half a minute.
    package func wait(for reason: String) {
        if let verdict { return verdict(.cannotBeToldNow(reason)) }
        failuresInARow += 1
        let seconds = min(30, Int64(1) << Int64(min(failuresInARow - 1, 5)))
        retryAt = table.loop.now + .seconds(seconds)
        state = .waiting(reason)
        // Those under way have a chance of their own; what they bring counts.
        table.save(self)
        table.wake()
    }

    /// Goes on after a wait, where it stood.
    func goOn() {
        retryAt = nil
        guard !plan.pieces.isEmpty, toRead.isEmpty else {
            // Planning broke off: it begins anew when its turn comes.
            state = .queued
            return
        }
        state = .running
        table.save(self)
        pump()
    }

    // MARK: Figures

    /// Bytes of the pieces that are there.
    package var presentBytes: Int64 { present.values.reduce(0, +) }

    private var summary: Summary {
        Summary(
            pieces: plan.pieces.count, done: present.count, bytes: presentBytes,
            seconds: plan.seconds, labels: plan.labels)
    }

    /// Whole per cents, below 100 until it is complete and checked.
    ///
    /// - Parameter share: how many pieces those under way make up.
    /// - Returns: 0...99.
    package func percent(_ share: Double) -> Int64 {
        let done = Double(present.count) + share
        return Int64(min(99, max(0, done / Double(max(1, plan.pieces.count)) * 100)))
    }

    // MARK: Ends

    /// Stops what is under way; what has come stays.
    package func stop(as state: State) {
        run += 1
        self.state = state
        if state != .paused { pauseReason = nil }
        if !state.isActive, verdict == nil { table.services.crashes.forget(.download, id.text) }
        retryAt = nil
        if !plan.pieces.isEmpty { kept = summary }
        for (index, fetch) in running {
            fetch.cancel()
            pending.append(index)
        }
        running = [:]
        presentBefore = [:]
        table.save(self)
    }

    package func fail(_ reason: String) {
        if let verdict { return verdict(.cannotBeMet(reason)) }
        stop(as: .failed(reason))
    }

    private func finishRefused() {
        guard let first = refused.values.first else { return }
        fail(
            refused.count == 1
                ? "one of \(plan.pieces.count) parts cannot be had: \(first)"
                : "\(refused.count) of \(plan.pieces.count) parts cannot be had, the first: \(first)"
        )
    }

    /// Looks whether every piece is really there, and only then says so.
    private func check() {
        guard refused.isEmpty else { return finishRefused() }
        state = .checking
        let missing = table.missing(in: self)
        guard missing.isEmpty else {
            checks += 1
            guard checks < 3 else {
                return fail(
                    "\(missing.count) of \(plan.pieces.count) parts do not stay in the store; is the cache too small, or the disk damaged?"
                )
            }
            for index in missing { present[index] = nil }
            pending = missing.reversed()
            state = .running
            return pump()
        }
        if let protection = plan.protection {
            let pieces = plan.pieces.count
            return fail(
                "\(protection.text); all \(pieces) parts are in the store, but only the key system lets a player decrypt them"
            )
        }
        stop(as: .complete)
        table.finished(self)
    }
}

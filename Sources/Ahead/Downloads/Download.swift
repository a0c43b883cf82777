// One download: a title, or a part of one, that is fetched whole into the store and kept there.
//
// Life cycle; everything happens on the downloads' thread.
//
//     queued ──▶ planning ──▶ running ──▶ checking ──▶ complete
//                   │ ▲          │ ▲          │ what is missing is fetched again
//                   └─┴─waiting◀─┴─┘          └──▶ running
//                         the origin, the disk, quiet hours, the day's budget or earlier downloads
//     any of these ──pause──▶ paused ──resume──▶ queued
//     planning, running, checking ──▶ failed ──resume──▶ queued ◀──resume── complete
//     complete ──a part is purged or cleared──▶ failed
//     complete ──a refresh beside it becomes whole──▶ complete, as that one
//     running ──a part is refused: its playlists are read anew──▶ planning
//
// Fetched bytes are recorded only in the store: a resumed download looks them up there.
import HLS
import HTTP
import Library
import Lookahead
package import Model
package import Origin
package import Posix
import Reactor
package import Routing
package import Store
import URISyntax
import Upstream

/// One download; owned by `DownloadTable`.
package final class Download {
    package enum State: Sendable, Equatable {
        case queued
        case planning
        case running
        /// Continues by itself; holds the reason for waiting, and the time of the next retry: nil
        /// if it continues as soon as it may.
        case waiting(String, retryAt: Monotonic? = nil)
        /// All pieces are looked up in the store and then synced to the disk.
        case checking
        /// Holds the reason for a pause that no client requested.
        case paused(reason: String? = nil)
        case complete
        /// Shown as complete until it may be checked; saved as running.
        ///
        /// A complete download of an earlier run, whose pieces are not known yet.
        case presumedComplete
        case failed(String)

        /// True if it is fetching, or will continue by itself.
        var isActive: Bool {
            switch self {
            case .paused, .complete, .presumedComplete, .failed: false
            default: true
            }
        }

        /// True if it takes one of the places of downloads that run in parallel.
        var isRunning: Bool {
            switch self {
            case .planning, .running, .checking: true
            default: false
            }
        }

        /// True if clients are told that it is complete.
        var isComplete: Bool { self == .complete || self == .presumedComplete }

        var isPaused: Bool {
            if case .paused = self { return true }
            return false
        }

        /// False while it waits for the time of its next retry.
        func isDue(at now: Monotonic) -> Bool {
            if case .waiting(_, let retryAt?) = self { return retryAt <= now }
            return true
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
    /// The pieces to be fetched, by index in the plan: the next one last, failed ones first.
    var pending: [Int] = []
    package var running: [Int: BackgroundFetch] = [:]
    /// The stored bytes of pieces in flight at the time of their request.
    private(set) var presentBefore: [Int: Int64] = [:]
    /// The stored bytes of each complete piece.
    var present: [Int: Int64] = [:]
    /// Pieces that could not be fetched.
    var refused: [Int: Refusal] = [:]
    /// The keys of the playlists that were read, without those that must not be stored.
    package var playlists: [ObjectKey] = []
    /// The bytes fetched in this run.
    var broughtBytes: Int64 = 0
    var goodput = Goodput(halfLife: 3)
    /// The fetched bytes at the last measurement.
    var bytesAtTick: Int64 = 0
    var pace = DownloadPace()
    var retryPause = RetryPause()
    /// The pieces that came as pages; their indices are those of the plan.
    var portalPages = PortalPages()
    /// True if the title was pinned before the order and has been ever since; `cancel` keeps that
    /// pin.
    var isPinnedBefore = false
    /// The time of the cluster's order that was carried out last, by which an order that is
    /// repeated after a restart is recognized; that of its own order if only this node knows it.
    var carriedOut: WallTime?
    /// The number of checks that found missing pieces.
    var checks = 0
    /// True while the first part of a file is awaited, which reveals the file's length and kind.
    var isFirstPart = false
    /// True once the entry has turned out not to be a file.
    var isNoFile = false
    /// True from a refusal or `resume` until the playlists have been read past the cache; they are
    /// read once no piece is in flight.
    var renewsPlaylists = false
    /// Bounds how often a refusal sets `renewsPlaylists`.
    var renewal = PlaylistRenewal()
    /// The step of a refresh, which is a download of its own and takes the place of the complete
    /// one once it is whole; nil for any other.
    var refresh: RefreshStep?
    /// The keys of the playlists of a refresh that have come and are not stored yet.
    var newPlaylists: Set<ObjectKey> = []
    /// The stored playlists that a refresh may replace; held, so that they can be stored again.
    var formerPlaylists: [StoredObject] = []
    /// The URLs that the origin is asked about although their bodies are stored.
    var unconfirmed: Set<AbsoluteURL> = []
    /// The keys of objects that not all versions of the title name; a refresh that succeeds removes
    /// those that its own version does not name.
    var formerKeys: Set<ObjectKey> = []
    /// The result of the last refresh; nil before the first one.
    var lastRefresh: LastRefresh?
    /// Set for a proposed change; called once when it is known whether the order can be met.
    var verdict: ((Verdict) -> Void)?
    /// True for an order that is only planned and then described; it has a verdict.
    var isDryRun = false
    /// Distinguishes replies to this run from those to an earlier one.
    package var run = 0
    /// The figures to show while it is not running, from its record.
    var kept = Summary()

    /// Why a piece could not be fetched.
    struct Refusal: Sendable {
        let reason: String
        /// The origin's status, if it has refused the piece.
        var status: HTTPStatus?
        /// True if only bytes that are not stored could prove which body it belongs to.
        var isUnproven = false
    }

    /// Figures that are kept between runs.
    struct Summary: Sendable, Equatable {
        var pieces = 0
        /// Of these, the pieces in the store at the last check.
        var done = 0
        package var bytes: Int64 = 0
        package var seconds = 0.0
        var labels: [String] = []
        /// The bytes of all pieces together, estimated unless `isExact`; nil if unknown, and after a
        /// restart.
        var expectedBytes: Int64?
        var isExact = false

        /// At most 99; 100 is for checked downloads.
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
        if refresh != nil { unconfirmed = [order.url] }
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
            // The callback stops this download if the order could not be saved.
            guard state == .planning else { return }
        }
        // Nobody could play the new version.
        if refresh != nil, let protection = plan.protection { return fail(protection.text) }
        table.pin(self)
        guard state == .planning else { return }
        if refresh != nil { table.keepFormer(of: self) }
        state = .running
        renewsPlaylists = false
        pace.begin()
        table.wake()
        // A changed order is judged even while an obstacle stops downloads; the next look then
        // suspends it.
        if table.obstacle() == nil { pump() }
    }

    /// Starts as many pieces as allowed; called whenever one ends, and periodically.
    func pump() {
        guard state == .running else { return }
        if renewsPlaylists {
            if running.isEmpty, renewal.isDue(at: table.loop.now) { planAnew() }
            return
        }
        let most = window
        while running.count < most, let index = pending.last {
            pending.removeLast()
            fetch(index)
        }
        if running.isEmpty, pending.isEmpty { check() }
    }

    /// The number of fetches to keep running.
    private var window: Int {
        guard table.hasBudget else { return 0 }
        return pace.window(
            limit: table.services.concurrency.now.limit, rate: table.rate(of: self))
    }

    private func fetch(_ index: Int) {
        let piece = plan.pieces[index]
        var wanted = BackgroundFetch.Request(
            resource: table.resource(of: piece, self), range: piece.range, lane: .background,
            keepsEmpty: true)
        wanted.refreshes = mustConfirm(piece)
        let bound = LoopBound(self, to: table.loop)
        presentBefore[index] = table.present(index, of: self).bytes
        portalPages.begins(index)
        running[index] = table.services.flights.bring(wanted) { [run] end in
            bound.enqueue { download, _ in
                // A cancelled fetch of an earlier run counts too: the next one finds its bytes stored.
                guard download.run == run else {
                    return download.table.count(end.report.broughtBytes)
                }
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
            retryPause.reset()
            portalPages.stored(index, isFetched: report.broughtBytes > 0)
            unconfirmed.remove(plan.pieces[index].url)
            if isFirstPart {
                isFirstPart = false
                if table.holdsPlaylist(self), !isNoFile { return turnIntoPlaylist() }
                guard let total = report.total ?? table.length(of: plan.pieces[index], self) else {
                    return fail(
                        "the origin does not tell the length of the file, so that it cannot be "
                            + "checked for completeness"
                    )
                }
                extendFile(to: total)
            }
            took(plan.pieces[index], at: index, report)
        case .failed(let failure, let report):
            count(report.broughtBytes)
            failed(index, failure)
        case .cancelled(let report):
            count(report.broughtBytes)
            if state.isActive { pending.append(index) }
        }
        if state == .running { pump() }
    }

    /// Notes a piece that is in the store.
    private func took(
        _ piece: DownloadPiece, at index: Int, _ report: BackgroundFetch.Report
    ) {
        guard let range = piece.range else {
            present[index] = report.total ?? report.broughtBytes
            return
        }
        let end = min(range.upperBound, report.total ?? range.upperBound)
        guard range.isEmpty || range.lowerBound < end else {
            refused[index] = Refusal(
                reason:
                    "\(piece.url.redacted) ends at byte \(end), but the playlist names a part from "
                    + "byte \(range.lowerBound) on; the origin has to correct one of them"
            )
            return
        }
        present[index] = max(0, end - range.lowerBound)
    }

    private func count(_ bytes: Int64) {
        broughtBytes += bytes
        pace.count(bytes)
        table.count(bytes)
    }

    /// Plans the remaining parts of a file once the first one has revealed its length.
    private func extendFile(to total: Int64) {
        let known = plan.pieces.count
        plan.addParts(of: order.url, total: total)
        pending.insert(contentsOf: (known..<plan.pieces.count).reversed(), at: 0)
    }

    private func failed(_ index: Int, _ failure: ProxyFailure) {
        if refresh != nil {
            fail(failure.message)
        } else if failure.isLost {
            // The check finds it missing, and bounds how often it is fetched again.
        } else if failure.isWorthRetrying
            || failure.isPage && portalPages.isWorthRetrying(index)
        {
            // Retried after all others, which may succeed meanwhile: a rate limit allows only some.
            pending.insert(index, at: 0)
            if state == .running { wait(after: failure) }
        } else if isFirstPart, failure.originStatus == .rangeNotSatisfiable {
            // The resource is empty or generated, as playlists may be, and then has no ranges.
            turnIntoPlaylist()
        } else {
            refused[index] = refusal(failure)
            renew(after: failure.originStatus, of: index)
            // A wrong token makes every request fail: stops before requesting everything.
            if !renewsPlaylists, refused.count >= 10, present.isEmpty { finishRefused() }
        }
    }

    // MARK: Waiting

    /// Waits, and continues by itself.
    ///
    /// - Parameters:
    ///   - reason: the reason to show.
    ///   - asked: the seconds that the origin asked to wait; nil if it did not.
    package func wait(for reason: String, asked: Int64? = nil) {
        if let verdict { return verdict(.undecided(reason)) }
        if refresh != nil { return fail(reason) }
        state = .waiting(reason, retryAt: table.loop.now + retryPause.next(asked: asked))
        // Fetches in flight continue; their bytes count.
        table.save(self)
        table.wake()
    }

    /// Waits after a failure, and continues by itself; fails if pages have come for too long.
    func wait(after failure: ProxyFailure) {
        if failure.isPage, verdict == nil {
            let isPlanning = state == .planning
            guard retryPause.mayFollow(isPlanning ? .playlist : .part) else {
                return fail(
                    "\(failure.message), for \(isPlanning ? "an hour" : "eight hours") now; check "
                        + "the URL or, behind a captive portal, sign in, and resume the download"
                )
            }
        }
        // Without an answer, the pause is the daemon's own word to players.
        let asked = failure.originStatus == nil ? nil : failure.retryAfter
        wait(for: failure.message, asked: asked)
    }

    /// Continues after a wait.
    func goOn() {
        guard !plan.pieces.isEmpty, toRead.isEmpty else {
            // Planning was interrupted: it starts again in turn.
            state = .queued
            return
        }
        state = .running
        table.save(self)
        pump()
    }

    // MARK: Stopping

    /// Cancels fetches in flight; stored bytes are kept.
    package func stop(as state: State) {
        run += 1
        self.state = state
        checks = 0
        // The crashes of a download that runs again are not those of the refresh that it ends.
        if !state.isActive, verdict == nil, refresh == nil {
            table.services.crashes.forget(.download, id.text)
        }
        keepSummary()
        BackgroundFetch.cancel(running.values)
        pending += running.keys.sorted(by: >)
        running = [:]
        presentBefore = [:]
        table.save(self)
    }

    package func fail(_ reason: String) {
        if let verdict { return verdict(.cannotBeMet(reason)) }
        if refresh != nil { return table.failRefresh(self, reason) }
        end(as: .failed(reason))
    }

    /// Ends the download without a request for it; the next one in the queue starts at once.
    func end(as state: State) {
        stop(as: state)
        table.wake()
    }

    private func finishRefused() {
        guard let first = refused.min(by: { $0.key < $1.key })?.value.reason else { return }
        fail(
            refused.count == 1
                ? "one of \(plan.pieces.count) parts cannot be had: \(first)"
                : "\(refused.count) of \(plan.pieces.count) parts cannot be had, the first: \(first)"
        )
    }

    /// Checks that every playlist and every piece is really in the store before completing.
    private func check() {
        guard refused.values.allSatisfy(\.isUnproven) else {
            // Pieces that were stored after the refusals may have made another reading due.
            let renews = refused.contains { renew(after: $0.value.status, of: $0.key) }
            return renews ? pump() : finishRefused()
        }
        state = .checking
        // Before the look, which takes seconds for a long title: what was found may be lost again.
        let losses = table.services.store.losses
        guard table.holdsPlaylists(of: self) else {
            checks += 1
            guard checks < 3 else { return fail(Self.leaving("its playlists do")) }
            state = .queued
            return table.wake()
        }
        let missing = table.missing(in: self)
        guard missing.isEmpty else {
            checks += 1
            let lost = missing.count { refused[$0] == nil }
            // The start of a file replaces an unproven middle; with that stored anew, what could not
            // be joined may be.
            guard lost > 0, checks < 3 else {
                guard lost == missing.count else { return finishRefused() }
                return fail(Self.leaving("\(lost) of \(plan.pieces.count) parts do"))
            }
            for index in missing { present[index] = nil }
            refused = [:]
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
        if storesNewPlaylists() { return }
        guard table.pinAll(of: self) else { return }
        awaitDisk(since: losses)
    }

    private static func leaving(_ what: String) -> String {
        "\(what) not stay in the store; is the cache too small, or the disk damaged?"
    }
}

// Measures what runs ahead of players and sets how much of it may: the shell of the controllers.
package import Lookahead
import Numbers
import Posix
import Reactor
import Synchronization
import Upstream

/// Ticks while anything is fetched ahead; lives on the upstream loop.
final class ConcurrencyDriver {
    private let loop: EventLoop
    private let client: UpstreamClient
    private let report: ConcurrencyReport
    private var limits: ConcurrencyLimits
    private var isTicking = false
    private var tickedAt: Monotonic
    /// Whether the tick before found all at work that may work.
    private var wasFull = false
    private var roundTrip = 0.1
    private var goodput = Goodput(halfLife: 4)
    /// The most that came in any stretch of late, in bytes a second, also beside players.
    private var seen = 0.0
    /// When a player last waited for media; nil if none did lately.
    private var playedAt: Monotonic?
    private var room = PlayerRoom()
    private var surroundings = Surroundings()

    /// A player that has waited for media within this time is still there.
    private static let playing = Interval.seconds(10)
    /// Bytes that still come of a transfer that is held back: what the sockets take meanwhile.
    ///
    /// A receive window, which TCP keeps at about what a round trip brings, and no less than this.
    private static let leak = 80_000.0
    /// The seconds of the line that all of these may cost a player.
    private static let mostDelay = 0.25

    /// Starts at the plan's own beginning; `network` tells of a known one later.
    init(
        _ plan: ConcurrencyPlan, loop: EventLoop, client: UpstreamClient, report: ConcurrencyReport
    ) {
        self.loop = loop
        self.client = client
        self.report = report
        limits = ConcurrencyLimits(plan)
        tickedAt = loop.now
        apply()
    }

    /// To be called when something is fetched ahead: measuring begins, if it did not yet.
    func wake() {
        guard !isTicking else { return }
        isTicking = true
        limits.beginTask()
        tickedAt = loop.now
        wasFull = false
        _ = client.takeAheadFigures()
        scheduleTick()
    }

    /// Begins anew on another network, with what is remembered of it.
    func follow(network: NetworkMemory.Network?) {
        limits.restart(at: network?.transfers)
        goodput = Goodput(halfLife: 4)
        seen = 0
        apply()
    }

    /// Follows load, battery and the kind of link.
    func follow(_ surroundings: Surroundings) {
        self.surroundings = surroundings
        limits.follow(surroundings, goodput: goodput.bytesPerSecond)
        apply()
    }

    // MARK: Players

    /// To be told whenever players begin or cease to wait for media.
    ///
    /// Transfers that are held back go on for as long as sockets take their bytes: beside a player
    /// there are only so many downloads that this costs it next to nothing, and others end at once.
    /// What is fetched ahead for the player itself is its planner's matter.
    ///
    /// - Returns: when to be told again although nothing changed; nil where that need not be.
    func hear(playersWait: Bool) -> Interval? {
        let wasBeside = isBesidePlayer
        if playersWait || room.playersWait { playedAt = loop.now }
        room.note(playersWait: playersWait, at: now)
        if playersWait, !wasBeside {
            apply()
            client.preemptBackground(over: mostBesidePlayer)
        }
        return room.change(after: now).map { Interval(seconds: max(0.001, $0 - now)) }
    }

    /// Whether downloads stand still for players.
    ///
    /// - Parameter playersWait: whether one does now, which may not have been heard of yet.
    /// - Returns: True while they have to.
    func holdsDownloads(playersWait: Bool) -> Bool {
        room.holdsDownloads(at: now) || (playersWait && !room.playersWait)
    }

    private var now: Double { loop.now.inSeconds }

    private var isBesidePlayer: Bool {
        playedAt.map { loop.now - $0 < Self.playing } ?? false
    }

    private var mostBesidePlayer: Int {
        let line = max(goodput.bytesPerSecond ?? 0, seen)
        return min(limits.limit, max(1, Int(saturating: line * Self.mostDelay / Self.leak)))
    }

    // MARK: Measuring

    /// Four round trips, so that what a change does is seen in the sample after the next.
    private var span: Interval {
        Interval(seconds: min(1.5, max(0.25, roundTrip * 4)))
    }

    private func scheduleTick() {
        loop.schedule(after: span) { [weak self] _ in self?.tick() }
    }

    private func tick() {
        let figures = client.takeAheadFigures()
        let seconds = (loop.now - tickedAt).inSeconds
        tickedAt = loop.now
        // While players have the line, what runs beside them says nothing of it.
        let isFull = client.aheadWaiting > 0 && !isBesidePlayer
        note(figures, seconds, isFull: isFull && wasFull)
        wasFull = isFull
        apply()
        guard client.aheadInFlight > 0 || client.aheadWaiting > 0 else {
            isTicking = false
            return
        }
        scheduleTick()
    }

    private func note(_ figures: [String: AheadFigures], _ seconds: Double, isFull: Bool) {
        var all = AheadFigures()
        var each: [String: LinkSample] = [:]
        for (host, figure) in figures {
            all.add(figure)
            let isHostFull = isFull && figure.inFlight >= limits.limit(of: host)
            each[host] = LinkSample(figure, seconds, isFull: isHostFull)
        }
        if all.answers > 0 {
            roundTrip = roundTrip * 0.5 + all.answerSeconds / Double(all.answers) * 0.5
        }
        let isAllFull = isFull && all.inFlight >= limits.limit
        if seconds > 0 { seen = max(seen * 0.99, Double(all.bytes) / seconds) }
        if isFull, all.bytes > 0 { goodput.add(bytes: all.bytes, seconds: seconds) }
        limits.note(LinkSample(all, seconds, isFull: isAllFull), each: each)
    }

    private func apply() {
        let background = isBesidePlayer ? mostBesidePlayer : limits.limit
        client.limitAhead(limits.limit, background: background, hosts: limits.byHost)
        report.note(
            ConcurrencyReport.Figures(
                plan: limits.plan, limit: limits.limit, background: background, reason: reason,
                inFlight: client.aheadInFlight,
                goodput: Int64(saturating: goodput.bytesPerSecond ?? 0)))
    }

    /// Why there are no more, for people.
    private var reason: String {
        if isBesidePlayer, mostBesidePlayer < limits.limit { return "beside a player" }
        if limits.plan == .probe, limits.limit == limits.ceiling,
            let reason = surroundings.reason(goodput: goodput.bytesPerSecond)
        {
            return reason
        }
        return switch limits.plan {
        case .fixed: "told so"
        case .table: "by the published table"
        case .probe: goodput.bytesPerSecond == nil ? "to begin with" : "found by probing"
        }
    }
}

extension AheadFigures {
    fileprivate mutating func add(_ other: AheadFigures) {
        bytes += other.bytes
        finished += other.finished
        errors += other.errors
        answers += other.answers
        answerSeconds += other.answerSeconds
        inFlight += other.inFlight
    }
}

extension LinkSample {
    fileprivate init(_ figures: AheadFigures, _ seconds: Double, isFull: Bool) {
        self.init(
            seconds: seconds, bytes: figures.bytes, isFull: isFull,
            roundTrip: figures.answers > 0 ? figures.answerSeconds / Double(figures.answers) : nil,
            finished: figures.finished, errors: figures.errors)
    }
}

/// What the controllers decided last, for whoever shows or remembers it.
///
/// Any thread may use it.
package final class ConcurrencyReport: Sendable {
    package struct Figures: Sendable {
        package var plan = ConcurrencyPlan.probe
        /// Transfers that may run ahead of players.
        package var limit = ConcurrencyPlan.start
        /// Of these for downloads.
        package var background = ConcurrencyPlan.start
        /// Why there are no more, for people.
        package var reason = ""
        package var inFlight = 0
        /// Bytes a second of the last seconds at work.
        package var goodput: Int64 = 0

        package init(
            plan: ConcurrencyPlan = ConcurrencyPlan.probe, limit: Int = ConcurrencyPlan.start,
            background: Int = ConcurrencyPlan.start, reason: String = "", inFlight: Int = 0,
            goodput: Int64 = 0
        ) {
            self.plan = plan
            self.limit = limit
            self.background = background
            self.reason = reason
            self.inFlight = inFlight
            self.goodput = goodput
        }
    }

    private let figures = Mutex(Figures())

    package init() {}

    package var now: Figures { figures.withLock { $0 } }

    package func note(_ figures: Figures) { self.figures.withLock { $0 = figures } }
}

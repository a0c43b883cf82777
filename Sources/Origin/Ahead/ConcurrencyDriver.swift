// Measures transfers ahead of players and limits their number: the shell around the controllers.
import Lookahead
import Numbers
import Posix
import Reactor
import Upstream

/// Samples at intervals while ahead fetches run; lives on the upstream loop.
final class ConcurrencyDriver {
    private let loop: EventLoop
    private let client: UpstreamClient
    private let report: ConcurrencyReport
    private var limits: ConcurrencyLimits
    private var isTicking = false
    private var tickedAt: Monotonic
    /// True if the previous sample found transfers waiting and no player.
    private var wasFull = false
    private var roundTrip = 0.1
    private var goodput = Goodput(halfLife: 4)
    /// The highest recent rate of any sample, in bytes a second, including those beside players.
    private var seen = 0.0
    /// When a player last waited for media; nil if none ever did.
    private var playedAt: Monotonic?
    private var idleTime = PlayerIdleTime()
    private var conditions = MachineConditions()

    /// A player that waited for media within this time counts as present.
    private static let playing = Interval.seconds(10)
    /// Bytes that a paused transfer still receives: what the sockets buffer meanwhile.
    ///
    /// TCP sizes the receive window to about the bytes of one round trip, and at least to this.
    private static let leak = 80_000.0
    /// The most seconds of line time that paused transfers may cost a player.
    private static let mostDelay = 0.25

    /// Starts with the plan's initial limits; `follow(network:)` later sets those of a known
    /// network.
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

    /// Begins sampling unless it runs already; must be called when an ahead fetch starts.
    func wake() {
        guard !isTicking else { return }
        isTicking = true
        limits.beginTask()
        tickedAt = loop.now
        wasFull = false
        _ = client.takeAheadFigures()
        scheduleTick()
    }

    /// Restarts on another network, from what is remembered of it.
    func follow(network: NetworkMemory.Network?) {
        limits.restart(at: network?.transfers)
        goodput = Goodput(halfLife: 4)
        seen = 0
        apply()
    }

    /// Applies the limits for load, battery and link type.
    func follow(_ conditions: MachineConditions) {
        self.conditions = conditions
        limits.follow(conditions, goodput: goodput.bytesPerSecond)
        apply()
    }

    // MARK: Players

    /// Updates the limits; must be called whenever players begin or cease to wait for media.
    ///
    /// Paused transfers continue until the sockets are full, so only as many downloads stay open
    /// beside a player as cost it next to nothing; the others are preempted. Fetches ahead for the
    /// player itself are left to its planner.
    ///
    /// - Returns: when to call again although nothing changed; nil if not needed.
    func update(playersWait: Bool) -> Interval? {
        let wasBeside = isBesidePlayer
        if playersWait || idleTime.playersWait { playedAt = loop.now }
        idleTime.note(playersWait: playersWait, at: now)
        if playersWait, !wasBeside {
            apply()
            client.preemptBackground(over: mostBesidePlayer)
        }
        return idleTime.change(after: now).map { Interval(seconds: max(0.001, $0 - now)) }
    }

    /// True while downloads must pause for players.
    ///
    /// - Parameter playersWait: whether a player waits now, which may not have been reported yet.
    /// - Returns: true while they must pause.
    func holdsDownloads(playersWait: Bool) -> Bool {
        idleTime.holdsDownloads(at: now) || (playersWait && !idleTime.playersWait)
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

    /// Four round trips, so that the effect of a change shows in the sample after the next.
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
        // While players use the line, transfers beside them do not show its capacity.
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
            let isHostFull =
                isFull
                && limits.isFull(
                    host, inFlight: figure.inFlight, recordings: client.aheadFirstInFlight)
            each[host] = LinkSample(figure, seconds, isFull: isHostFull)
        }
        if all.answers > 0 {
            roundTrip = roundTrip * 0.5 + all.answerSeconds / Double(all.answers) * 0.5
        }
        // A limit that recordings alone use up restricts nothing whose effect could be measured:
        // they exceed it.
        let isAllFull =
            isFull && all.inFlight >= limits.limit && client.aheadFirstInFlight < limits.limit
        if seconds > 0 { seen = max(seen * 0.99, Double(all.bytes) / seconds) }
        if isFull, all.bytes > 0 { goodput.add(bytes: all.bytes, seconds: seconds) }
        limits.note(LinkSample(all, seconds, isFull: isAllFull), each: each)
    }

    private func apply() {
        let background = isBesidePlayer ? mostBesidePlayer : limits.limit
        client.limitAhead(limits.limit, background: background, hosts: limits.byHost)
        var figures = ConcurrencyReport.Figures()
        figures.plan = limits.plan
        figures.limit = limits.limit
        figures.background = background
        figures.reason = reason
        figures.inFlight = client.aheadInFlight
        figures.goodput = Int64(saturating: goodput.bytesPerSecond ?? 0)
        report.note(figures)
    }

    /// The reason for the limit, for display.
    private var reason: String {
        if isBesidePlayer, mostBesidePlayer < limits.limit { return "beside a player" }
        if limits.plan == .probe, limits.limit == limits.ceiling,
            let reason = conditions.reason(goodput: goodput.bytesPerSecond)
        {
            return reason
        }
        return switch limits.plan {
        case .fixed: "set by hand"
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

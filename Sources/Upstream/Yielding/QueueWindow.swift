// Decides how many bytes may be under way to this machine over one path, so that the queue of the
// line stays short.
//
// Pure: measurements of the kernel and the time go in, a window in bytes comes out. As in LEDBAT
// (RFC 6817), the delay above the lowest known one is the queue. Unlike there, the receiver
// decides, by the receive window that it advertises (RFC 9293 section 3.8.6): what the sender may
// have under way is what may wait in the queue. The window that fills a line and leaves a queue of
// `target` is rate x (lowest delay + target).
//
//     background:  draining ──▶ starting ──▶ steady ◀──(they end)── giving way
//                     ▲           ▲             │                      ▲   │
//                     │           └─────────────┼──── after 1 s ───────┼───┘
//                     └─────── every 30 s ──────┘     (players begin)──┘
//     players:     watching ──(a queue)──▶ draining ──▶ steady ──(others fill the queue)──▶ released
//                     ▲                       ▲            │                                   │
//                     │                       └─ every 30 s┘                                   │
//                     └──────────────────────── after 10 to 160 s ─────────────────────────────┘
//
// - draining: half the window for some round trips shows the delay of the empty line, and whether
//   the handshake met less jitter. Less would show a delay that a full line with jitter never has;
// - starting: the window doubles each round trip until there is a queue;
// - giving way: a transfer of players that begins finds no queue. What it lasts longer is shared
//   by the length of the queue: players aim at twice that of background;
// - watching: more than the transfers use, since no limit is needed while there is no queue;
// - steady: the window follows the delay, and tries some more from time to time, since bursts and
//   jitter look like a queue;
// - released: more than they use, for transfers that players wait for: where a queue stays although
//   the window shrinks, other traffic fills it, and would take the whole line from those who give
//   way, or jitter looks like one.
import Numbers

/// The receive window of all transfers of one purpose over one path.
struct QueueWindow: Sendable {
    private enum State: Sendable, Equatable {
        case draining(rounds: Int)
        case starting
        case givingWay(until: Double)
        case watching(rounds: Int)
        case steady
        case released(until: Double)
    }

    let purpose: YieldPurpose
    /// The window in bytes, of all connections together.
    private(set) var window: Double
    /// The queue that the last round trips showed, in seconds.
    private(set) var queue = 0.0
    /// The queue that is aimed at, in seconds.
    private var target = QueueWindow.target.least
    /// How often the window was released because others filled the queue.
    private(set) var releases = 0
    private var state: State
    /// The last round trips and the last rates, the newest last.
    private var roundTrips: [Double] = []
    private var rates: [Double] = []
    /// The window before draining or giving way, to go on from; nil before the first time.
    private var windowBefore: Double?
    private var notedAt = 0.0
    // The round trip that is being measured.
    private var roundBegan: Double?
    private var roundBytes: Int64 = 0
    private var isRoundLossy = false
    // Trying a larger window.
    private var trial: (rateBefore: Double, step: Double)?
    private var roundsToProbe = 8
    private var probePause = 8
    private(set) var others = OtherTraffic()
    private var drainsAt = Double.infinity
    private var drainedTo = Double.infinity
    private var drainRounds = 0

    /// The shortest target of the queue, in seconds, and its share of the lowest delay.
    static let target = (least: 0.003, share: 0.08)
    /// What all connections together get at least, in bytes a second.
    static let leastRate = 65_536.0
    /// The least window of a connection: one segment of Ethernet.
    static let leastWindow = 1_448.0
    static let mostWindow = 256e6
    /// The window of a connection before anything was measured: ten segments, the initial window of
    /// most senders (RFC 6928).
    static let firstWindow = 14_480.0
    /// The window of a connection without a limit, until it has shown what it needs.
    private static let firstRoom = 262_144.0
    private static let shortestRound = 0.02
    /// The longest time between samples of running transfers, in seconds.
    private static let longestGap = 0.3
    /// The lowest of the last few round trips is the present one, and the mean of some more is a
    /// lowest one: so jitter is no queue.
    private static let shortMemory = 4
    private static let longMemory = 8
    /// How long background gives way when a transfer of players begins, in seconds: most segments
    /// are there by then.
    private static let wayTime = 1.0
    private static let openingShare = 0.125
    private static let drainPeriod = 30.0
    private static let secondDrain = 3.0
    private static let roundsToWatch = 2
    private static let leastDrainRounds = 3
    /// The share of the window that is kept while draining.
    private static let drainShare = 0.5
    private static let mostDrainRounds = 64
    private static let longestProbePause = 128
    /// How much more is tried, as a share of the window: what is not needed is a queue.
    ///
    /// At least two segments, since less need not let a sender send any more.
    private static let trialStep = (least: 2 * leastWindow, share: 0.05)
    /// The gain in rate that shows that more was needed, of the 5 % that it may be.
    private static let trialGain = 1.03

    /// Begins without a limit for players, so that none delays their first segment, and with
    /// draining for background, which may have filled the queue before.
    init(_ purpose: YieldPurpose) {
        self.purpose = purpose
        switch purpose {
        case .players:
            state = .watching(rounds: 0)
            window = Self.firstRoom
        case .background:
            state = .draining(rounds: 0)
            window = Self.leastWindow
        }
    }

    /// Begins anew after a time without a bound: players with what filled the line in the last
    /// minutes, if they were bounded then, so that their first segment fills no queue again.
    mutating func restart(of path: LowestDelay, at now: Double) {
        let former = self
        self = QueueWindow(purpose)
        (releases, others) = (former.releases, former.others)
        guard purpose == .players, former.isBound, let known = lineWindow(of: path, at: now)
        else { return }
        state = .steady
        window = known
        drainsAt = now + Self.secondDrain
    }

    /// Returns by how many bytes the bounds of all connections may rise together in some seconds;
    /// nil without a limit, as while the line is being looked for.
    ///
    /// An eighth of what the line carries meanwhile: what is granted at once comes as one burst.
    func opening(in seconds: Double, at now: Double) -> Double? {
        guard state == .steady, let rate = others.highestRate(at: now) else { return nil }
        return min(Self.openingShare * rate * seconds, Self.mostWindow)
    }

    /// Leaves the line to a transfer of players that begins on the same path.
    ///
    /// Its first bytes find no queue. The window of players does not give way.
    mutating func giveWay(at now: Double) {
        guard purpose == .background else { return }
        switch state {
        case .steady: windowBefore = window
        case .starting: windowBefore = max(windowBefore ?? 0, window)
        default: break
        }
        state = .givingWay(until: now + Self.wayTime)
        window = Self.leastWindow
        drainedTo = .infinity
        drainRounds = 0
    }

    /// Goes on after the last transfer of players on the path has ended.
    mutating func playersEnded(at now: Double) {
        guard case .givingWay = state else { return }
        takeLineAgain(windowBefore, now)
    }

    private mutating func takeLineAgain(_ known: Double?, _ now: Double) {
        if drainsAt == .infinity { drainsAt = now + Self.drainPeriod }
        rates = []
        state = known == nil ? .starting : .steady
        window = known ?? Self.firstWindow
        roundBegan = nil
    }

    /// True while the window limits the transfers.
    var isBound: Bool {
        switch state {
        case .watching, .released: false
        case .draining, .starting, .givingWay, .steady: true
        }
    }

    /// True while there is no limit because others fill the queue.
    var isReleased: Bool { if case .released = state { true } else { false } }

    private var isDraining: Bool { if case .draining = state { true } else { false } }

    /// Takes a sample; at most one decision per round trip.
    ///
    /// - Parameters:
    ///   - sample: the measurements.
    ///   - path: the lowest delay of the path. All windows of a path share it: one that learned it
    ///     while another filled the queue would take that queue for the empty line, and the line
    ///     from the other.
    ///   - now: seconds of a monotonic clock.
    mutating func note(_ sample: Sample, of path: inout LowestDelay, at now: Double) {
        // A pause between transfers is no part of a round trip.
        if now - notedAt > Self.longestGap { roundBegan = nil }
        notedAt = now
        roundBytes = roundBytes.addingSaturated(sample.bytes)
        isRoundLossy = isRoundLossy || sample.isLossy
        if path.value == nil, let handshake = sample.handshake, handshake > 0, handshake < 60 {
            path.note(handshake: handshake, at: now)
        }
        if let roundTrip = sample.roundTrip, roundTrip > 0, roundTrip < 60 {
            roundTrips = (roundTrips + [roundTrip]).suffix(Self.longMemory)
            let memory = roundTrips.suffix(isDraining ? Self.shortMemory : Self.longMemory)
            if memory.count >= Self.shortMemory {
                path.note(memory.reduce(0, +) / Double(memory.count), at: now)
            }
        }
        if case .released(let until) = state, now >= until {
            state = .watching(rounds: 0)
            rates = []
            roundBegan = nil
        }
        if case .givingWay(let until) = state, now >= until { takeLineAgain(nil, now) }
        guard let began = roundBegan else { return beginRound(at: now) }
        guard let roundTrip = roundTrips.suffix(Self.shortMemory).min(), let lowest = path.value,
            now - began >= max(Self.shortestRound, roundTrip)
        else { return }
        guard roundBytes > 0 else { return beginRound(at: now) }
        queue = max(0, roundTrip - lowest)
        target = target(of: lowest, lineRate: sample.lineRate, at: now)
        let rate = Double(roundBytes) / (now - began)
        let wasDraining = isDraining
        decide(rate, roundTrip, lowest, now)
        if wasDraining, !isDraining, roundTrips.count >= Self.shortMemory {
            path.noteDrained(target: target)
        }
        let floor = max(
            Self.leastWindow * Double(max(1, sample.connections)), Self.leastRate * roundTrip)
        switch state {
        case .starting, .steady: break
        case .givingWay: window = floor
        case .draining:
            let known = windowBefore ?? max(fullRate * lowest, Self.firstWindow)
            window = known * Self.drainShare
        case .watching: window = room(lowest, sample.connections)
        case .released: window = room(roundTrip, sample.connections)
        }
        window = min(max(window, floor), Self.mostWindow)
        beginRound(at: now)
    }

    /// Returns a window that limits nothing, but can be taken back soon: what was granted once
    /// stays granted, and Linux would grant megabytes to a sender that fills the queue.
    private func room(_ delay: Double, _ connections: Int) -> Double {
        max(Self.firstRoom * Double(max(1, connections)), 4 * fullRate * delay)
    }

    private mutating func beginRound(at now: Double) {
        roundBegan = now
        roundBytes = 0
        isRoundLossy = false
    }

    private mutating func decide(
        _ rate: Double, _ roundTrip: Double, _ lowest: Double, _ now: Double
    ) {
        let former = fullRate
        if !isDraining { rates = (rates + [rate]).suffix(4) }
        others.note(rate: rate, at: now)
        switch state {
        case .draining(let rounds):
            let isFalling = roundTrip < drainedTo * 0.97
            drainedTo = min(drainedTo, roundTrip)
            // The window that was granted before has to be used up first.
            let isEffective = rate * roundTrip < 3 * window
            state = .draining(rounds: isEffective && !isFalling ? rounds + 1 : rounds)
            drainRounds += 1
            if rounds + 1 >= Self.leastDrainRounds || drainRounds >= Self.mostDrainRounds {
                endDraining(lowest, at: now)
            }
        case .starting:
            start(rate, lowest)
        case .steady:
            follow(rate, roundTrip, lowest, now)
        case .watching(let rounds):
            // While a sender starts, its bursts are a queue.
            let isLong = queue > 2 * target && rate < former * 1.25
            // A segment may be too short for two round trips over a long queue.
            let longRounds = isLong ? rounds + (queue > 4 * target ? Self.roundsToWatch : 1) : 0
            state = .watching(rounds: longRounds)
            guard longRounds >= Self.roundsToWatch else { break }
            windowBefore = nil
            state = .draining(rounds: 0)
        case .givingWay, .released: break
        }
    }

    /// What the line carried lately, in bytes a second; 0 before the first round trip.
    private var fullRate: Double { rates.max() ?? 0 }

    private mutating func endDraining(_ lowest: Double, at now: Double) {
        // The first time, the burst of a sender that starts may be on its way.
        drainsAt = now + (windowBefore == nil ? Self.secondDrain : Self.drainPeriod)
        drainedTo = .infinity
        drainRounds = 0
        if let windowBefore {
            state = .steady
            window = windowBefore
        } else if purpose == .players {
            state = .steady
            window = fullRate * (lowest + target)
        } else {
            state = .starting
            rates = []
            window = Self.firstWindow
        }
    }

    private mutating func start(_ rate: Double, _ lowest: Double) {
        if isRoundLossy || queue > target {
            state = .steady
            window = fullRate * (lowest + target)
        } else if isFull(rate, lowest + queue) {
            window *= (queue > target / 2 ? 1.25 : 2)
        }
    }

    /// True if the window, and not the sender, limits the transfers.
    private func isFull(_ rate: Double, _ roundTrip: Double) -> Bool {
        rate * roundTrip > window / 2
    }

    private mutating func follow(
        _ rate: Double, _ roundTrip: Double, _ lowest: Double, _ now: Double
    ) {
        var wanted = window
        if let tried = trial {
            trial = nil
            if rate > tried.rateBefore * Self.trialGain {
                (probePause, roundsToProbe) = (8, 1)
                return
            }
            wanted = max(Self.leastWindow, wanted - tried.step)
            probePause = min(probePause * 2, Self.longestProbePause)
            roundsToProbe = probePause
        }
        // The window that was granted before has to be used up first.
        guard rate * roundTrip < 2 * wanted else {
            window = wanted
            return
        }
        let share = min(1.25, (lowest + target) / roundTrip)
        let next = wanted * (0.5 + 0.5 * share)
        if next < wanted {
            // Less than fills the line at the lowest delay would not shorten the queue.
            wanted = max(next, min(wanted, fullRate * lowest))
        } else if isFull(rate, roundTrip) {
            // What the line has to spare between two responses is no sign that more is needed.
            // Twice the target for background is as much as for players, since its target is half.
            let room = (purpose == .background ? 2 : 1) * target
            let most = (others.highestRate(at: now) ?? rate) * (lowest + room)
            wanted = max(wanted, min(queue < target / 4 ? wanted * 1.1 : next, most))
        }
        if isRoundLossy { wanted = min(wanted, window / 2) }
        window = wanted
        noteCrowd(lowest, now)
        roundsToProbe -= 1
        if state == .steady, roundsToProbe <= 0, !isRoundLossy, isFull(rate, roundTrip) {
            let step = max(Self.trialStep.least, Self.trialStep.share * wanted)
            trial = (fullRate, step)
            window = wanted + step
        }
    }

    /// Looks whether the queue is that of others, and whether the lowest delay is to be measured.
    private mutating func noteCrowd(_ lowest: Double, _ now: Double) {
        let isCrowded = others.note(
            window: window, hasQueue: queue > target && !isRoundLossy, lowest: lowest)
        if purpose == .players, isCrowded {
            releases += 1
            state = .released(until: now + others.release())
        } else if now >= drainsAt {
            windowBefore = window
            state = .draining(rounds: 0)
        }
    }
}

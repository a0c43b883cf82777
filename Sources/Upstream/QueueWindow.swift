// Decides how many bytes may be under way to this machine over one path, so that the queue of the
// line stays short.
//
// Pure: measurements of the kernel and the time go in, a window in bytes comes out. As in LEDBAT
// (RFC 6817), the delay above the lowest known one is the queue. Unlike there, the receiver decides,
// by the receive window that it advertises (RFC 9293 section 3.8.6): what the sender may have under
// way is what may wait in the queue. The window that fills a line and leaves a queue of `target`
// is rate x (lowest delay + target).
//
//     background:  draining ──▶ starting ──▶ steady
//                     ▲                         │
//                     └─────── every 30 s ──────┘
//     players:     watching ──(a queue)──▶ steady ──(others fill the queue)──▶ released
//                     ▲                                                           │
//                     └────────────────── after 10 to 160 s ──────────────────────┘
//
// - draining: a window near zero for some round trips shows the delay of the empty line;
// - starting: the window doubles each round trip while that brings more;
// - watching: no limit, and none is needed while there is no queue;
// - steady: the window follows the delay, and tries a quarter more from time to time, since bursts
//   and jitter look like a queue;
// - released: no limit, for transfers that players wait for: where the queue stays long although the
//   window shrinks, other traffic fills it, and would take the whole line from those who give way.
import Numbers

/// The receive window of all transfers of one purpose over one path.
struct QueueWindow: Sendable {
    /// What the transfers are for.
    enum Purpose: Sendable, Hashable {
        /// Nobody waits for them: they leave the line to any other traffic, down to `leastRate`.
        case background
        /// Players wait for them: they keep the queue short unless others keep it long.
        case players
    }

    /// What the kernel measured since the last sample.
    struct Sample: Sendable {
        /// The lowest round trip of the connections with new bytes, in seconds; nil without any.
        var roundTrip: Double?
        /// Bytes that arrived.
        var bytes: Int64 = 0
        /// True if packets arrived out of order, which mostly means that one was lost.
        var isLossy = false
        /// The connections that share the window.
        var connections = 1
    }

    private enum State: Sendable, Equatable {
        case draining(rounds: Int)
        case starting
        case watching(rounds: Int)
        case steady
        case released(until: Double)
    }

    let purpose: Purpose
    /// The window in bytes, of all connections together; nil for no limit.
    private(set) var window: Double?
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
    /// The window to go on from after draining.
    private var former: Double?
    // The round trip that is being measured.
    private var roundBegan: Double?
    private var roundBytes: Int64 = 0
    private var isRoundLossy = false
    // Trying a larger window.
    private var rateBefore: Double?
    private var roundsToProbe = 8
    private var probePause = 8
    // Signs of other traffic.
    private var crowdedRounds = 0
    private var windowBeforeCrowd = 0.0
    private var releaseTime = QueueWindow.firstRelease
    private var drainedAt: Double?
    private var drainedTo = Double.infinity
    private var drainRounds = 0

    /// The shortest target of the queue, in seconds, and its share of the lowest delay.
    private static let target = (least: 0.005, share: 0.125)
    /// What all connections together get at least, in bytes a second.
    static let leastRate = 65_536.0
    /// The least window of a connection: one segment of Ethernet.
    static let leastWindow = 1_448.0
    static let mostWindow = 256e6
    /// The window of a connection before anything was measured: ten segments, the initial window of
    /// most senders (RFC 6928).
    private static let firstWindow = 14_480.0
    private static let shortestRound = 0.02
    /// The lowest of the last few round trips is the present one, and the mean of some more is a
    /// lowest one: so jitter is no queue.
    private static let shortMemory = 4
    private static let longMemory = 8
    private static let drainPeriod = 30.0
    private static let roundsToWatch = 2
    private static let leastDrainRounds = 3
    private static let mostDrainRounds = 64
    private static let firstRelease = 10.0
    private static let longestRelease = 160.0
    private static let longestProbePause = 128
    /// Round trips of a long queue after which it is that of others.
    private static let mostCrowdedRounds = 6

    /// Begins without a limit for players, so that none delays their first segment, and with
    /// draining for background, which may have filled the queue before.
    init(_ purpose: Purpose) {
        self.purpose = purpose
        switch purpose {
        case .players: state = .watching(rounds: 0)
        case .background:
            state = .draining(rounds: 0)
            window = Self.leastWindow
        }
    }

    /// The present round trip in seconds; nil before the first sample.
    var roundTrip: Double? { roundTrips.last }

    /// Begins anew after a time without a bound.
    mutating func restart() {
        let releases = releases
        self = QueueWindow(purpose)
        self.releases = releases
    }

    /// Returns the queue that is aimed at, in seconds; background leaves room for players.
    private func target(of lowest: Double) -> Double {
        let target = max(Self.target.least, Self.target.share * lowest)
        return purpose == .background ? target / 2 : target
    }

    /// True while there is no limit because others fill the queue.
    var isReleased: Bool { if case .released = state { true } else { false } }

    /// Takes a sample; at most one decision per round trip.
    ///
    /// - Parameters:
    ///   - sample: the measurements.
    ///   - path: the lowest delay of the path. All windows of a path share it: one that learned it
    ///     while another filled the queue would take that queue for the empty line, and the line
    ///     from the other.
    ///   - now: seconds of a monotonic clock.
    mutating func note(_ sample: Sample, of path: inout LowestDelay, at now: Double) {
        roundBytes = roundBytes.addingSaturated(sample.bytes)
        isRoundLossy = isRoundLossy || sample.isLossy
        if let roundTrip = sample.roundTrip, roundTrip > 0, roundTrip < 60 {
            roundTrips = (roundTrips + [roundTrip]).suffix(Self.longMemory)
            var memory = roundTrips[...]
            if case .draining = state { memory = memory.suffix(2) }
            path.note(memory.reduce(0, +) / Double(memory.count), at: now)
        }
        if case .released(let until) = state, now >= until {
            state = .watching(rounds: 0)
            rates = []
            crowdedRounds = 0
            roundBegan = nil
        }
        guard let began = roundBegan else { return beginRound(at: now) }
        guard let roundTrip = roundTrips.suffix(Self.shortMemory).min(), let lowest = path.value,
            now - began >= max(Self.shortestRound, roundTrip)
        else { return }
        queue = max(0, roundTrip - lowest)
        target = target(of: lowest)
        let rate = Double(roundBytes) / (now - began)
        decide(rate, roundTrip, lowest, now)
        let floor = max(
            Self.leastWindow * Double(max(1, sample.connections)), Self.leastRate * roundTrip)
        if let wanted = window { window = min(max(wanted, floor), Self.mostWindow) }
        if case .draining = state {
            window = 2 * Self.leastWindow * Double(max(1, sample.connections))
        }
        beginRound(at: now)
    }

    private mutating func beginRound(at now: Double) {
        roundBegan = now
        roundBytes = 0
        isRoundLossy = false
    }

    private mutating func decide(
        _ rate: Double, _ roundTrip: Double, _ lowest: Double, _ now: Double
    ) {
        let former = rates.max() ?? 0
        if case .draining = state {} else { rates = (rates + [rate]).suffix(4) }
        switch state {
        case .draining(let rounds):
            let isFalling = roundTrip < drainedTo * 0.97
            drainedTo = min(drainedTo, roundTrip)
            // The window that was granted before has to be used up first.
            let isEffective = rate * roundTrip < 3 * (window ?? .infinity)
            state = .draining(rounds: isEffective && !isFalling ? rounds + 1 : rounds)
            drainRounds += 1
            if rounds + 1 >= Self.leastDrainRounds || drainRounds >= Self.mostDrainRounds {
                start(at: now)
            }
        case .starting:
            start(rate, former: former, lowest)
        case .steady:
            follow(rate, former: former, roundTrip, lowest, now)
        case .watching(let rounds):
            let isLong = queue > 2 * target
            state = .watching(rounds: isLong ? rounds + 1 : 0)
            guard isLong, rounds + 1 >= Self.roundsToWatch else { break }
            state = .steady
            window = (rates.max() ?? rate) * (lowest + target)
        case .released: break
        }
    }

    /// Ends draining.
    private mutating func start(at now: Double) {
        drainedAt = now
        drainedTo = .infinity
        drainRounds = 0
        state = .starting
        rates = []
        window = former.map { $0 / 2 } ?? Self.firstWindow
    }

    private mutating func start(_ rate: Double, former: Double, _ lowest: Double) {
        guard let window else { return }
        let isGrowing = rate > former * 1.25
        if isRoundLossy || (queue > target && !isGrowing) {
            state = .steady
            self.window = (rates.max() ?? rate) * (lowest + target)
        } else if isFull(rate, lowest + queue) {
            self.window = window * (queue > target / 2 ? 1.25 : 2)
        }
    }

    /// True if the window, and not the sender, limits the transfers.
    private func isFull(_ rate: Double, _ roundTrip: Double) -> Bool {
        rate * roundTrip > (window ?? .infinity) / 2
    }

    private mutating func follow(
        _ rate: Double, former: Double, _ roundTrip: Double, _ lowest: Double, _ now: Double
    ) {
        guard var wanted = window else { return }
        if let before = rateBefore {
            rateBefore = nil
            if rate > before * 1.1 {
                (probePause, roundsToProbe) = (8, 1)
                window = wanted
                return
            }
            wanted /= 1.25
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
            wanted = max(next, min(wanted, (rates.max() ?? rate) * lowest))
        } else if isFull(rate, roundTrip) {
            wanted = queue < target / 4 ? wanted * 1.1 : next
        }
        if isRoundLossy { wanted = min(wanted, (window ?? wanted) / 2) }
        window = wanted
        noteCrowd(now)
        roundsToProbe -= 1
        if state == .steady, roundsToProbe <= 0, !isRoundLossy, isFull(rate, roundTrip) {
            rateBefore = rates.max()
            window = wanted * 1.25
        }
    }

    /// Looks whether the queue is that of others, and whether the lowest delay is to be measured.
    private mutating func noteCrowd(_ now: Double) {
        if queue > 3 * target {
            if crowdedRounds == 0 { windowBeforeCrowd = window ?? 0 }
            crowdedRounds += 1
        } else {
            crowdedRounds = 0
            releaseTime = max(Self.firstRelease, releaseTime - 0.1)
        }
        if purpose == .players, crowdedRounds >= Self.mostCrowdedRounds,
            window ?? 0 < windowBeforeCrowd * 0.6
        {
            releases += 1
            state = .released(until: now + releaseTime)
            releaseTime = min(releaseTime * 2, Self.longestRelease)
            window = nil
        } else if purpose == .background, now - (drainedAt ?? now) >= Self.drainPeriod {
            former = window
            state = .draining(rounds: 0)
        }
    }
}

/// The lowest delay of a path over the last ten minutes, by minute (RFC 6817 section 2.4.2).
struct LowestDelay: Sendable {
    private var minutes: [(minute: Int, delay: Double)] = []

    /// In seconds; nil before the first sample.
    var value: Double? { minutes.lazy.map(\.delay).min() }

    mutating func note(_ delay: Double, at now: Double) {
        let minute = Int(now / 60)
        if let last = minutes.last, last.minute == minute {
            minutes[minutes.count - 1].delay = min(last.delay, delay)
        } else {
            minutes = (minutes + [(minute, delay)]).suffix(10)
        }
        minutes.removeAll { minute - $0.minute >= 10 }
    }
}

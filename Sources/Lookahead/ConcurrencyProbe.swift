// The probing controller: finds a link's limit by trial and keeps probing.
//
//     climbing ──no gain──▶ holding ──at intervals──▶ trying ──▶ holding
//        ▲                     │                         │ gain: keep the change, shorter interval
//        └────goodput jumped───┘                         └ no gain: revert, longer interval
//
// - climbing doubles the limit as long as a doubling brings a tenth more goodput;
// - holding tries a quarter more and a quarter fewer in turn; more must bring goodput, fewer must
//   cost hardly any;
// - after each change one sample is skipped, in which old and new transfers mix;
// - trouble halves the limit, and for a while nothing above half is tried.

/// A controller that finds the smallest number of transfers with the most goodput.
struct ConcurrencyProbe: Sendable, Equatable {
    private enum Phase: Equatable {
        /// With the goodput of the previous level; nil at the first level.
        case climbing(from: Int, gave: Double?)
        case holding
        case trying(from: Int, gave: Double)
    }

    // The gains that justify a step; measured on the test stand, see the decision record.

    /// The minimum gain of a doubling.
    private static let worthDoubling = 1.10
    /// The minimum gain of a quarter more.
    private static let worthMore = 1.04
    /// The minimum goodput that remains with a quarter fewer.
    private static let worthFewer = 0.985
    /// The minimum share of the peak goodput that remains after all steps down.
    private static let worthOfPeak = 0.97
    /// A change of goodput without a change of the limit: another link, or other traffic on it.
    private static let jump = 1.6
    /// The number of samples between two trials, minimum and maximum.
    private static let waits = 4...64
    /// The number of samples after trouble during which the halved limit is the maximum.
    private static let caution = 40

    private(set) var limit: Int
    private var phase: Phase
    private var isSettling = true
    /// The mean goodput while holding, over the last few samples.
    private var held: Double?
    /// The highest recent mean goodput; decays, so that it adapts to a link that became slower.
    private var peak = 0.0
    private var leastRoundTrip: Double?
    private var roundTrip: Double?
    private var quiet = 0
    private var wait = Self.waits.lowerBound
    private var triesMore = true
    private var ownCeiling = ConcurrencyPlan.most
    private var lidLeft = 0

    /// Creates a controller; `start`, the last limit measured on the network, is held first and
    /// soon probed.
    init(start: Int?) {
        limit = max(1, min(ConcurrencyPlan.most, start ?? ConcurrencyPlan.start))
        phase = start == nil ? .climbing(from: limit, gave: nil) : .holding
    }

    /// Records a sample taken under `limit` or the `ceiling`.
    mutating func note(_ sample: LinkSample, ceiling: Int) {
        countDownCeiling()
        if sample.isTroubled { return backOff(sample) }
        // No bytes arrived: the link is down, and no number of transfers would help.
        guard sample.isFull, sample.bytes > 0 else {
            isSettling = true
            return
        }
        guard limit <= ceiling else { return hold(at: ceiling) }
        noteRoundTrip(sample.roundTrip)
        if isSettling {
            isSettling = false
            return
        }
        decide(sample.goodput, most: min(ceiling, ownCeiling))
    }

    private mutating func decide(_ goodput: Double, most: Int) {
        switch phase {
        case .climbing(let from, let gave):
            if let gave, goodput < gave * Self.worthDoubling {
                // Keeps the higher level if it brought at least a little.
                hold(at: goodput > gave * Self.worthMore ? limit : from)
                held = max(goodput, gave)
            } else if limit < most {
                phase = .climbing(from: limit, gave: goodput)
                change(to: min(most, limit * 2))
            } else {
                hold(at: limit)
                held = goodput
            }
        case .holding: keepHolding(goodput, most: most)
        case .trying(let from, let gave): judge(goodput, from: from, gave: gave)
        }
    }

    private mutating func keepHolding(_ goodput: Double, most: Int) {
        let known = held ?? goodput
        if goodput > known * Self.jump {
            // More than other traffic's fluctuation: climb again from here.
            phase = .climbing(from: limit, gave: goodput)
            held = nil
            peak = 0
            return change(to: min(most, limit * 2))
        }
        held = known * 0.7 + goodput * 0.3
        peak = max(peak * 0.995, held ?? goodput)
        quiet += 1
        guard quiet >= wait else { return }
        let step = max(1, limit / 4)
        let wanted = triesMore ? min(most, limit + step) : max(1, limit - step)
        triesMore.toggle()
        guard wanted != limit else { return }
        phase = .trying(from: limit, gave: held ?? goodput)
        change(to: wanted)
    }

    private mutating func judge(_ goodput: Double, from: Int, gave: Double) {
        let isWorthIt: Bool
        if limit > from {
            // Longer queues delay other traffic, so more transfers must bring a larger gain.
            let worth = isCrowded ? 1 + (Self.worthMore - 1) * 3 : Self.worthMore
            isWorthIt = goodput >= gave * worth
        } else {
            isWorthIt = goodput >= gave * Self.worthFewer && goodput >= peak * Self.worthOfPeak
        }
        if isWorthIt {
            wait = Self.waits.lowerBound
            // A change that brought a gain may bring another.
            triesMore = limit > from
            hold(at: limit)
        } else {
            wait = min(Self.waits.upperBound, wait * 2)
            hold(at: from)
        }
        held = isWorthIt ? goodput : gave
    }

    // MARK: Steps

    private mutating func hold(at level: Int) {
        phase = .holding
        quiet = 0
        change(to: level)
    }

    private mutating func change(to level: Int) {
        guard level != limit else { return }
        limit = level
        isSettling = true
    }

    private mutating func backOff(_ sample: LinkSample) {
        let half = max(1, limit / 2)
        // No bytes at all: an outage, which fewer transfers do not end.
        if sample.bytes > 0 {
            ownCeiling = half
            lidLeft = Self.caution
        }
        wait = Self.waits.lowerBound
        triesMore = true
        held = nil
        peak = 0
        hold(at: sample.bytes > 0 ? half : max(half, min(limit, 2)))
    }

    private mutating func countDownCeiling() {
        guard lidLeft > 0 else { return }
        lidLeft -= 1
        if lidLeft == 0 { ownCeiling = ConcurrencyPlan.most }
    }

    // MARK: Round trips

    private mutating func noteRoundTrip(_ seconds: Double?) {
        guard let seconds else { return }
        leastRoundTrip = min(leastRoundTrip ?? seconds, seconds)
        roundTrip = (roundTrip ?? seconds) * 0.7 + seconds * 0.3
    }

    /// True if first bytes take so much longer than the minimum that a queue has built up.
    private var isCrowded: Bool {
        guard let least = leastRoundTrip, let roundTrip else { return false }
        return roundTrip > least * 2.5 + 0.03
    }
}

// The controller that tries: it finds a link's limit by itself and keeps looking.
//
//     climbing ──no gain──▶ holding ──now and then──▶ trying ──▶ holding
//        ▲                     │                         │ gained: more, and sooner again
//        └────goodput jumped───┘                         └ not: back, and later again
//
// - climbing doubles, for as long as a doubling brings a tenth more;
// - holding tries a quarter more and a quarter fewer in turn; more must pay, fewer need not cost;
// - after each change one sample is left out, in which old and new transfers mix;
// - trouble halves, and for a while nothing above half is tried.

/// Finds the smallest number of transfers that gives the most goodput.
struct ConcurrencyProbe: Sendable, Equatable {
    private enum Phase: Equatable {
        /// With what the level before gave; nil at the first.
        case climbing(from: Int, gave: Double?)
        case holding
        case trying(from: Int, gave: Double)
    }

    // What is worth a step; measured on the stand, see the decision record.

    /// A doubling has to bring this much.
    private static let worthDoubling = 1.10
    /// A quarter more has to bring this much.
    private static let worthMore = 1.04
    /// A quarter fewer may leave no less than this.
    private static let worthFewer = 0.985
    /// All steps down together may leave no less than this of the most.
    private static let worthOfPeak = 0.97
    /// A change of goodput without one of ours: another link, or others on it.
    private static let jump = 1.6
    /// Samples between two tries, at first and at most.
    private static let waits = 4...64
    /// Samples after trouble in which half is the most.
    private static let caution = 40

    private(set) var limit: Int
    private var phase: Phase
    private var isSettling = true
    /// Mean goodput while holding, over few samples.
    private var held: Double?
    /// The most that was held lately; fades, so that a link that got slower is no riddle.
    private var peak = 0.0
    private var leastRoundTrip: Double?
    private var roundTrip: Double?
    private var quiet = 0
    private var wait = Self.waits.lowerBound
    private var triesMore = true
    private var lid = ConcurrencyPlan.most
    private var lidLeft = 0

    /// `start` is what the network allowed last time: it is taken at its word, and tried soon.
    init(start: Int?) {
        limit = max(1, min(ConcurrencyPlan.most, start ?? ConcurrencyPlan.start))
        phase = start == nil ? .climbing(from: limit, gave: nil) : .holding
    }

    /// Takes note of a sample taken under `limit` or the `ceiling`.
    mutating func note(_ sample: LinkSample, ceiling: Int) {
        countDownLid()
        if sample.isTroubled { return backOff(sample) }
        // Nothing came: the line is down, and no number of transfers would help.
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
        decide(sample.goodput, most: min(ceiling, lid))
    }

    private mutating func decide(_ goodput: Double, most: Int) {
        switch phase {
        case .climbing(let from, let gave):
            if let gave, goodput < gave * Self.worthDoubling {
                // The higher level stays where it cost nothing and brought a little.
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
            // More than a neighbour's noise: look anew from here.
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
            // Longer queues are other people's delay: they have to pay better.
            let worth = isCrowded ? 1 + (Self.worthMore - 1) * 3 : Self.worthMore
            isWorthIt = goodput >= gave * worth
        } else {
            isWorthIt = goodput >= gave * Self.worthFewer && goodput >= peak * Self.worthOfPeak
        }
        if isWorthIt {
            wait = Self.waits.lowerBound
            // What paid once may pay again.
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
        // Nothing at all came through: that is an outage, which fewer transfers do not end.
        if sample.bytes > 0 {
            lid = half
            lidLeft = Self.caution
        }
        wait = Self.waits.lowerBound
        triesMore = true
        held = nil
        peak = 0
        hold(at: sample.bytes > 0 ? half : max(half, min(limit, 2)))
    }

    private mutating func countDownLid() {
        guard lidLeft > 0 else { return }
        lidLeft -= 1
        if lidLeft == 0 { lid = ConcurrencyPlan.most }
    }

    // MARK: Round trips

    private mutating func noteRoundTrip(_ seconds: Double?) {
        guard let seconds else { return }
        leastRoundTrip = min(leastRoundTrip ?? seconds, seconds)
        roundTrip = (roundTrip ?? seconds) * 0.7 + seconds * 0.3
    }

    /// Whether first bytes take so much longer than they could that a queue has built up.
    private var isCrowded: Bool {
        guard let least = leastRoundTrip, let roundTrip else { return false }
        return roundTrip > least * 2.5 + 0.03
    }
}

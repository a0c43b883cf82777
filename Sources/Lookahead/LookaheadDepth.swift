// How far to run ahead of a player.
import Numbers

/// What the operator allows.
package enum LookaheadMode: Sendable, Hashable {
    case off
    /// As far as the line's speed makes it worth while.
    case auto
    /// So many seconds of playing time.
    case seconds(Double)

    /// Reads `off`, `auto` or a number of seconds in 1...600; nil for anything else.
    package init?(_ text: String) {
        switch text {
        case "off": self = .off
        case "auto": self = .auto
        default:
            guard let seconds = OutsideNumber.decimal(text, in: 1...600) else { return nil }
            self = .seconds(seconds)
        }
    }
}

/// Limits of running ahead; the defaults are what a phone's line and a laptop's disk bear.
package struct LookaheadLimits: Sendable {
    /// The longest playing time ahead of a player in mode auto, in seconds.
    ///
    /// Default 60.
    package var longestSeconds = 60.0
    /// The most bytes ahead of one player.
    ///
    /// Default 32 MB.
    package var bytes: Int64 = 32_000_000
    /// Fetches at once for one player; more would delay the one that is needed first.
    ///
    /// Default 2: one for the picture and one for the sound.
    package var parallel = 2
    /// Players ahead of which anything is fetched, those that asked last.
    ///
    /// Default 16.
    package var players = 16
    /// A player that has asked for nothing for so long, and for two segments, has stopped.
    ///
    /// Default 6 s.
    package var silence = 6.0

    package init() {}
}

/// The playing time to be had in the store ahead of what a player asked for last.
struct LookaheadDepth {
    let mode: LookaheadMode
    let limits: LookaheadLimits
    /// Bytes a second that the line gives; nil where nothing was measured yet.
    var line: Double?
    /// Bytes that a second of the rendition takes; nil where that is not known.
    var rate: Double?
    /// What the player says.
    var hints: PlayerHints?

    /// In seconds; 0 for nothing, and never less than the next segment else.
    ///
    /// In mode auto the nearer the line is to the stream's own rate, the longer a weak moment takes
    /// to be made up for, and the more must be there before it comes: 24 s where the line gives
    /// twice of what is played, 8 s at four times, the next segment alone on a fast one. Where it
    /// gives less than is played, running ahead could only take from the player.
    var seconds: Double {
        if hints?.speed == 0 { return 0 }
        switch mode {
        case .off: return 0
        case .seconds(let told): return told
        case .auto: break
        }
        // Somebody who waits for this very object needs the line for it.
        if hints?.isStarving == true { return Self.least }
        guard let line, let rate, line > 0, rate > 0 else { return Self.unmeasured }
        let surplus = line / (rate * max(1, hints?.speed ?? 1)) - 1
        guard surplus > 0 else { return Self.least }
        let wanted = min(limits.longestSeconds, 24 / surplus)
        return max(Self.least, wanted - (hints?.bufferSeconds ?? 0) / 2)
    }

    private static let least = 0.1
    /// Before anything is known: the next segment or two.
    private static let unmeasured = 8.0
}

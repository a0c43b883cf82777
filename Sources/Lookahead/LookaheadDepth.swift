// How far to fetch ahead of a player.
import Numbers

/// The operator's setting for look-ahead.
package enum LookaheadMode: Sendable, Hashable {
    case off
    /// As far as the line's speed makes it useful.
    case auto
    /// A fixed playing time in seconds.
    case seconds(Double)

    /// Parses `off`, `auto` or a number of seconds in 1...600; nil for anything else.
    package init?(_ text: String) {
        switch text {
        case "off": self = .off
        case "auto": self = .auto
        default:
            guard let seconds = ExternalNumber.decimal(text, in: 1...600) else { return nil }
            self = .seconds(seconds)
        }
    }
}

/// Limits of look-ahead; the defaults suit a phone's line and a laptop's disk.
package struct LookaheadLimits: Sendable {
    /// The maximum playing time ahead of a player in mode auto, in seconds.
    ///
    /// Default 60.
    package var longestSeconds = 60.0
    /// The maximum number of bytes ahead of one player.
    ///
    /// Default 32 MB.
    package var bytes: Int64 = 32_000_000
    /// The maximum number of concurrent fetches for one player; more would delay the one needed
    /// first.
    ///
    /// Default 2: one for video and one for audio.
    package var parallel = 2
    /// The maximum number of players with look-ahead, the most recently active ones.
    ///
    /// Default 16.
    package var players = 16
    /// A player without a request for this time, and for two segments, is considered stopped.
    ///
    /// Default 6 s.
    package var silence = 6.0

    package init() {}
}

/// The playing time to keep in the store ahead of a player's last request.
struct LookaheadDepth {
    let mode: LookaheadMode
    let limits: LookaheadLimits
    /// The goodput of the line in bytes per second; nil if not measured.
    var line: Double?
    /// The bytes per second of the rendition; nil if unknown.
    var rate: Double?
    /// The player's hints (CMCD).
    var hints: PlayerHints?

    /// The depth in seconds; 0 for nothing, otherwise never less than the next segment.
    ///
    /// In mode auto, the closer the line's goodput is to the stream's rate, the longer it takes to
    /// recover from a weak moment, so the more is fetched ahead: 24 s if the line gives twice the
    /// rate, 8 s at four times, only the next segment on a fast line. If it gives less than the
    /// rate, fetching further ahead could only take from the player.
    var seconds: Double {
        if hints?.speed == 0 { return 0 }
        switch mode {
        case .off: return 0
        case .seconds(let fixed): return fixed
        case .auto: break
        }
        // A player that waits for this object needs the line for it.
        if hints?.isStarving == true { return Self.least }
        guard let line, let rate, line > 0, rate > 0 else { return Self.unmeasured }
        let surplus = line / (rate * max(1, hints?.speed ?? 1)) - 1
        guard surplus > 0 else { return Self.least }
        let wanted = min(limits.longestSeconds, 24 / surplus)
        return max(Self.least, wanted - (hints?.bufferSeconds ?? 0) / 2)
    }

    private static let least = 0.1
    /// Before any measurement: the next segment or two.
    private static let unmeasured = 8.0
}

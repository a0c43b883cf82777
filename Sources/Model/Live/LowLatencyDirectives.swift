// Delivery directives of requests for live lists, the position of a list, and whether it satisfies
// the directives (8216bis 6.2.5).
package import HLS
package import HTTP
import Numbers
package import Posix

/// The directives that choose when, and in which form, a media playlist is delivered.
package struct DeliveryDirectives: Hashable, Sendable {
    /// `_HLS_msn`: the response is held until the list has this segment; nil for no holding.
    package let sequence: Int?
    /// `_HLS_part`: the response is held until the list has this part of that segment.
    package let part: Int?
    /// `_HLS_skip`: requests a delta update, in this form.
    ///
    /// Each form is a resource of its own; full lists are one resource whatever they waited for.
    package let skip: String?

    /// Reads query items; nil if there are none, or any besides these three: such responses cannot
    /// be shared.
    package init?(_ items: [QueryItem]) {
        var sequence: Int?
        var part: Int?
        var skip: String?
        for item in items {
            switch item.rawName {
            case "_HLS_msn":
                guard let number = Self.number(item) else { return nil }
                sequence = number
            case "_HLS_part":
                guard let number = Self.number(item) else { return nil }
                part = number
            case "_HLS_skip": skip = item.rawValue ?? ""
            default: return nil
            }
        }
        guard !items.isEmpty, part == nil || sequence != nil else { return nil }
        self.sequence = sequence
        self.part = part
        self.skip = skip
    }

    /// Reads a number small enough to be incremented without overflow.
    private static func number(_ item: QueryItem) -> Int? {
        item.rawValue.flatMap { ExternalNumber.integer($0, in: 0...ExternalNumber.largest) }
    }
}

/// What a player adds to the URLs of interstitials: which playback asks, from where on, and for
/// which date range (8216bis, appendix D).
package enum InterstitialQuery {
    private static let names: Set<String> = [
        "_HLS_primary_id", "_HLS_start_offset", "_HLS_interstitial_id",
    ]

    /// Returns the text of query items; nil if there are none, or any others.
    package static func text(of items: [QueryItem]) -> String? {
        guard !items.isEmpty, items.allSatisfy({ names.contains($0.rawName) }) else { return nil }
        return items.map(\.text).joined(separator: "&")
    }
}

/// How far a live list has advanced.
package struct LivePosition: Hashable, Sendable {
    /// The number that the next complete segment will have.
    package let next: Int
    /// The number of parts of that segment that are listed already.
    package let parts: Int
    /// Parts of the last complete segment; 0 where the list shows none.
    let lastParts: Int
    /// True once the list has ended.
    package let isEnded: Bool
    /// The expected time until the next change: the part target duration, or half a target
    /// duration.
    package let step: Interval
    /// The interval of polling an origin that does not hold requests.
    package let pause: Interval
    package let targetDuration: Interval

    /// Reads a list; nil for one that cannot be parsed or is not a media playlist.
    ///
    /// Its URIs are not resolved: they do not affect the position.
    package init?(_ text: [UInt8], limits: PlaylistLimits = .standard) {
        let reading = PlaylistReading(limits: limits)
        guard let list = try? Playlist(text, base: nil, reading), let media = list.media else {
            return nil
        }
        let summary = list.summary
        next = summary.nextMediaSequence
        parts = summary.trailingPartCount
        let last = next - 1
        lastParts = media.parts.count { $0.mediaSequence == last }
        isEnded = summary.hasEndList
        let target = summary.targetDuration.map { Interval($0) } ?? .seconds(6)
        targetDuration = target
        step =
            summary.partTarget.map { Interval($0) }
            ?? Interval(nanoseconds: target.nanoseconds / 2)
        let half = (summary.partTarget ?? summary.targetDuration).map {
            Interval($0).nanoseconds / 2
        }
        pause = Interval(nanoseconds: max(half ?? 1_000_000_000, 50_000_000))
    }

    /// True if a list at this position answers a request.
    ///
    /// It does once it contains what is requested or anything later; a part number past the end of
    /// its segment means the first part of the next segment (8216bis 6.2.5.2).
    package func satisfies(_ directives: DeliveryDirectives) -> Bool {
        guard let sequence = directives.sequence, !isEnded else { return true }
        if next > sequence + 1 { return true }
        guard let part = directives.part else { return next > sequence }
        if next == sequence { return parts > part }
        return next > sequence && (parts > 0 || lastParts == 0 || part < lastParts)
    }

    /// How long a request may be held: three target durations (8216bis 6.2.5.2), at most two
    /// minutes.
    package var longestHold: Interval { Self.longestHold(targetDuration) }

    package static func longestHold(_ targetDuration: Interval) -> Interval {
        Interval(nanoseconds: 3 * min(targetDuration, .seconds(40)).nanoseconds)
    }

    /// The time after a request at which polling for it ends.
    package var lastRepeat: Interval {
        Interval(nanoseconds: longestHold.nanoseconds - pause.nanoseconds)
    }

    /// True if a request waits for what directly follows this list, so that the list stays the
    /// newest while the origin holds the request.
    package func isNext(_ directives: DeliveryDirectives) -> Bool {
        guard let sequence = directives.sequence, !satisfies(directives) else { return false }
        guard let part = directives.part else { return sequence == next && parts == 0 }
        return sequence == next ? part <= parts : sequence == next - 1
    }
}

/// The properties that live lists and players add to a resource: directives, growth and holding.
package struct LiveTerms: Sendable {
    /// Nil for a resource that is not a playlist, or without directives.
    package var directives: DeliveryDirectives?
    /// The `InterstitialQuery` in the URL of an interstitial, whose answer is for its player; nil
    /// for all else.
    package var playQuery: String?
    /// The extent of a resource that grows, or grew, by byte ranges; nil for others.
    package var growth: LiveReading.Container?
    /// How long the origin may hold the request for an announced resource, which may not exist yet;
    /// nil for others.
    package var longestHold: Interval?

    package init(
        directives: DeliveryDirectives? = nil, growth: LiveReading.Container? = nil,
        longestHold: Interval? = nil
    ) {
        self.directives = directives
        self.growth = growth
        self.longestHold = longestHold
    }

    package static let none = LiveTerms()
}

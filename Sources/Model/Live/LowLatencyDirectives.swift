// Delivery directives of requests for live lists, and how far a list has come: whether one answers
// the other (8216bis 6.2.5).
package import HLS
package import HTTP
import Numbers
package import Posix

/// The directives that choose when, and in which form, a media playlist is given.
package struct DeliveryDirectives: Hashable, Sendable {
    /// `_HLS_msn`: the answer is held until the list has this segment; nil for no holding.
    package let sequence: Int?
    /// `_HLS_part`: or this part of it.
    package let part: Int?
    /// `_HLS_skip`: asks for a delta update, in this form; a resource of its own, while whole lists
    /// are one resource whatever they waited for.
    package let skip: String?

    /// Reads query items; nil where there are none, or others than these three, whose answers are
    /// nobody else's.
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

    /// A number that can be counted on from.
    private static func number(_ item: QueryItem) -> Int? {
        item.rawValue.flatMap { OutsideNumber.integer($0, in: 0...OutsideNumber.largest) }
    }
}

/// How far a live list has come.
package struct LivePosition: Hashable, Sendable {
    /// The number that the next complete segment will have.
    package let next: Int
    /// Parts of that segment which are there already.
    package let parts: Int
    /// Parts of the last complete segment; 0 where the list shows none.
    let lastParts: Int
    /// True once nothing more will come.
    package let isEnded: Bool
    /// How soon the next change is expected: a part, or half a segment.
    package let step: Interval
    /// How often an origin is asked that does not hold requests.
    package let pause: Interval
    package let targetDuration: Interval

    /// Reads a list; nil for one that cannot be read, or is none of media.
    ///
    /// Its URIs are not looked at: they change nothing about how far it has come.
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

    /// Whether a list that has come so far answers a request.
    ///
    /// It does once it holds what is asked for or anything later; a part behind the last of its
    /// segment is the first of the next (8216bis 6.2.5.2).
    package func satisfies(_ directives: DeliveryDirectives) -> Bool {
        guard let sequence = directives.sequence, !isEnded else { return true }
        if next > sequence + 1 { return true }
        guard let part = directives.part else { return next > sequence }
        if next == sequence { return parts > part }
        return next > sequence && (parts > 0 || lastParts == 0 || part < lastParts)
    }

    /// How long a request may be held (8216bis 6.2.5.2: three target durations), whatever a list
    /// says two minutes at most.
    package var longestHold: Interval { Self.longestHold(targetDuration) }

    package static func longestHold(_ targetDuration: Interval) -> Interval {
        Interval(nanoseconds: 3 * min(targetDuration, .seconds(40)).nanoseconds)
    }

    /// The time since the request after which it is not asked again.
    package var lastRepeat: Interval {
        Interval(nanoseconds: longestHold.nanoseconds - pause.nanoseconds)
    }
}

extension LivePosition {
    /// Whether a request waits for what comes right after this list, so that the list is the newest
    /// for as long as the origin holds it.
    package func isNext(_ directives: DeliveryDirectives) -> Bool {
        guard let sequence = directives.sequence, !satisfies(directives) else { return false }
        guard let part = directives.part else { return sequence == next && parts == 0 }
        return sequence == next ? part <= parts : sequence == next - 1
    }
}

/// What belongs to a resource because a live list names it, or is asked for it.
package struct LiveTerms: Sendable {
    /// Nil for whatever is no playlist, and without directives.
    package var delivery: DeliveryDirectives?
    /// What is known of a resource that grows by parts; nil for others.
    package var growth: LiveReading.Container?
    /// How long the origin may hold the request: it is announced, but may not be there yet.
    package var longestHold: Interval?

    package init(
        delivery: DeliveryDirectives? = nil, growth: LiveReading.Container? = nil,
        longestHold: Interval? = nil
    ) {
        self.delivery = delivery
        self.growth = growth
        self.longestHold = longestHold
    }

    package static let none = LiveTerms()
}

// Age and lifetime of a stored response (RFC 9111 section 4.2), computed once from its head.
import HTTP
import Numbers
package import Posix
import URISyntax

/// The rules for reusing a stored response, parsed from its fields.
///
/// Computed when the head is read, so that each request only compares numbers.
package struct ReuseRules: Sendable, Equatable {
    /// The freshness lifetime in seconds, counted from origination.
    package let lifetime: Int64
    /// The source of that lifetime.
    package let lifetimeSource: LifetimeSource
    /// The age in seconds that the response had on arrival (RFC 9111 section 4.2.3).
    package let initialAge: Int64
    /// The same for playback: without what only Date tells, unless a cache may have held it.
    private let initialPlaybackAge: Int64
    /// When it arrived.
    package let responseTime: WallTime
    /// True for `no-cache` without field names: every use needs revalidation.
    package let requiresRevalidation: Bool
    /// Whether it may be used once it is stale.
    package let staleUse: StaleUse
    /// Seconds beyond the lifetime in which it may be used while it is revalidated (RFC 5861).
    package let staleWhileRevalidate: Int64
    /// Seconds beyond the lifetime in which it may be used when the origin fails; nil if
    /// unspecified.
    package let staleIfError: Int64?
    /// Fields, in lower case, that must not be sent again without revalidation: those that
    /// `no-cache` names (RFC 9111 section 5.2.2.4).
    package let withheld: Set<String>

    /// Computes the rules of a head for a kind of cache.
    package init(_ head: StoredHead, kind: CacheKind) {
        let directives = kind.directives(of: head.fields)
        let control = directives.control
        responseTime = head.responseTime
        let date = Self.date(head)
        let corrected = Self.correctedAge(head)
        let apparent = max(0, head.responseTime.seconds - date)
        initialAge = max(apparent, corrected)
        initialPlaybackAge = Self.cameThroughCache(head.fields) ? initialAge : corrected
        (lifetime, lifetimeSource) = Self.lifetime(head, date, directives, kind)
        requiresRevalidation = control.noCache == .response
        staleUse = StaleUse(control, kind)
        staleWhileRevalidate = control.staleWhileRevalidate ?? 0
        staleIfError = control.staleIfError
        if case .fields(let names) = control.noCache {
            withheld = Set(names)
        } else {
            withheld = []
        }
    }

    /// Returns the current age in seconds, 0 or more.
    ///
    /// A wall clock that was set back does not make a response younger than on arrival.
    package func age(at now: WallTime) -> Int64 {
        initialAge + max(0, now.seconds - responseTime.seconds)
    }

    /// Returns the current age in seconds as players are told it: Date tells an age only of a
    /// response that came through a cache.
    ///
    /// Straight from an origin whose clock is slow, each fresh live playlist would be old, and
    /// hls.js computes the live edge from Age.
    package func playbackAge(at now: WallTime) -> Int64 {
        initialPlaybackAge + max(0, now.seconds - responseTime.seconds)
    }

    /// True if the response arrived more than a second after `now`, because the wall clock was set
    /// back; one second is tolerated, since the clocks of the loops differ slightly.
    package func isOfFuture(at now: WallTime) -> Bool {
        responseTime.seconds.subtractingSaturated(now.seconds) > 1
    }

    // MARK: Arithmetic

    /// Returns the corrected age value (RFC 9111 section 4.2.3).
    private static func correctedAge(_ head: StoredHead) -> Int64 {
        let delay = max(0, (head.responseTime - head.requestTime).nanoseconds / 1_000_000_000)
        return statedAge(head.fields) + delay
    }

    /// True if the fields show a cache or proxy between the origin and this one.
    private static func cameThroughCache(_ fields: Fields) -> Bool {
        fields.contains(.age) || fields.contains(.via)
    }

    /// Parses the Age field: the first member of the first line, without the part after a
    /// semicolon; 0 if malformed (RFC 9111 section 5.1).
    private static func statedAge(_ fields: Fields) -> Int64 {
        guard let value = fields.valueBytes(.age) else { return 0 }
        var digits = value.prefix { $0 != ASCII.comma && $0 != ASCII.semicolon }
        while let last = digits.last, ASCII.isBlank(last) { digits.removeLast() }
        return DecimalDigits(digits, upTo: CacheControl.maximumSeconds).saturated ?? 0
    }

    /// Returns the origination time: Date if valid, otherwise the time of arrival.
    private static func date(_ head: StoredHead) -> Int64 {
        let received = head.responseTime.seconds
        return head.fields.first(.date).flatMap { HTTPDate.parse($0, now: received) } ?? received
    }

    private static func lifetime(
        _ head: StoredHead, _ date: Int64, _ directives: ResponseDirectives, _ kind: CacheKind
    ) -> (Int64, LifetimeSource) {
        if let stated = directives.statedLifetime(kind) {
            if directives.isTargeted { return (stated, .targeted) }
            let isShared = kind.isShared && directives.control.sharedMaxAge != nil
            return (stated, isShared ? .sharedMaxAge : .maxAge)
        }
        let received = head.responseTime.seconds
        if !directives.isTargeted, let expires = head.fields.first(.expires) {
            // A malformed date, including "0", is in the past (RFC 9111 section 5.3).
            guard head.fields.count(of: .expires) == 1,
                let at = HTTPDate.parse(expires, now: received)
            else { return (0, .expires) }
            return (max(0, at - date), .expires)
        }
        let guessed = heuristicLifetime(head, date, directives.control)
        return (guessed, guessed > 0 ? .heuristic : .none)
    }

    /// Returns a tenth of the time since the last change, at most a day (RFC 9111 section 4.2.2).
    private static func heuristicLifetime(
        _ head: StoredHead, _ date: Int64, _ control: CacheControl
    ) -> Int64 {
        guard StatusRules.isHeuristicallyCacheable(head.status) || control.public,
            let text = head.fields.first(.lastModified),
            let modified = HTTPDate.parse(text, now: head.responseTime.seconds)
        else { return 0 }
        return min(86_400, max(0, (date - modified) / 10))
    }
}

/// Whether a response may be used once it is stale (RFC 9111 section 4.2.4).
package enum StaleUse: Sendable {
    /// Never: `must-revalidate`, `no-cache`, and in shared caches also `proxy-revalidate`, and
    /// `s-maxage` alone.
    case forbidden
    /// Only as its `stale-while-revalidate` and `stale-if-error` say, whatever a client accepts.
    ///
    /// By the letter of RFC 9111 section 5.2.2.10, `s-maxage` forbids this too. But an origin that
    /// states both in one field means what it grants.
    case asStated
    case allowed

    fileprivate init(_ control: CacheControl, _ kind: CacheKind) {
        if control.mustRevalidate || control.noCache == .response
            || (kind.isShared && control.proxyRevalidate)
        {
            self = .forbidden
        } else if kind.isShared, control.sharedMaxAge != nil {
            let isGranted = control.staleWhileRevalidate != nil || control.staleIfError != nil
            self = isGranted ? .asStated : .forbidden
        } else {
            self = .allowed
        }
    }
}

/// The caching rules of status codes.
enum StatusRules {
    /// True for statuses that may be reused without an explicit lifetime (RFC 9110 section 15.1).
    static func isHeuristicallyCacheable(_ status: HTTPStatus) -> Bool {
        heuristic.contains(status.rawValue)
    }

    /// True for statuses whose caching rules are implemented, as `must-understand` requires (RFC
    /// 9111 section 5.2.2.3): those of RFC 9110.
    static func isUnderstood(_ status: HTTPStatus) -> Bool {
        switch status.rawValue {
        case 200...206, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    private static let heuristic: Set<UInt16> = [
        200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
    ]
}

/// The source of a response's lifetime (RFC 9111 section 4.2.1); the raw value is what `why` shows.
package enum LifetimeSource: String, Sendable, CaseIterable {
    case sharedMaxAge = "s-maxage"
    case maxAge = "max-age"
    case targeted = "CDN-Cache-Control"
    case expires = "Expires"
    /// A tenth of the time since the last change.
    case heuristic
    case none
}

// Age and lifetime of a stored response (RFC 9111 section 4.2), decoded once from its head.
import HTTP
import Numbers
package import Posix
import URISyntax

/// What a stored response's fields say about its reuse.
///
/// Made when the head is read, so that a request costs a comparison of numbers.
package struct ReuseRules: Sendable, Equatable {
    /// For how many seconds from its origination the response is fresh.
    package let lifetime: Int64
    /// What gave that lifetime.
    package let lifetimeSource: LifetimeSource
    /// The age in seconds that the response had on arrival (RFC 9111 section 4.2.3).
    package let initialAge: Int64
    /// When it arrived.
    package let responseTime: WallTime
    /// `no-cache` without field names: every use needs the origin's word.
    package let alwaysAsks: Bool
    /// No stale use, whatever fails: `must-revalidate`, `no-cache`, and for shared caches also
    /// `proxy-revalidate` and `s-maxage` (RFC 9111 section 4.2.4).
    package let forbidsStale: Bool
    /// Seconds beyond the lifetime in which it may be used while it is asked about (RFC 5861).
    package let staleWhileRevalidate: Int64
    /// Seconds beyond the lifetime in which it may be used when the origin fails; nil for no word.
    package let staleIfError: Int64?
    /// Fields, in lower case, that may not be sent again without the origin's word: those that
    /// `no-cache` names (RFC 9111 section 5.2.2.4).
    package let withheld: Set<String>

    /// Reads the rules of a head for a kind of cache.
    package init(_ head: StoredHead, kind: CacheKind) {
        let directives = kind.directives(of: head.fields)
        let control = directives.control
        responseTime = head.responseTime
        let date = Self.date(head)
        initialAge = Self.initialAge(head, date)
        (lifetime, lifetimeSource) = Self.lifetime(head, date, directives, kind)
        alwaysAsks = control.noCache == .response
        forbidsStale =
            control.mustRevalidate || control.noCache == .response
            || (kind.isShared && (control.proxyRevalidate || control.sharedMaxAge != nil))
        staleWhileRevalidate = control.staleWhileRevalidate ?? 0
        staleIfError = control.staleIfError
        if case .fields(let names) = control.noCache {
            withheld = Set(names)
        } else {
            withheld = []
        }
    }

    /// The current age in seconds, 0 or more.
    ///
    /// A wall clock that went back cannot make a response younger than it was on arrival.
    package func age(at now: WallTime) -> Int64 {
        initialAge + max(0, now.seconds - responseTime.seconds)
    }

    /// Whether the response came at a time that the wall clock has yet to reach; the loops' clocks are
    /// a little apart.
    package func isOfFuture(at now: WallTime) -> Bool {
        responseTime.seconds.subtractingSaturated(now.seconds) > 1
    }

    // MARK: Arithmetic

    private static func initialAge(_ head: StoredHead, _ date: Int64) -> Int64 {
        let received = head.responseTime.seconds
        let apparent = max(0, received - date)
        let delay = max(0, (head.responseTime - head.requestTime).nanoseconds / 1_000_000_000)
        return max(apparent, statedAge(head.fields) + delay)
    }

    /// The Age field: the first member of the first line; whatever is no number does not count, and
    /// what follows a semicolon is left out (RFC 9111 section 5.1).
    private static func statedAge(_ fields: Fields) -> Int64 {
        guard let value = fields.valueBytes(.age) else { return 0 }
        var digits = value.prefix { $0 != ASCII.comma && $0 != ASCII.semicolon }
        while let last = digits.last, ASCII.isBlank(last) { digits.removeLast() }
        return DecimalDigits(digits, upTo: CacheControl.maximumSeconds).saturated ?? 0
    }

    /// The origination: Date where it can be read, else the arrival.
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
            // A malformed date, "0" included, is one in the past (RFC 9111 section 5.3).
            guard head.fields.count(of: .expires) == 1,
                let at = HTTPDate.parse(expires, now: received)
            else { return (0, .expires) }
            return (max(0, at - date), .expires)
        }
        let guessed = heuristicLifetime(head, date, directives.control)
        return (guessed, guessed > 0 ? .heuristic : .none)
    }

    /// A tenth of the time since the last change, a day at most (RFC 9111 section 4.2.2).
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

/// What caches know of status codes.
enum StatusRules {
    /// Statuses that may be reused without a stated lifetime (RFC 9110 section 15.1).
    static func isHeuristicallyCacheable(_ status: HTTPStatus) -> Bool {
        heuristic.contains(status.rawValue)
    }

    /// Statuses whose caching rules are known here, as `must-understand` asks (RFC 9111 section
    /// 5.2.2.3): those of RFC 9110.
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

/// What gave a response its lifetime (RFC 9111 section 4.2.1); the raw value is what `why` shows.
package enum LifetimeSource: String, Sendable, CaseIterable {
    case sharedMaxAge = "s-maxage"
    case maxAge = "max-age"
    case targeted = "CDN-Cache-Control"
    case expires = "Expires"
    /// A tenth of the time since the last change.
    case heuristic
    case none
}

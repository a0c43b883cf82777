// Which kind of cache we are for a response: it decides which directives count.
package import HTTP

/// The kinds of caches that RFC 9111 and RFC 9213 tell apart.
package enum CacheKind: String, CaseIterable, Sendable {
    /// For one user (RFC 9111 section 1): `private` may be stored, `s-maxage` is not for us.
    case `private`
    /// For many users.
    case shared
    /// A shared cache that acts for the origin, so that `CDN-Cache-Control` is meant for it
    /// (RFC 9213 section 3.1); a mount is one whoever can reach it.
    case gateway

    /// Whether responses go to others than the user whose request brought them.
    package var isShared: Bool { self != .private }

    /// The directives of a response that are meant for this kind.
    ///
    /// A well-formed targeted field takes the place of `Cache-Control` and `Expires` (RFC 9213
    /// section 2.2); one that is malformed or empty does not count.
    package func directives(of fields: Fields) -> ResponseDirectives {
        if self == .gateway, let targeted = TargetedDirectives.parse(fields) {
            return ResponseDirectives(control: targeted, isTargeted: true)
        }
        return ResponseDirectives(control: CacheControl(fields), isTargeted: false)
    }
}

/// The directives that count for a response, and whether they were meant for us by name.
package struct ResponseDirectives: Sendable, Equatable {
    package let control: CacheControl
    /// True where `Cache-Control`, `Expires` and `Pragma` are for others.
    package let isTargeted: Bool

    /// The explicit lifetime that a directive gives, in seconds; nil where none does.
    func statedLifetime(_ kind: CacheKind) -> Int64? {
        if kind.isShared, let shared = control.sharedMaxAge { return shared }
        return control.maxAge
    }
}

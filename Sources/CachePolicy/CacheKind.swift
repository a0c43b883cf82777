// The kind of cache that Sluice is for a response: it determines the directives that apply.
package import HTTP

/// The kinds of caches that RFC 9111 and RFC 9213 distinguish.
package enum CacheKind: String, CaseIterable, Sendable {
    /// For one user (RFC 9111 section 1): `private` responses may be stored, `s-maxage` does not
    /// apply.
    case `private`
    /// For many users.
    case shared
    /// A shared cache that acts for the origin, so that `CDN-Cache-Control` applies to it (RFC 9213
    /// section 3.1); a mount is a gateway, whoever can reach it.
    case gateway

    /// True if responses go to users other than the one whose request fetched them.
    package var isShared: Bool { self != .private }

    /// Returns the directives of a response that apply to this kind.
    ///
    /// A well-formed targeted field replaces `Cache-Control` and `Expires` (RFC 9213 section 2.2);
    /// a malformed or empty one is ignored.
    package func directives(of fields: Fields) -> ResponseDirectives {
        if self == .gateway, let targeted = TargetedDirectives.parse(fields) {
            return ResponseDirectives(control: targeted, isTargeted: true)
        }
        return ResponseDirectives(control: CacheControl(fields), isTargeted: false)
    }
}

/// The directives that apply to a response, and whether they come from a targeted field.
package struct ResponseDirectives: Sendable, Equatable {
    package let control: CacheControl
    /// True if `Cache-Control`, `Expires` and `Pragma` do not apply.
    package let isTargeted: Bool

    /// Returns the explicit lifetime of the directives in seconds; nil without one.
    func statedLifetime(_ kind: CacheKind) -> Int64? {
        if kind.isShared, let shared = control.sharedMaxAge { return shared }
        return control.maxAge
    }
}

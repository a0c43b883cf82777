import Numbers
import URISyntax

/// The directives of `Cache-Control` in a request or a response (RFC 9111 section 5.2, RFC 5861,
/// RFC 8246).
///
/// If a directive is repeated or malformed, the most restrictive reading applies (RFC 9111 section
/// 4.2.1): the smallest lifetime, and 0 for a malformed one. Seconds above 2^31 are clamped to 2^31
/// (RFC 9111 section 1.2.2).
package struct CacheControl: Sendable, Hashable {
    /// What `no-cache` and `private` apply to.
    package enum Scope: Sendable, Hashable {
        /// The whole response.
        case response
        /// The fields of these names only, in lower case.
        case fields([String])
    }

    /// The staleness that `max-stale` of a request accepts.
    package enum MaxStale: Sendable, Hashable {
        /// Staleness of any age.
        case any
        /// Staleness of at most this many seconds.
        case seconds(Int64)
    }

    /// The largest number of seconds, 2^31.
    package static let maximumSeconds: Int64 = 1 << 31

    /// Seconds a response is fresh; in a request, the greatest acceptable age.
    package var maxAge: Int64?
    /// Seconds a response is fresh in a shared cache; takes precedence over `maxAge`.
    package var sharedMaxAge: Int64?
    /// Seconds beyond freshness in which a stale response may be used while it is revalidated.
    package var staleWhileRevalidate: Int64?
    /// Seconds beyond freshness in which a stale response may be used when the origin fails.
    package var staleIfError: Int64?
    /// Seconds for which the response must still be fresh, in a request.
    package var minFresh: Int64?
    /// The staleness that a request accepts.
    package var maxStale: MaxStale?
    package var noStore = false
    package var noCache: Scope?
    package var `private`: Scope?
    package var `public` = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var mustUnderstand = false
    package var onlyIfCached = false

    /// Creates a value without directives.
    package init() {}

    /// Parses the directives of all lines of the field in `fields`.
    ///
    /// - Parameters:
    ///   - fields: The fields of a request or response.
    ///   - name: `Cache-Control`, or a targeted one such as `CDN-Cache-Control` (RFC 9213).
    package init(_ fields: Fields, name: FieldName = .cacheControl) {
        guard fields.count(of: name) != 1 else {
            // A single line is the common case and need not be joined.
            FieldCursor.forEachMember(of: fields.valueBytes(name) ?? []) { add(Directive($0)) }
            return
        }
        guard let value = fields.combinedBytes(name) else { return }
        FieldCursor.forEachMember(of: value[...]) { add(Directive($0)) }
    }

    /// Parses the directives of one value.
    package init(_ value: String) {
        for member in FieldCursor.members(of: Array(value.utf8)[...]) { add(Directive(member)) }
    }

    private mutating func add(_ directive: Directive) {
        switch directive.name {
        case "max-age": CacheControl.lower(&maxAge, directive)
        case "s-maxage": CacheControl.lower(&sharedMaxAge, directive)
        case "stale-while-revalidate": CacheControl.lower(&staleWhileRevalidate, directive)
        case "stale-if-error": CacheControl.lower(&staleIfError, directive)
        case "min-fresh": minFresh = max(minFresh ?? 0, directive.seconds ?? 0)
        case "max-stale": addMaxStale(directive)
        case "no-cache": CacheControl.widen(&noCache, directive)
        case "private": CacheControl.widen(&`private`, directive)
        default: addFlag(directive.name)
        }
    }

    private mutating func addFlag(_ name: String) {
        switch name {
        case "no-store": noStore = true
        case "public": `public` = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": mustUnderstand = true
        case "only-if-cached": onlyIfCached = true
        default: break
        }
    }

    private mutating func addMaxStale(_ directive: Directive) {
        let allowed: MaxStale =
            directive.hasArgument || directive.isMalformed
            ? .seconds(directive.seconds ?? 0) : .any
        switch (maxStale, allowed) {
        case (.seconds(let earlier), .seconds(let later)):
            maxStale = .seconds(min(earlier, later))
        case (.seconds, .any):
            break
        default:
            maxStale = allowed
        }
    }

    private static func lower(_ seconds: inout Int64?, _ directive: Directive) {
        let value = directive.seconds ?? 0
        seconds = min(seconds ?? value, value)
    }

    private static func widen(_ scope: inout Scope?, _ directive: Directive) {
        let names = directive.fieldNames
        if case .response = scope { return }
        // An argument without valid names restricts the whole response.
        guard !names.isEmpty else { return scope = .response }
        // Moved out, so that the array has a single owner and many directives take linear time.
        var all = taken(&scope)
        all += names
        scope = .fields(all)
    }

    /// Removes the field names from a scope and returns them.
    private static func taken(_ scope: inout Scope?) -> [String] {
        defer { scope = nil }
        guard case .fields(let names) = scope else { return [] }
        return names
    }
}

/// One directive: a name and optionally an argument, which is a token or a quoted string.
private struct Directive {
    let name: String
    private let argument: [UInt8]?
    /// True if something other than an argument follows the name.
    let isMalformed: Bool

    init(_ member: ArraySlice<UInt8>) {
        var cursor = FieldCursor(member)
        name = ASCII.lowercased(cursor.token().text)
        guard cursor.skip(ASCII.equals) else {
            argument = nil
            isMalformed = !cursor.isAtEnd
            return
        }
        let value = cursor.quotedString() ?? [UInt8](cursor.token())
        isMalformed = !cursor.isAtEnd
        argument = value
    }

    var hasArgument: Bool { argument != nil }

    /// The argument as delta-seconds; nil if absent or malformed.
    var seconds: Int64? {
        guard let argument, !isMalformed, let number = DecimalDigits(argument).saturated else {
            return nil
        }
        return min(number, CacheControl.maximumSeconds)
    }

    /// The argument as a list of field names in lower case; empty if absent or malformed.
    var fieldNames: [String] {
        guard let argument, !isMalformed else { return [] }
        let names = FieldCursor.members(of: argument[...])
        guard names.allSatisfy({ $0.allSatisfy(ASCII.isToken) }) else { return [] }
        return names.map { ASCII.lowercased($0.text) }
    }
}

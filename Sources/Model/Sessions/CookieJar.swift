import HostNames
import HTTP
import Numbers
package import Posix
package import URISyntax

/// The cookies of one session (RFC 6265): any response may set them, requests carry those in scope.
///
/// URLs and the time are passed in. Expiry is kept by the monotonic clock, since the wall clock may
/// be set after a cookie came. Holds at most 50 cookies a domain and 300 in all.
package struct CookieJar: Sendable {
    private struct Cookie {
        var name: String
        var value: String
        var domain: String
        var isHostOnly: Bool
        var path: String
        var isSecure: Bool
        var expires: Monotonic?
        var order: Int

        func isExpired(at now: Monotonic) -> Bool { expires.map { $0 <= now } ?? false }

        /// True if one of both cookies replaces the other.
        func isSame(as other: Cookie) -> Bool {
            name == other.name && domain == other.domain && path == other.path
        }

        /// True if both cookies could be sent under the same name with one request.
        func overlaps(_ other: Cookie) -> Bool {
            name == other.name && CookieJar.pathMatches(other.path, path)
                && (CookieJar.matches(domain, other.domain)
                    || CookieJar.matches(other.domain, domain))
        }
    }

    private var cookies: [Cookie] = []
    private var made = 0

    package init() {}

    package var isEmpty: Bool { cookies.isEmpty }

    /// Stores one Set-Cookie field of a response from `url` (RFC 6265 section 5.3).
    ///
    /// - Parameters:
    ///   - field: the value of the field.
    ///   - url: the URL of the response.
    ///   - now: the time.
    ///   - date: the same by the clock of the origin, with which `Expires` is compared.
    /// - Returns: true if requests may carry another cookie than before.
    @discardableResult
    package mutating func receive(
        _ field: String, from url: AbsoluteURL, now: Monotonic, date: WallTime
    ) -> Bool {
        guard var cookie = Self.parse(field, from: url, now: now, date: date) else { return false }
        // Cookies set over http must not replace secure ones (RFC 6265bis section 5.7).
        if url.scheme == .http {
            if cookie.isSecure || cookies.contains(where: { $0.isSecure && $0.overlaps(cookie) }) {
                return false
            }
        }
        var former: Cookie?
        if let index = cookies.firstIndex(where: { $0.isSame(as: cookie) }) {
            cookie.order = cookies[index].order
            former = cookies.remove(at: index)
        } else {
            made += 1
            cookie.order = made
        }
        if cookie.isExpired(at: now) { return false }
        cookies.append(cookie)
        bound(domain: cookie.domain)
        guard let former, former.value == cookie.value else { return true }
        return former.isExpired(at: now)
    }

    /// Takes over the cookies of another jar that have not expired; they replace those of the same
    /// name, domain and path.
    mutating func add(_ other: CookieJar, now: Monotonic) {
        let valid = other.cookies.filter { !$0.isExpired(at: now) }
        for var cookie in valid.sorted(by: { $0.order < $1.order }) {
            cookies.removeAll { $0.isSame(as: cookie) }
            made += 1
            cookie.order = made
            cookies.append(cookie)
            bound(domain: cookie.domain)
        }
    }

    /// Returns the Cookie field for a request to `url`; nil if no cookie matches (RFC 6265 section
    /// 5.4).
    package mutating func field(for url: AbsoluteURL, now: Monotonic) -> String? {
        guard !cookies.isEmpty else { return nil }
        cookies.removeAll { $0.isExpired(at: now) }
        let host = url.asciiHost
        let fitting = cookies.filter { cookie in
            (cookie.isHostOnly ? host == cookie.domain : Self.matches(host, cookie.domain))
                && Self.pathMatches(url.path, cookie.path)
                && (!cookie.isSecure || url.scheme == .https)
        }
        guard !fitting.isEmpty else { return nil }
        let ordered = fitting.sorted {
            ($0.path.utf8.count, $1.order) > ($1.path.utf8.count, $0.order)
        }
        return ordered.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    private mutating func bound(domain: String) {
        let ofDomain = cookies.filter { $0.domain == domain }
        if ofDomain.count > 50, let oldest = ofDomain.min(by: { $0.order < $1.order }) {
            cookies.removeAll { $0.order == oldest.order }
        }
        if cookies.count > 300, let oldest = cookies.min(by: { $0.order < $1.order }) {
            cookies.removeAll { $0.order == oldest.order }
        }
    }

    private static func parse(
        _ field: String, from url: AbsoluteURL, now: Monotonic, date: WallTime
    ) -> Cookie? {
        guard field.utf8.count <= 8_192 else { return nil }
        let parts = field.split(separator: ";", omittingEmptySubsequences: false)
        guard let pair = parts.first, let equals = pair.firstIndex(of: "=") else { return nil }
        let name = trimmed(pair[..<equals])
        guard !name.isEmpty else { return nil }
        var cookie = Cookie(
            name: name, value: trimmed(pair[pair.index(after: equals)...]), domain: url.asciiHost,
            isHostOnly: true, path: defaultPath(of: url), isSecure: false, expires: nil, order: 0)
        var maxAge: Int64?
        for part in parts.dropFirst() {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = sides.count > 1 ? trimmed(sides[1]) : ""
            switch ASCII.lowercased(trimmed(sides[0])) {
            case "domain":
                guard take(domain: value, into: &cookie, host: url.asciiHost) else { return nil }
            case "path" where value.hasPrefix("/"): cookie.path = value
            case "secure": cookie.isSecure = true
            case "max-age": maxAge = ExternalNumber.integer(value, in: Int64.min...Int64.max)
            case "expires":
                if let end = time(value) {
                    cookie.expires = now + (WallTime(seconds: end) - date)
                }
            default: break
            }
        }
        if let maxAge { cookie.expires = now + .seconds(max(-1, min(maxAge, 400 * 86_400))) }
        return isOfItsPrefix(cookie) ? cookie : nil
    }

    /// True if a cookie meets the requirements of its name prefix (RFC 6265bis section 4.1.3).
    private static func isOfItsPrefix(_ cookie: Cookie) -> Bool {
        let name = ASCII.lowercased(cookie.name)
        if name.hasPrefix("__secure-") { return cookie.isSecure }
        guard name.hasPrefix("__host-") else { return true }
        return cookie.isSecure && cookie.isHostOnly && cookie.path == "/"
    }

    /// Returns the seconds since 1970 of a cookie date, which often has dashes and a four-digit
    /// year.
    private static func time(_ text: String) -> Int64? {
        HTTPDate.parse(text) ?? HTTPDate.parse(String(text.map { $0 == "-" ? " " : $0 }))
    }

    /// Sets the domain; returns false unless it covers the host that sets it and is not a public
    /// suffix.
    private static func take(domain: String, into cookie: inout Cookie, host: String) -> Bool {
        let domain = ASCII.lowercased(
            domain.hasPrefix(".") ? String(domain.dropFirst()) : domain)
        // A cookie without a domain, or of a host that is itself a public suffix, is host-only.
        if domain.isEmpty || (domain == host && PublicSuffix.contains(domain)) { return true }
        guard matches(host, domain), !PublicSuffix.contains(domain) else { return false }
        cookie.domain = domain
        cookie.isHostOnly = false
        return true
    }

    /// Matches domains (RFC 6265 section 5.1.3); addresses match only themselves.
    fileprivate static func matches(_ host: String, _ domain: String) -> Bool {
        if host == domain { return true }
        return host.hasSuffix("." + domain) && SocketAddress(host: host, port: 0) == nil
    }

    /// Matches paths (RFC 6265 section 5.1.4).
    fileprivate static func pathMatches(_ path: String, _ cookiePath: String) -> Bool {
        if path == cookiePath { return true }
        return path.hasPrefix(cookiePath)
            && (cookiePath.hasSuffix("/") || path.dropFirst(cookiePath.count).hasPrefix("/"))
    }

    private static func defaultPath(of url: AbsoluteURL) -> String {
        let path = url.path
        guard path.hasPrefix("/"), let last = path.lastIndex(of: "/"), last != path.startIndex
        else {
            return "/"
        }
        return String(path[..<last])
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        var text = text[...]
        while let first = text.first, first == " " || first == "\t" { text = text.dropFirst() }
        while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
        return String(text)
    }
}

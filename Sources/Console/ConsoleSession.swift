// The cookie that a browser gets after its user has entered the access token once. Scripts cannot
// read it, and browsers send it only with requests of the console's own page.
package import HTTP
import Model
import Numbers
package import Posix

/// Creates and validates the cookie: an expiry time, and a MAC over it with a key derived from the
/// access token.
///
/// Its name has the port and, over TLS, an `s`: browsers keep one cookie of a name for all ports of
/// a host, and let no page without TLS replace one that is sent over TLS only (RFC 6265bis section
/// 5.7). There is no table of sessions; changing the token ends them all.
package struct ConsoleSession: Sendable {
    /// The lifetime of a session: a week.
    static let length = Interval.seconds(7 * 86_400 as Int64)
    /// The beginning of the cookie's name.
    private static let cookie = "sluice_console"
    /// The most cookies of one name that are checked.
    private static let mostOffered = 4

    private let signer: Signer

    package init(token: String) {
        signer = Signer(token: token, for: "console")
    }

    /// Returns the value of the `Set-Cookie` field that begins a session.
    ///
    /// - Parameters:
    ///   - now: the start of its lifetime.
    ///   - host: the host by which the client reached the daemon, with the port if it has one.
    ///   - path: the path of the daemon's pages, with a trailing slash.
    ///   - isSecure: true if it must be sent over TLS only.
    /// - Returns: the value.
    package func begin(now: WallTime, host: String?, path: String, isSecure: Bool) -> String {
        let value = value(until: (now + Self.length).seconds)
        return Self.field(value, lasts: Self.length, host, path: path, isSecure: isSecure)
    }

    /// Returns the value of the `Set-Cookie` field that ends a session.
    package static func end(host: String?, path: String, isSecure: Bool) -> String {
        field("", lasts: .zero, host, path: path, isSecure: isSecure)
    }

    private static func field(
        _ value: String, lasts: Interval, _ host: String?, path: String, isSecure: Bool
    ) -> String {
        let age = lasts.nanoseconds / 1_000_000_000
        let name = name(host: host, isSecure: isSecure)
        return "\(name)=\(value); Path=\(path); Max-Age=\(age); HttpOnly; SameSite=Strict"
            + (isSecure ? "; Secure" : "")
    }

    private static func name(host: String?, isSecure: Bool) -> String {
        let name = cookie + (isSecure ? "s" : "")
        guard let host, let colon = host.lastIndex(of: ":") else { return name }
        let port = host[colon...].dropFirst()
        guard (1...5).contains(port.utf8.count), port.utf8.allSatisfy(isDigit) else { return name }
        return "\(name)_\(port)"
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private func value(until end: Int64) -> String {
        let mac = signer.sign(Array("until \(end)".utf8))
        let digits = mac.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return "\(end).\(digits.joined())"
    }

    /// True if the fields of a request have a cookie that is valid now.
    ///
    /// - Parameters:
    ///   - fields: those of the request.
    ///   - host: the host by which the client reached the daemon, as at the beginning.
    ///   - now: the time.
    /// - Returns: true if one was made for this port and has not expired.
    package func isOpen(_ fields: Fields, host: String?, now: WallTime) -> Bool {
        guard fields.contains(.cookie) else { return false }
        let pairs = Self.pairs(fields)
        return [false, true].contains { isSecure in
            isOpen(pairs, Self.name(host: host, isSecure: isSecure) + "=", now: now)
        }
    }

    private func isOpen(_ pairs: [String], _ start: String, now: WallTime) -> Bool {
        let offered = pairs.filter { $0.hasPrefix(start) }
        return offered.prefix(Self.mostOffered).contains { pair in
            let given = String(pair.dropFirst(start.count))
            let digits = given.prefix { $0 != "." }
            guard let end = ExternalNumber.integer(digits, in: 0...ExternalNumber.largest),
                Int64(end) > now.seconds
            else { return false }
            return Signer.isEqual(given, value(until: Int64(end)))
        }
    }

    /// Removes the cookies of consoles on any port, which must not be sent to origins.
    package static func strip(_ fields: inout Fields) {
        guard fields.contains(.cookie) else { return }
        let pairs = pairs(fields)
        let kept = pairs.filter { !isConsoles($0) }
        guard kept.count < pairs.count else { return }
        fields.remove(.cookie)
        if !kept.isEmpty { fields.append(.cookie, kept.joined(separator: "; ")) }
    }

    /// True for a cookie with a name that `name` makes.
    private static func isConsoles(_ pair: String) -> Bool {
        guard pair.hasPrefix(cookie) else { return false }
        var rest = pair.utf8.dropFirst(cookie.utf8.count)
        if rest.first == UInt8(ascii: "s") { rest = rest.dropFirst() }
        if rest.first == UInt8(ascii: "_") { rest = rest.dropFirst().drop(while: isDigit) }
        return rest.first == UInt8(ascii: "=")
    }

    private static func pairs(_ fields: Fields) -> [String] {
        fields.all(.cookie).flatMap { $0.split(separator: ";") }.map { pair in
            String(pair.drop { $0 == " " || $0 == "\t" })
        }
    }
}

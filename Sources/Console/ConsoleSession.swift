// The cookie that a browser gets after its user has entered the access token once. Scripts cannot
// read it, and browsers send it only with requests of the console's own page.
package import HTTP
import Model
import Numbers
package import Posix

extension ConsoleSession {
    package static let cookie = "sluice_console"
}

/// Creates and validates the cookie: an expiry time, and a MAC over it with a key derived from the
/// access token.
///
/// There is no table of sessions; changing the token ends them all.
package struct ConsoleSession: Sendable {
    /// The lifetime of a session: a week.
    static let length = Interval.seconds(7 * 86_400 as Int64)
    /// The most cookies of that name that are checked.
    private static let mostOffered = 4

    private let signer: Signer

    package init(token: String) {
        signer = Signer(token: token, for: "console")
    }

    /// Returns the value of the `Set-Cookie` field that begins a session.
    ///
    /// - Parameters:
    ///   - now: the start of its lifetime.
    ///   - path: the path of the daemon's pages, with a trailing slash.
    ///   - isSecure: true if it must be sent over TLS only.
    /// - Returns: the value.
    package func begin(now: WallTime, path: String, isSecure: Bool) -> String {
        let value = value(until: (now + Self.length).seconds)
        return Self.field(value, lasts: Self.length, path: path, isSecure: isSecure)
    }

    /// Returns the value of the `Set-Cookie` field that ends a session.
    package static func end(path: String, isSecure: Bool) -> String {
        field("", lasts: .zero, path: path, isSecure: isSecure)
    }

    private static func field(
        _ value: String, lasts: Interval, path: String, isSecure: Bool
    ) -> String {
        let age = lasts.nanoseconds / 1_000_000_000
        return "\(cookie)=\(value); Path=\(path); Max-Age=\(age); HttpOnly; SameSite=Strict"
            + (isSecure ? "; Secure" : "")
    }

    private func value(until end: Int64) -> String {
        let mac = signer.sign(Array("until \(end)".utf8))
        let digits = mac.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return "\(end).\(digits.joined())"
    }

    /// True if the fields of a request have a cookie that is valid now.
    package func isOpen(_ fields: Fields, now: WallTime) -> Bool {
        let offered = Self.pairs(fields).filter { $0.hasPrefix("\(Self.cookie)=") }
        return offered.prefix(Self.mostOffered).contains { pair in
            let given = String(pair.dropFirst(Self.cookie.count + 1))
            let digits = given.prefix { $0 != "." }
            guard let end = ExternalNumber.integer(digits, in: 0...ExternalNumber.largest),
                Int64(end) > now.seconds
            else { return false }
            return Signer.isEqual(given, value(until: Int64(end)))
        }
    }

    /// Removes the cookie, which must not be sent to origins.
    package static func strip(_ fields: inout Fields) {
        guard fields.contains(.cookie) else { return }
        let pairs = pairs(fields)
        let kept = pairs.filter { !$0.hasPrefix("\(cookie)=") }
        guard kept.count < pairs.count else { return }
        fields.remove(.cookie)
        if !kept.isEmpty { fields.append(.cookie, kept.joined(separator: "; ")) }
    }

    private static func pairs(_ fields: Fields) -> [String] {
        fields.all(.cookie).flatMap { $0.split(separator: ";") }.map { pair in
            String(pair.drop { $0 == " " || $0 == "\t" })
        }
    }
}

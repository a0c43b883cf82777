// The cookie that a browser has after its user gave the access token once. Scripts cannot read it, and
// browsers send it with requests of the console's own page only.
package import HTTP
import Model
import Numbers
package import Posix

extension ConsoleSession {
    package static let cookie = "sluice_console"
}

/// Makes and checks the cookie: an end, and a MAC over it whose key follows from the access token.
///
/// No table of sessions is kept, and another token ends them all.
package struct ConsoleSession: Sendable {
    /// A week.
    static let length = Interval.seconds(7 * 86_400 as Int64)
    /// As many cookies of that name are looked at.
    private static let mostOffered = 4

    private let signer: Signer

    package init(token: String) {
        signer = Signer(token: token, for: "console")
    }

    /// The value of the field `Set-Cookie` that begins a session.
    ///
    /// - Parameters:
    ///   - now: the time from which it lasts.
    ///   - path: the path of the daemon's pages, with a slash at its end.
    ///   - isSecure: whether it may be sent over TLS only.
    /// - Returns: the value.
    package func begin(now: WallTime, path: String, isSecure: Bool) -> String {
        let value = value(until: (now + Self.length).seconds)
        return Self.field(value, lasts: Self.length, path: path, isSecure: isSecure)
    }

    /// The value of the field that ends one.
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

    /// Whether fields of a request have a cookie that is valid now.
    package func isOpen(_ fields: Fields, now: WallTime) -> Bool {
        let offered = Self.pairs(fields).filter { $0.hasPrefix("\(Self.cookie)=") }
        return offered.prefix(Self.mostOffered).contains { pair in
            let given = String(pair.dropFirst(Self.cookie.count + 1))
            let digits = given.prefix { $0 != "." }
            guard let end = OutsideNumber.integer(digits, in: 0...OutsideNumber.largest),
                Int64(end) > now.seconds
            else { return false }
            return Signer.isEqual(given, value(until: Int64(end)))
        }
    }

    /// The fields without the cookie, which is no origin's business.
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

/// The protocol version of a message (RFC 9110 section 2.5).
package struct HTTPVersion: Sendable, Hashable, Comparable {
    /// The digit before the dot.
    package let major: UInt8
    /// The digit after the dot.
    package let minor: UInt8

    /// A version from its two digits, each 0 to 9.
    package init(major: UInt8, minor: UInt8) {
        self.major = major
        self.minor = minor
    }

    package static let http10 = HTTPVersion(major: 1, minor: 0)
    package static let http11 = HTTPVersion(major: 1, minor: 1)
    package static let http2 = HTTPVersion(major: 2, minor: 0)

    package static func < (left: HTTPVersion, right: HTTPVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }
}

extension HTTPVersion: CustomStringConvertible {
    /// The name of the version; from 2 on without the minor version (RFC 9110 section 2.5).
    package var description: String { "HTTP/\(viaName)" }
}

extension HTTPVersion {
    /// The received protocol of a `Via` member (RFC 9110 section 7.6.3): `1.1`, `2`.
    package var viaName: String { major < 2 ? "\(major).\(minor)" : "\(major)" }
}

/// The reason why a text is not a URL that the daemon may fetch.
package enum URIError: Error, Hashable, Sendable {
    /// There is no scheme.
    case notAbsolute
    /// The scheme is neither `http` nor `https`; holds the scheme in lower case.
    case schemeNotAllowed(String)
    /// The authority is missing or has an empty host.
    case noHost
    /// The host contains a byte or has a form that no host name or address has; holds the host.
    case invalidHost(String)
    /// The port is not a number from 1 to 65535; holds the port as given.
    case portOutOfRange(String)
    /// There is a control byte (0x00-0x1F, 0x7F) at this offset.
    case controlByte(offset: Int)
    /// The URL is longer than the limit; both in bytes.
    case tooLong(length: Int, limit: Int)
    /// The user information is one that only URLs of the daemon itself have.
    case reservedUser
}

extension URIError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notAbsolute: "not an absolute URL: it must start with http:// or https://"
        case .schemeNotAllowed(let scheme): "scheme '\(scheme)' is not allowed: use http or https"
        case .noHost: "the URL has no host"
        case .invalidHost(let host): "'\(host)' is not a valid host"
        case .portOutOfRange(let port):
            // Other text may be the start of a password that holds a slash.
            port.utf8.allSatisfy { (0x30...0x39).contains($0) }
                ? "port \(port) is not from 1 to 65535" : "the port is not a number from 1 to 65535"
        case .controlByte(let offset): "the URL holds a control byte at offset \(offset)"
        case .tooLong(let length, let limit):
            "the URL has \(length) bytes, more than the limit of \(limit)"
        case .reservedUser:
            "user information that begins with mount* stands for that of a mount: use its path"
        }
    }
}

// The user information and header fields of mounts: links, memory and disk have URLs with a
// stand-in for them, and only requests to the mount's origin have these themselves.
extension AbsoluteURL {
    /// The beginning of every stand-in; the path of the mount follows, encoded.
    private static let standInStart = Array("mount*".utf8)

    /// True if the user information only stands for that of a mount, or for its header fields.
    package var hasStandIn: Bool {
        guard let userinfo = userinfoRange else { return false }
        return bytes[userinfo].starts(with: Self.standInStart)
    }

    /// Parses a URL that somebody else than the daemon wrote: it must have no stand-in, or its author
    /// would have a mount's user information sent for whatever path he likes.
    package init(given bytes: [UInt8]) throws(URIError) {
        let url = try AbsoluteURL(bytes: bytes)
        guard !url.hasStandIn else { throw .reservedUser }
        self = url
    }

    /// Returns the URL with the stand-in for the user information of a mount.
    package func withStandIn(forMount path: String) throws(URIError) -> AbsoluteURL {
        let name = PercentCoding.encode(path, allowed: .unreserved)
        return try replacingUserinfo(with: Self.standInStart + Array(name.utf8))
    }

    /// Returns the URL with other user information.
    package func replacingUserinfo(with userinfo: [UInt8]) throws(URIError) -> AbsoluteURL {
        let bare = withoutUserinfo
        var bytes = bare.bytes
        bytes.insert(contentsOf: userinfo + [0x40], at: bare.hostRange.lowerBound)
        return try AbsoluteURL(bytes: bytes)
    }
}

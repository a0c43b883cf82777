import URISyntax

/// Which URIs with other schemes are passed to the player and which are rejected.
///
/// A playlist must not make a player read files or bypass the daemon. Opaque identifiers, which no
/// player fetches by itself, are passed unchanged.
enum SchemePolicy {
    enum Verdict {
        /// Relative, or http and https: resolve and map.
        case resolve
        /// An opaque identifier or the content itself.
        case keep
        /// The scheme in lower case.
        case refuse(String)
    }

    /// Classifies a reference by its scheme.
    ///
    /// `isOptional` is true if players can play without the resource: schemes that no player opens
    /// are then passed unchanged.
    static func judge(
        _ reference: ArraySlice<UInt8>, role: ResourceRole, isOptional: Bool
    ) -> Verdict {
        guard let range = URIReference.scheme(in: reference) else {
            return role == .key && isOfKeySystem(reference) ? .keep : .resolve
        }
        // The common case, without building a string.
        if reference.starts(with: httpsPrefix) || reference.starts(with: httpPrefix) {
            return .resolve
        }
        let scheme = String(decoding: reference[range].map(ASCII.lowercased), as: UTF8.self)
        if scheme == "http" || scheme == "https" { return .resolve }
        return isKept(scheme, role: role, isOptional: isOptional) ? .keep : .refuse(scheme)
    }

    /// True for a reference such as `com.apple.fps.1_0://id`: some key systems have an underscore in
    /// what they use as a scheme, although no scheme has one (RFC 3986 section 3.1).
    private static func isOfKeySystem(_ reference: ArraySlice<UInt8>) -> Bool {
        let name = reference.prefix {
            ASCII.isAlphanumeric($0) || "+-._".utf8.contains($0)
        }
        return name.first.map(ASCII.isLetter) == true
            && reference.dropFirst(name.count).starts(with: "://".utf8)
    }

    private static let httpPrefix = Array("http:".utf8)
    private static let httpsPrefix = Array("https:".utf8)

    private static func isKept(
        _ scheme: String, role: ResourceRole, isOptional: Bool
    ) -> Bool {
        switch scheme {
        case "urn": return true
        // Content in the URI is safe, but a playlist there could name any URI.
        case "data": return role != .playlist
        default: break
        }
        guard role == .key || isOptional else { return false }
        // `crypto+http`, `hls+file` and similar schemes wrap another protocol.
        let outer = scheme.prefix { $0 != "+" }
        return !fetchable.contains(String(outer))
    }

    /// Schemes that players, browsers or media libraries open; key systems use none of them.
    private static let fetchable: Set<String> = [
        "about", "amqp", "async", "blob", "bluray", "cache", "cdda", "chrome", "concat", "concatf",
        "content", "crypto", "dav", "davs", "dccp", "dtv", "dvb", "dvd", "dvdnav", "fd",
        "ffrtmpcrypt", "ffrtmphttp", "file", "filesystem", "ftp", "ftps", "gopher", "gophers",
        "hls", "httpproxy", "icecast", "icyx", "imap", "intent", "ipfs", "ipns", "jar",
        "javascript", "ldap", "ldaps", "mailto", "md5", "mf", "mms", "mmsh", "mmst", "mmsu",
        "nfs", "pipe", "pop3", "prompeg", "pulse", "resource", "rist", "rtmp", "rtmpe", "rtmps",
        "rtmpt", "rtmpte", "rtmpts", "rtp", "rtsp", "rtsps", "sap", "scp", "screen", "sctp",
        "sftp", "smb", "smbs", "smtp", "srt", "srtp", "ssh", "subfile", "tcp", "tee", "telnet",
        "tftp", "tls", "tv", "udp", "udplite", "unix", "unsv", "v4l2", "vbscript", "vcd", "vnc",
        "view-source", "ws", "wss", "zip", "zmq",
    ]
}

// What precedes the path of each URL that is written into playlists, as the requesting player
// reaches this daemon.
import HTTP
import Model
import URISyntax

/// The beginnings of the URLs that are written for one request: a base path, or scheme, host and
/// base path.
///
/// A value of the request and the settings.
struct LinkPrefix: Equatable {
    /// The base path.
    let path: String
    /// Scheme, host and base path; the base path alone for a request without a host.
    let absolute: String
    private let writesAbsolute: Bool

    /// - Parameters:
    ///   - request: names the host; fields of a proxy in front are taken if `settings` trust them.
    ///   - isEncrypted: true for a connection over TLS.
    ///   - settings: the daemon's.
    init(_ request: RequestHead, isEncrypted: Bool, _ settings: ProxySettings) {
        var base = settings.basePath
        var scheme = isEncrypted ? "https" : "http"
        var host = request.host ?? ""
        if settings.trustsForwarded {
            if let prefix = request.fields.first(.xForwardedPrefix), Self.isPath(prefix) {
                base = prefix.hasSuffix("/") ? String(prefix.dropLast()) : prefix
            }
            if request.fields.first(.xForwardedProto) == "https" { scheme = "https" }
            if let forwarded = request.fields.first(.xForwardedHost), Self.isHost(forwarded) {
                host = forwarded
            }
        }
        path = base
        absolute = host.isEmpty ? base : "\(scheme)://\(host)\(base)"
        writesAbsolute = settings.writesAbsoluteURLs
    }

    /// The prefix of URLs in playlists, before that of a session.
    var written: String { writesAbsolute ? absolute : path }

    /// The prefix of a session's own links in a playlist.
    ///
    /// They carry the sealed session, which a playlist that was requested with it need not repeat:
    /// relative links keep it. So they also keep the key that a player began with.
    ///
    /// - Parameters:
    ///   - session: the session that the links belong to.
    ///   - target: the target of the request for the playlist.
    /// - Returns: a path or a beginning of a URL; may be empty.
    func own(of session: Session, in target: String) -> String {
        guard let seal = session.seal else { return written }
        if !writesAbsolute, seal.isShared(by: target) { return SessionSeal.relativePath }
        return written + seal.path
    }

    private static func isPath(_ text: String) -> Bool {
        text.hasPrefix("/") && !text.hasPrefix("//")
            && text.utf8.allSatisfy { PercentCoding.Allowed.path.contains($0) }
    }

    private static func isHost(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { PercentCoding.Allowed.host.contains($0) || $0 == 0x3A }
    }
}

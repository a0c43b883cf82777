// What precedes the path of each URL that is written into playlists, as the requesting player
// reaches this daemon.
import HTTP
import Model

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
        let base = Self.path(of: request, settings)
        path = base
        let own = OwnOrigin(request, isEncrypted: isEncrypted, settings)
        absolute = own.host.map { "\(own.scheme)://\($0)\(base)" } ?? base
        writesAbsolute = settings.writesAbsoluteURLs
    }

    /// Returns the base path of a request: the settings', or the one that a trusted proxy states.
    static func path(of request: RequestHead, _ settings: ProxySettings) -> String {
        guard settings.trustsForwarded, let prefix = request.fields.first(.xForwardedPrefix),
            ProxySettings.isBasePath(prefix)
        else { return settings.basePath }
        return prefix.hasSuffix("/") ? String(prefix.dropLast()) : prefix
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
}

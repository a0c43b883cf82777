// The URL that a WebDAV request names besides its own, translated to the mount's origin.
import HTTP
import Model
import Routing
import URISyntax

/// Finds what the field `Destination` of COPY and MOVE means at a mount's origin (RFC 4918 section
/// 10.3).
///
/// Its text is a URL of this daemon, which the origin would take for a path of its own. One that is
/// the origin's already stays so: clients and proxies in front translate it for origins, too.
struct MountDestination {
    let mount: Mount
    /// The request, with the scheme and host by which its client reaches this daemon.
    let request: RequestHead
    let own: OwnOrigin
    let basePath: String
    let router: Router
    /// The name of the field.
    static let field = "Destination"

    /// Returns the destination at the origin; nil if the request has none.
    ///
    /// - Parameter isOwn: tells whether a URL leads to this daemon by another of its names.
    /// - Returns: the URL.
    /// - Throws: the failure to answer with: what is moved elsewhere would leave the origin.
    func url(isOwn: (AbsoluteURL) -> Bool) throws(ProxyFailure) -> AbsoluteURL? {
        guard case .other(let method) = request.method, ["COPY", "MOVE"].contains(method) else {
            return nil
        }
        let given = request.fields.all(Self.field)
        guard let text = given.first else { return nil }
        guard given.count == 1,
            let base = try? AbsoluteURL(
                "\(own.scheme)://\(own.host ?? "localhost")\(basePath)\(request.path)"),
            let place = try? URLResolver(base: base).resolve(text)
        else {
            throw ProxyFailure(
                .client, .badRequest,
                "the field Destination is not one URL; name one below \(mount.path) once")
        }
        // A proxy in front may have ended TLS without saying so.
        let isHere =
            place.asciiHost == base.asciiHost
            && (place.explicitPort == base.explicitPort || place.port == base.port)
        if !isHere {
            if let url = translated(place) { return url }
            guard isOwn(place) else { throw elsewhere(place) }
        }
        switch route(of: place) {
        case .mount(let other, let url) where other.origin.origin == mount.origin.origin:
            return url
        case .refused(let status, let reason):
            throw ProxyFailure(.client, status, "the field Destination: \(reason)")
        default: throw elsewhere(place)
        }
    }

    /// Returns the route of one of the daemon's URLs; requests come without the base path.
    private func route(of place: AbsoluteURL) -> Route {
        var target = place.pathAndQuery
        if !basePath.isEmpty, target.hasPrefix("\(basePath)/") {
            target = String(target.dropFirst(basePath.count))
        }
        return router.route(RequestHead(method: .get, target: target))
    }

    /// Returns a destination that is the origin's URL already; nil for one that no mount covers.
    private func translated(_ place: AbsoluteURL) -> AbsoluteURL? {
        let origin = mount.origin.origin
        guard place.origin == origin else { return nil }
        let path = place.path.utf8
        for other in [mount] + router.mounts(of: origin) {
            let folder = other.origin.path.utf8
            guard path.starts(with: folder) else { continue }
            guard !Router.climbs(String(Substring(path.dropFirst(folder.count)))) else { continue }
            // With what the mount has in place of user information.
            return try? other.url(for: Substring(place.pathAndQuery.utf8.dropFirst(folder.count)))
        }
        return nil
    }

    private func elsewhere(_ place: AbsoluteURL) -> ProxyFailure {
        ProxyFailure(
            .client, .badGateway,
            """
            the destination \(place.redacted) is not at the origin of the mount \(mount.path); \
            name a URL below that path, at a name of this daemon (--host-name)
            """)
    }
}

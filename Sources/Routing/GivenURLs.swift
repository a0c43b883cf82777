// Routes of the daemon's URLs as people and players have them: at a proxy in front of the daemon,
// whose base path requests do not have.
import HTTP
package import URISyntax

extension Router {
    /// Returns the route of one of the daemon's URLs, with the base path in front or without it.
    package func route(given url: AbsoluteURL) -> Route {
        let target = url.pathAndQuery
        if !basePath.isEmpty, target.utf8.starts(with: "\(basePath)/".utf8) {
            let inner = String(target.dropFirst(basePath.count))
            let route = route(RequestHead(method: .get, target: inner))
            switch route {
            case .entry, .rewritten, .mount: return route
            case .forChild, .own, .refused: break
            }
        }
        return route(RequestHead(method: .get, target: target))
    }

    /// The most segments of a base path that `targets` removes.
    private static let mostBaseSegments = 8

    /// Returns what a target may be behind a proxy whose base path is not known: the target itself,
    /// and what is left of it without the first segments of its path.
    package static func targets(of target: String) -> [String] {
        var targets: [String] = []
        for index in target.utf8.indices {
            let byte = target.utf8[index]
            if byte == 0x3F || byte == 0x23 || targets.count > mostBaseSegments { break }
            if byte == 0x2F { targets.append(String(target[index...])) }
        }
        return targets
    }
}

extension RewrittenLink {
    /// True if its handle can be read, and its file name where that counts: hardly any URL of an
    /// origin is such a link by chance.
    package var isReadable: Bool {
        guard let handle = unchecked else { return false }
        if case .list = handle.target { return place != nil }
        return true
    }
}

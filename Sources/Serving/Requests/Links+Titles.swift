// What the texts in requests of users name.
package import Library
import Model
import Routing
package import URISyntax

extension Links {
    /// Returns the entry of the title that a text names: the URL itself, or the target of a URL of
    /// this daemon, in the session of its headers; nil if the text is neither.
    ///
    /// A link has the same target at a proxy in front, and at another node. Blocks if a stored list
    /// must be read for that.
    package func titleStart(_ text: String) -> TitleStart? {
        guard let url = try? AbsoluteURL(given: Array(text.utf8)) else { return nil }
        guard let route = ownRoute(of: url) else { return TitleStart(Entry(url: url)) }
        switch route {
        case .entry(let entry): return TitleStart(AccessToken.stripped(entry, of: token))
        case .mount(_, let mounted):
            return TitleStart(Entry(url: AccessToken.stripped(mounted, of: token)))
        case .rewritten(let link):
            guard let found = try? target(of: link, isChecked: false) else { return nil }
            let opened = link.sealed.flatMap { try? sessions.opened($0, of: found.session) }
            return TitleStart(found.url, in: opened ?? sessions.session(found.session))
        default: return nil
        }
    }

    /// True for a URL of this daemon, and for a link at a proxy in front or at another node.
    func isOwn(_ url: AbsoluteURL) -> Bool { ownRoute(of: url) != nil }

    /// Returns the route of a URL for which `isOwn` is true; nil for any other.
    private func ownRoute(of url: AbsoluteURL) -> Route? {
        if addresses.contains(url) { return router.route(given: url) }
        // Another server may have the same name, with entries and paths of its own.
        guard hasNodes || addresses.containsHost(of: url),
            case .rewritten(let link) = router.route(given: url), link.isReadable
        else { return nil }
        return .rewritten(link)
    }

    /// Returns the origin's URL for a text: the URL itself, or the target of a URL of this daemon;
    /// nil for neither.
    package func originURL(_ text: String) -> AbsoluteURL? { titleStart(text)?.url }
}

import HTTP
package import Library
import Model
import Origin
import Playlists
import TimeShifting
import Routing
package import URISyntax

extension ProxyCore {
    /// The origin's URL that a text means: as it is, or behind a URL of ours; nil for neither.
    package func originURL(_ text: String) -> AbsoluteURL? {
        guard let url = try? AbsoluteURL(text) else { return nil }
        guard addresses.contains(url) else { return url }
        let head = RequestHead(method: .get, target: url.pathAndQuery)
        switch router.route(head) {
        case .entry(let entry): return entry.url
        case .mount(_, let target): return target
        case .rewritten(let link):
            return try? target(of: link, isChecked: false).url
        default: return nil
        }
    }

    /// The titles of the store.
    package var catalogue: TitleCatalogue {
        TitleCatalogue(
            store: store, sessions: sessions, keys: keys, limits: settings.playlistLimits)
    }
}

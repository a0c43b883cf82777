import Model
package import Routing
import Store
package import URISyntax

/// The name of a time shift window: its list, in one session.
package struct WindowName: Hashable, Sendable {
    package let session: SessionID
    /// The text of a cache key, or of a normalised URL.
    package let list: String

    /// The name of the file that holds its snapshot.
    package var fileName: String {
        String(ObjectKey(sha256Of: "\(session.text) \(list)").hex.prefix(32))
    }

    /// Names a window by the cache key of its list, without delivery directives.
    package init(session: SessionID, list: String) {
        self.session = session
        self.list = list
    }

    /// Names a window by the URL of its list, whatever its delivery directives.
    package init(session: SessionID, url: AbsoluteURL) {
        self.init(session: session, list: url.withoutDirectives.normalisedForKey)
    }
}

import CachePolicy
package import HLS
import Routing
package import Store
package import URISyntax

extension KeyTable {
    /// Returns the keys under which the entry of a title, or one of its playlists, may be stored.
    ///
    /// The likeliest come first: the viewer's own, the shared one, the session's own.
    package func entryKeys(_ url: AbsoluteURL, of session: Session) -> [ObjectKey] {
        let user = user(of: url)
        let viewer = session.viewer(user)
        var audiences = [CacheKey.Audience.everyone, .session(session.id.text)]
        if let viewer { audiences.insert(.credentials(viewer), at: 0) }
        return texts(of: url).sorted().flatMap { text -> [ObjectKey] in
            let keys = audiences.map { ObjectKey(CacheKey(url: text, audience: $0)) }
            // An entry under a mount.
            guard let user else { return keys }
            return keys + [ObjectKey(CacheKey(url: text).changing { $0.user = user })]
        }
    }

    /// The key of a segment, an initialization section or a decryption key.
    package func mediaKey(_ url: AbsoluteURL, in epoch: Epoch = .first) -> ObjectKey {
        ObjectKey(CacheKey(url: key(of: url, in: KeyPlace()).text, epoch: epoch))
    }
}

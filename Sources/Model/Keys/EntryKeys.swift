import CachePolicy
import Routing
package import Store
package import URISyntax

extension KeyTable {
    /// The keys under which the entry of a title or a playlist of it may be kept, the likelier
    /// ones first: for this viewer, for everybody, for this session alone.
    package func entryKeys(_ url: AbsoluteURL, of session: Session) -> [ObjectKey] {
        let viewer = session.viewer(of: url)
        var audiences = [CacheKey.Audience.everyone, .session(session.id.text)]
        if let viewer { audiences.insert(.credentials(viewer), at: 0) }
        return texts(of: url).sorted().flatMap { text in
            audiences.map { ObjectKey(CacheKey(url: text, audience: $0)) }
        }
    }

    /// The key of a segment, an initialization section or a decryption key.
    package func mediaKey(_ url: AbsoluteURL) -> ObjectKey {
        ObjectKey(CacheKey(url: key(of: url, in: KeyPlace()).text))
    }
}

// Multivariant playlists that an origin makes for each viewer, and recognizes by a cookie.
import CachePolicy
import HTTP
import Routing
package import Store
import Synchronization

/// Which stored multivariant playlists may have been made for one session.
///
/// Cookies alone do not make a response private (RFC 9111 section 7.3), and origins that insert
/// advertisements put the viewer's session into the links of the multivariant playlist. So a
/// multivariant playlist that came with a viewer's cookie is fetched once for each session while
/// its origin answers, until two sessions got the same bytes. Media playlists, which live streams
/// reload all the time, are told apart by these links.
extension ObjectFacts {
    /// Tells whether the origin may have made a stored multivariant playlist for another session.
    ///
    /// Reads the body once.
    ///
    /// - Returns: true if a cookie may have identified another session's viewer, and the response
    ///   does not say that it is for all.
    package func mayBelong(toOtherThan session: Session, _ object: StoredObject) -> Bool {
        guard head.hasViewerCookie, object.title != session.id.number else { return false }
        let control = CacheControl(head.fields)
        return !control.public && control.sharedMaxAge == nil && isMultivariant(object)
    }

    /// Unmarks the stored playlist of these facts if another session got the same one.
    package func noteMade(_ object: StoredObject, _ other: StoredObject) {
        guard head.hasViewerCookie, let text = Self.text(of: object),
            let otherText = Self.text(of: other), text == otherText
        else { return }
        var head = head
        head.hasViewerCookie = false
        object.replaceHead(head.encoded)
        _ = object.attach(ObjectFacts(head: head, generation: generation, times: times))
    }

    private func isMultivariant(_ object: StoredObject) -> Bool {
        if let known = isMultivariant.withLock({ $0 }) { return known }
        guard object.isComplete else { return false }
        let text = Self.text(of: object) ?? []
        let found = PlaylistTags.contains("#EXT-X-STREAM-INF:", in: text)
        isMultivariant.withLock { $0 = found }
        return found
    }

    /// Returns a whole body; nil for one that is longer than multivariant playlists are.
    private static func text(of object: StoredObject) -> [UInt8]? {
        guard object.isComplete, let total = object.total, total <= TextWorker.longText else {
            return nil
        }
        return try? readBody(of: object, count: Int(total))
    }
}

package import CachePolicy
import HTTP
package import Store

extension ObjectFacts {
    /// True if an object and a response are the same representation (RFC 9110 section 8.8).
    ///
    /// They are if neither their lengths nor their content codings differ and their entity tags are
    /// equal or, unless both have one, their modification dates. Without either, only comparing the
    /// bytes would tell.
    package static func isSame(_ object: StoredObject, as head: StoredHead, total: Int64?) -> Bool {
        guard let stored = ObjectFacts.of(object)?.head, !stored.isPlaylist else { return false }
        // The position of a part that is only passed on is unknown.
        guard stored.status != .partialContent, head.status != .partialContent else { return false }
        if let known = object.total, let total, known != total { return false }
        // Some origins send one strong entity tag with all codings.
        guard StatedCoding.isSame(stored.fields, head.fields) else { return false }
        if stored.followsHTTP {
            // Only a strong validator proves that parts belong together (RFC 9111 section 3.4).
            guard let known = stored.strongValidator else { return false }
            return known == head.strongValidator
        }
        if let known = stored.fields.first(.etag), let tag = head.fields.first(.etag) {
            return known == tag
        }
        if let known = stored.fields.first(.lastModified),
            let date = head.fields.first(.lastModified)
        {
            return known == date
        }
        // Equal lengths alone prove nothing.
        return false
    }
}

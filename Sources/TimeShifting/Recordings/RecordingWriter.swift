import CachePolicy
import HLS
import HTTP
import Library
package import Model
import Playlists
package import Posix
import Retention
import Routing
import Store
import Synchronization
package import URISyntax

/// Stores playlists that Sluice has made, so that a recording plays like any stored title.
extension TimeShiftServices {
    /// Stores a playlist under the key that a session looks up; blocks on the disk.
    ///
    /// - Returns: the generation of the stored object.
    /// - Throws: `SystemError` if there is no room for it.
    @discardableResult
    package func store(
        playlist body: [UInt8], at url: AbsoluteURL, base: AbsoluteURL, of session: Session
    ) throws(SystemError) -> UInt64 {
        let text = names.keys.cacheKey(of: url, session: session, role: .playlist).text
        let now = WallTime.now()
        var fields = Fields()
        fields.append(.contentType, ContentTypes.playlist)
        let head = StoredHead(
            status: .ok, fields: fields, requestTime: now, responseTime: now,
            finalURL: base.withoutUserinfo.text, isPlaylist: true)
        let description = ObjectDescription(
            key: ObjectKey(sha256Of: text), url: text, role: ResourceRole.playlist.letter,
            head: head.encoded, total: Int64(body.count), created: now, isStorable: true,
            title: session.id.number, kind: .structure)
        return try store.store(body, as: description).generation
    }

    /// Returns the generation of the object that is stored for a playlist of a session; nil if none
    /// is.
    ///
    /// Opens its file.
    func storedGeneration(ofPlaylist url: AbsoluteURL, of session: Session) -> UInt64? {
        let text = names.keys.cacheKey(of: url, session: session, role: .playlist).text
        return store.peek(ObjectKey(sha256Of: text))?.generation
    }
}

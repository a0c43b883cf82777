// Whose a stored response is: requests and explanations (`why`) decide by the same rules.
import CachePolicy
import HLS
import Model
import Routing
import Store

extension Resource {
    /// Whether a response was fetched by another session and must not be shared.
    ///
    /// Origins mark playlists made for one viewer, for example with advertisements, with `private`
    /// or `no-store`; the segments that they name are shared. A playlist that this session has
    /// already received is its own. Where a cookie alone may tell viewers apart, the session's own
    /// copy is preferred to another's, but what is stored is served without the origin. Keys are
    /// shared by sessions with the same credentials, and by all if it took none to fetch them.
    /// Other media is shared by all sessions, but a page of another site gets none that was fetched
    /// with credentials which its session lacks, unless the origin allows sharing.
    ///
    /// - Parameters:
    ///   - object: the stored response.
    ///   - stored: its facts.
    ///   - sessions: finds the session that fetched it.
    ///   - keys: tells which user information opens a URL.
    ///   - mountKind: the kind of cache that mounts have.
    ///   - isOfForeignPage: whether a page of another site asks.
    ///   - isKnown: whether this session has received the playlist.
    ///   - mayGetOwnCopy: whether a copy for this session is stored, or the origin may send one.
    /// - Returns: true if it must not be served to this session.
    func belongsToAnotherViewer(
        _ object: StoredObject, _ stored: ObjectFacts, of sessions: SessionTable, keys: KeyTable,
        mountKind: CacheKind, isOfForeignPage: @autoclosure () -> Bool,
        isKnown: @autoclosure () -> Bool, mayGetOwnCopy: @autoclosure () -> Bool
    ) -> Bool {
        // Elsewhere, HTTP's rules have decided who may get it.
        guard !followsHTTP, !isKept(for: session) else { return false }
        guard role != .key else {
            if let user = stored.head.user, user != keys.user(of: url) { return true }
            return !session.hasCredentials(of: sessions.session(SessionID(object.title)))
        }
        if stored.isOpenedByCredentials {
            return isKeptFromPage(stored, keys, isOfForeignPage: isOfForeignPage())
        }
        if stored.isMarkedByCookieAlone {
            return mayGetOwnCopy() && stored.mayBelong(toOtherThan: session, object)
        }
        guard stored.head.isPlaylist else { return false }
        // The clients of a mount have one session: see `isOfOneClient`.
        if isMounted, mountKind.isShared { return false }
        return stored.isPerViewer && !isKnown()
    }

    /// True if a page of another site asks for what credentials opened that its session lacks.
    func isKeptFromPage(
        _ stored: ObjectFacts, _ keys: KeyTable, isOfForeignPage: @autoclosure () -> Bool
    ) -> Bool {
        // Players, which send neither field of a page, need no digest of user information.
        stored.isOpenedByCredentials && isOfForeignPage()
            && stored.head.user != keys.credentials(of: self)
    }
}

extension ObjectFacts {
    /// True for media that was fetched with credentials, and that its origin does not share.
    var isOpenedByCredentials: Bool { head.user != nil && !head.isPlaylist }

    /// True if only a cookie may say that a playlist was made for one viewer.
    var isMarkedByCookieAlone: Bool { head.hasViewerCookie && !isPerViewer }
}

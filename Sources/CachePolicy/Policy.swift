/// How stored responses of an origin may be reused.
package enum Policy: String, CaseIterable, Sendable {
    /// Playlist semantics: resources of a finished playlist are reusable for as long as they are
    /// stored, unless the origin says `no-store`; live playlists for half a target duration.
    case media
    /// RFC 9111 strictly.
    case rfc
    /// Never contacts the network; stored responses are served whatever their age.
    case offline
    /// Always revalidates stored responses.
    case refresh
}

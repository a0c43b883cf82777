/// How stored responses of an origin may be reused.
package enum Policy: String, CaseIterable, Sendable {
    /// Playlist semantics: what a finished playlist names is reusable for as long as it is kept,
    /// unless the origin says `no-store`; live playlists for half a target duration.
    case media
    /// RFC 9111 to the letter.
    case rfc
    /// Never asks the network; what is stored is served whatever its age.
    case offline
    /// Always asks the origin whether what is stored is still right.
    case refresh
}

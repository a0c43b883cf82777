/// The priority class of a transfer.
///
/// Raw values order the lanes, most urgent first.
package enum Lane: Int, Sendable, CaseIterable, Comparable {
    /// Playlists, keys, initialization sections and readers about to run dry: needs no slot within
    /// its own cap.
    case express
    /// Resources that a player waits for.
    case playback
    /// Resources that a player will probably request next.
    case prefetch
    /// Resources that nothing waits for.
    case background

    /// The name in logs and metrics.
    package var name: String {
        switch self {
        case .express: "express"
        case .playback: "playback"
        case .prefetch: "prefetch"
        case .background: "background"
        }
    }

    package static func < (a: Lane, b: Lane) -> Bool { a.rawValue < b.rawValue }
}

/// The form in which a stored playlist is served: what it depends on besides the origin's bytes.
///
/// Rewritten playlists are kept in memory by form, so the form changes whenever the text would.
package struct PlaylistForm: Hashable, Sendable {
    /// The state of the recording that the window is extended from; 0 without time shift.
    package var timeShift: UInt64 = 0
    /// The state of the stored resources that the list is cut down to; 0 while the network is
    /// available.
    package var offline: UInt64 = 0

    /// The origin's text, unchanged.
    package static let origin = PlaylistForm()
}

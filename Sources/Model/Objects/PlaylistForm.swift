/// Which form of a stored playlist is served: what it depends on beside the origin's bytes.
///
/// Rewritten forms are kept in memory by this, so it changes whenever the text would.
package struct PlaylistForm: Hashable, Sendable {
    /// The state of the recording that the window is extended from; 0 without time shift.
    package var timeShift: UInt64 = 0
    /// The state of what is kept that the list is cut down to; 0 with the network there.
    package var offline: UInt64 = 0

    /// The origin's text as it is.
    package static let origin = PlaylistForm()
}

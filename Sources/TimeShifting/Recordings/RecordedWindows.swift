import Library
import Posix

/// The windows that an earlier run saved for the lists of a recording.
///
/// While one cannot be read, its list is not followed: the new window would replace it. A running
/// recording sets it aside after a while, since the stream goes on meanwhile; at the end of a
/// recording nothing is missed, and it waits.
struct RecordedWindows {
    /// Since when one of them cannot be read; nil while all can.
    private var unreadSince: Monotonic?

    /// True while one of them cannot be read.
    var areAwaited: Bool { unreadSince != nil }

    /// Returns whether all of them are in memory now; blocks on the disk.
    mutating func areRead(for playlists: RecordingPlaylists, now: Monotonic) -> Bool {
        let (table, session) = (playlists.services.timeShift, playlists.session)
        func unread() -> [ChosenPlaylist] {
            playlists.order.lists.filter { table.list($0.url, of: session).isUnread }
        }
        let found = unread()
        guard !found.isEmpty else {
            unreadSince = nil
            return true
        }
        let since = unreadSince ?? now
        unreadSince = since
        guard playlists.order.state == .running, now - since >= TimeShiftFiles.patience
        else { return false }
        for chosen in found { table.setAsideSaved(chosen.url, of: session) }
        guard unread().isEmpty else { return false }
        unreadSince = nil
        return true
    }
}

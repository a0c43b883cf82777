package import HTTP
package import Posix

/// Decides when a download reads its playlists past the cache, since an origin refuses what they
/// name: its URLs may carry a token that has expired, or the title may have new names.
///
/// The playlists are read at the first refusal, and again only if further pieces were stored since
/// and another piece is refused, so that an origin that refuses is not asked repeatedly. Once a
/// reading has not helped, a minute passes until the next one: each requests what is refused again.
package struct PlaylistRenewal: Sendable, Equatable {
    /// The least time between two readings: tokens may live for seconds.
    package static let pause = Interval.seconds(2 as Int64)
    /// The least time before a reading for a piece that the origin does not have, since most origins
    /// keep the names of a title, and after a reading that has not helped.
    package static let longPause = Interval.seconds(60 as Int64)

    /// The time of the last reading, or of the one that is about to begin.
    private var due: Monotonic?
    /// The most pieces that were in the store at a reading.
    private var stored = -1
    /// The pieces that were refused before the last reading: if they are refused again, the reason
    /// is not an expired token.
    private var refused: Set<Int> = []
    /// Those of them that were refused again since.
    private var refusedAgain: Set<Int> = []

    package init() {}

    /// True if a status may mean that a playlist has another URL by now.
    package static func fits(_ status: HTTPStatus?) -> Bool {
        status.map { [401, 403, 404, 410].contains($0.rawValue) } ?? false
    }

    /// Decides whether the playlists are read anew after a refusal, and notes that they are.
    ///
    /// - Parameters:
    ///   - status: the origin's status; nil if it did not answer.
    ///   - piece: the refused piece; nil for a playlist.
    ///   - stored: the number of pieces in the store.
    ///   - now: the time.
    /// - Returns: true if they are, as soon as `isDue`.
    package mutating func begins(
        after status: HTTPStatus?, of piece: Int?, stored: Int, now: Monotonic
    ) -> Bool {
        guard Self.fits(status) else { return false }
        if let piece, refused.contains(piece) {
            refusedAgain.insert(piece)
            return false
        }
        guard stored > self.stored else { return false }
        if status == .notFound || isInVain, let due, now - due < Self.longPause { return false }
        due = due.map { max(now, $0 + Self.pause) } ?? now
        self.stored = stored
        return true
    }

    /// True if the last reading did not help: at least half of what was refused before was refused
    /// again.
    ///
    /// The others may be in flight still.
    private var isInVain: Bool { !refused.isEmpty && 2 * refusedAgain.count >= refused.count }

    /// True if the reading that was decided on may begin.
    package func isDue(at now: Monotonic) -> Bool { due.map { now >= $0 } ?? true }

    /// Notes that the playlists are read.
    ///
    /// - Parameters:
    ///   - stored: the number of pieces in the store.
    ///   - refused: the pieces that were refused since the last reading.
    ///   - now: the time.
    package mutating func begin(stored: Int, refused: Set<Int> = [], now: Monotonic) {
        due = now
        self.stored = max(self.stored, stored)
        self.refused = refused
        refusedAgain = []
    }
}

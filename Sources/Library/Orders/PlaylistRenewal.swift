package import HTTP
package import Posix

/// Decides when a download reads its playlists past the cache, since an origin refuses what they
/// name: its URLs may carry a token that has expired, or the title may have new names.
///
/// The playlists are read once for a run, and again only after a minute in which further pieces
/// were stored, so that an origin that refuses is not asked repeatedly.
package struct PlaylistRenewal: Sendable, Equatable {
    /// The least time between two renewals.
    package static let pause = Interval.seconds(60 as Int64)

    private var last: Monotonic?
    /// The most pieces that were in the store at a renewal.
    private var stored = -1

    package init() {}

    /// True if a status may mean that a playlist has another URL by now.
    package static func fits(_ status: HTTPStatus?) -> Bool {
        status.map { [401, 403, 404, 410].contains($0.rawValue) } ?? false
    }

    /// Decides whether the playlists are read anew after a refusal, and notes that they are.
    ///
    /// - Parameters:
    ///   - status: the origin's status; nil if it did not answer.
    ///   - stored: the pieces in the store.
    ///   - now: the time.
    /// - Returns: true if they are.
    package mutating func begins(
        after status: HTTPStatus?, stored: Int, now: Monotonic
    ) -> Bool {
        guard Self.fits(status), stored > self.stored,
            last.map({ now - $0 >= Self.pause }) ?? true
        else { return false }
        begin(stored: stored, now: now)
        return true
    }

    /// Notes a renewal that no refusal has caused.
    package mutating func begin(stored: Int, now: Monotonic) {
        last = now
        self.stored = max(self.stored, stored)
    }
}

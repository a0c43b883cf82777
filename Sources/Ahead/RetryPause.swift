import Posix

/// The pauses of a download whose fetches fail: they grow, and start anew after a success.
struct RetryPause: Sendable, Equatable {
    /// The longest pause, in seconds.
    static let longest: Int64 = 30

    /// The longest pause that an origin may ask for, in seconds: the number may be a mistake.
    static let longestAsked: Int64 = 300

    /// The most pauses in a row after HTML pages in place of playlists: an hour.
    ///
    /// Nothing shows yet that the URL is that of a title.
    static let mostForPlaylists = 120

    /// The most pauses in a row after HTML pages in place of parts: eight hours.
    ///
    /// That is a night in which nobody signs in to a captive portal.
    static let mostForParts = 960

    private var failures = 0
    /// The pauses after pages in place of playlists since the last success.
    private var playlistPages = 0
    /// The pauses after pages in place of parts since the last success.
    private var partPages = 0

    /// Counts a pause after an HTML page in place of a playlist.
    ///
    /// - Returns: false if there were `mostForPlaylists` already.
    mutating func mayFollowPlaylistPage() -> Bool {
        guard playlistPages < Self.mostForPlaylists else { return false }
        playlistPages += 1
        return true
    }

    /// Counts a pause after an HTML page in place of a part.
    ///
    /// - Returns: false if there were `mostForParts` already.
    mutating func mayFollowPartPage() -> Bool {
        guard partPages < Self.mostForParts else { return false }
        partPages += 1
        return true
    }

    /// Returns the pause after a failure: one second, then two, up to half a minute.
    ///
    /// - Parameter asked: the seconds that the origin asked for (`Retry-After`); nil if it did not.
    /// - Returns: the longer one of its own pause and the origin's.
    mutating func next(asked: Int64? = nil) -> Interval {
        defer { failures = min(failures + 1, 5) }
        let own = min(Self.longest, Int64(1) << Int64(failures))
        return .seconds(max(own, min(asked ?? 0, Self.longestAsked)))
    }

    /// Starts anew: a fetch succeeded, or a client asks to go on.
    mutating func reset() {
        failures = 0
        playlistPages = 0
        partPages = 0
    }
}

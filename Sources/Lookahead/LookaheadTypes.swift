// The types shared by the look-ahead planner and the code that carries out its actions.
import HLS
package import URISyntax

/// Identifies a player of a session.
package struct PlayerID: Sendable, Hashable {
    package let session: UInt64
    /// Distinguishes the players of one session, as well as addresses and user agents allow.
    package let client: UInt64
    /// True for a page of another site, for which nothing may be requested from a private host.
    package let isForPage: Bool

    package init(session: UInt64, client: UInt64, isForPage: Bool = false) {
        self.session = session
        self.client = client
        self.isForPage = isForPage
    }
}

/// Identifies a playlist within a session.
package struct ListID: Sendable, Hashable {
    package let session: UInt64
    /// The URL as requested by players, without delivery directives.
    package let url: AbsoluteURL

    package init(session: UInt64, url: AbsoluteURL) {
        self.session = session
        self.url = url
    }
}

/// The kind of a list within its title: a player plays one list of each kind at a time.
package enum TrackKind: String, Sendable, Hashable, CaseIterable {
    case picture, sound, subtitles, other
}

/// Identifies one fetch.
package struct AheadID: Sendable, Hashable {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }
}

/// An action of the look-ahead planner.
package enum LookaheadAction: Sendable, Equatable {
    /// Fetch a piece into the store, ahead of this player.
    case fetch(AheadID, MediaPiece, for: PlayerID)
    /// Cancel a fetch that no player is expected to need soon.
    case cancel(AheadID)
}

/// The result of a fetch.
package struct AheadResult: Sendable, Equatable {
    package enum Ending: Sendable, Equatable {
        case stored, failed, cancelled
    }

    package var ending: Ending
    /// The number of bytes that were not present before.
    package var bytes: Int64
    /// The length of the whole piece in bytes; nil if unknown.
    package var size: Int64?
    /// The transfer time in seconds.
    package var seconds: Double

    package init(_ ending: Ending, bytes: Int64 = 0, size: Int64? = nil, seconds: Double = 0) {
        self.ending = ending
        self.bytes = bytes
        self.size = size
        self.seconds = seconds
    }
}

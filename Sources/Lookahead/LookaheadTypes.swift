// The words between the look-ahead planner and whoever carries out what it says.
import HLS
package import URISyntax

/// Names a player of a session.
package struct PlayerID: Sendable, Hashable {
    package let session: UInt64
    /// Tells players of one session apart, as well as addresses and agents do.
    package let client: UInt64

    package init(session: UInt64, client: UInt64) {
        self.session = session
        self.client = client
    }
}

/// Names a playlist within a session.
package struct ListID: Sendable, Hashable {
    package let session: UInt64
    /// As players ask for it.
    package let url: AbsoluteURL

    package init(session: UInt64, url: AbsoluteURL) {
        self.session = session
        self.url = url
    }
}

/// What a list is to its title: of the lists of one kind a player plays one at a time.
package enum TrackKind: String, Sendable, Hashable, CaseIterable {
    case picture, sound, subtitles, other
}

/// Names one fetch.
package struct AheadID: Sendable, Hashable {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }
}

/// What is to be done now.
package enum LookaheadAction: Sendable, Equatable {
    /// Bring a piece into the store, ahead of this player.
    case fetch(AheadID, MediaPiece, for: PlayerID)
    /// Nobody is expected to want it soon any more.
    case cancel(AheadID)
}

/// How a fetch ended.
package struct AheadResult: Sendable, Equatable {
    package enum Ending: Sendable, Equatable {
        case stored, failed, cancelled
    }

    package var ending: Ending
    /// Bytes that were not there before.
    package var bytes: Int64
    /// Bytes of the whole piece; nil where that is not known.
    package var size: Int64?
    /// For how long the line was at work on it.
    package var seconds: Double

    package init(_ ending: Ending, bytes: Int64 = 0, size: Int64? = nil, seconds: Double = 0) {
        self.ending = ending
        self.bytes = bytes
        self.size = size
        self.seconds = seconds
    }
}

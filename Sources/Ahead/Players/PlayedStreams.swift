import CachePolicy
import Lookahead
import Model
import URISyntax

/// The multivariant playlists of recent sessions, and which of their streams each session plays.
struct PlayedStreams {
    /// The most sessions.
    static let most = 256
    /// The most bytes of all multivariant playlists; a single one may have more.
    private static let mostBytes = 32 << 20

    private var graphs = RecentlyUsedMap<UInt64, StreamGraph>(
        mostKeys: Self.most, mostBytes: Self.mostBytes)
    /// The video playlist that each session plays.
    private var pictures = RecentMap<UInt64, AbsoluteURL>(capacity: Self.most)

    /// Notes the multivariant playlist of a session.
    mutating func note(_ graph: StreamGraph, of session: UInt64) {
        graphs.keep(graph, bytes: graph.byteCount, for: session)
    }

    /// Returns the kind of a media playlist within its title.
    func kind(of list: AbsoluteURL, in session: UInt64) -> TrackKind {
        graphs[session]?.kind(of: list) ?? .picture
    }

    /// Returns the announced bits per second of a stream; nil if they are not known.
    func bandwidth(of list: AbsoluteURL, in session: UInt64) -> Int? {
        graphs[session]?.bandwidth(of: list)
    }

    /// Returns how far to run ahead with a playlist that a session requests.
    ///
    /// In mode auto only if there is no better rendition: a player that gets segments from the
    /// store faster than the network could deliver them overestimates the bandwidth, and would
    /// choose a rendition that the network cannot sustain. Pacing prevents that.
    ///
    /// - Parameters:
    ///   - list: the playlist.
    ///   - session: the session that requests it.
    ///   - mode: the operator's setting.
    ///   - isPaced: true if players get segments no faster than the network could deliver them.
    /// - Returns: `mode`, or off.
    mutating func mode(
        of list: AbsoluteURL, in session: UInt64, _ mode: LookaheadMode, isPaced: Bool
    ) -> LookaheadMode {
        guard mode == .auto, !isPaced, let graph = graphs[session] else { return mode }
        if graph.kind(of: list) == .picture { pictures[session] = list }
        guard let picture = pictures[session] else { return .off }
        return graph.hasBetter(than: picture) ? .off : .auto
    }
}

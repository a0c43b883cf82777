import Lookahead
import URISyntax

/// The streams of a feed's items: the one that each item is fetched in, and what players chose.
struct FeedStreams {
    /// A player's choice of another stream than the item was to be fetched in.
    struct Choice: Equatable {
        let stream: StreamGraph.Stream
        /// True if its height is not the one that was played before.
        let isOtherHeight: Bool
    }

    private var items: [Int: (graph: StreamGraph, chosen: StreamGraph.Stream)] = [:]
    /// The height that a player chose last.
    private var playedHeight: Int?

    /// Returns the streams of an item; nil before they are known.
    func graph(of content: Int) -> StreamGraph? { items[content]?.graph }

    /// Returns the stream that an item is fetched in; nil before it is known.
    func chosen(of content: Int) -> StreamGraph.Stream? { items[content]?.chosen }

    /// Notes the streams of an item, and chooses the one that its player will probably start with.
    ///
    /// - Parameters:
    ///   - graph: the streams.
    ///   - content: the item.
    ///   - height: the height that the order names; nil for none.
    ///   - line: the goodput of the line in bytes per second; nil if not measured.
    /// - Returns: the stream; nil if there is none.
    mutating func learn(
        _ graph: StreamGraph, of content: Int, height: Int?, line: Double?
    ) -> StreamGraph.Stream? {
        let preferences = StreamGraph.PlayerPreferences(
            height: height, playedHeight: playedHeight, line: line)
        guard let stream = graph.choice(preferences) else { return nil }
        items[content] = (graph, stream)
        return stream
    }

    /// Adopts the stream that a player requests, for its item and later ones.
    ///
    /// - Returns: the stream, if it is another one than before.
    mutating func played(_ url: AbsoluteURL, of content: Int) -> Choice? {
        guard let item = items[content],
            let stream = item.graph.streams.first(where: { $0.url == url }),
            stream != item.chosen
        else { return nil }
        items[content]?.chosen = stream
        let isOtherHeight = stream.height != nil && stream.height != playedHeight
        playedHeight = stream.height ?? playedHeight
        return Choice(stream: stream, isOtherHeight: isOtherHeight)
    }
}

package import HLS
package import URISyntax

/// A multivariant playlist as what runs ahead of players sees it: which streams there are, and which
/// one a player is likely to choose.
package struct StreamGraph: Sendable {
    /// A variant stream.
    package struct Stream: Sendable, Hashable {
        package let url: AbsoluteURL
        /// Bits per second at the peak, as announced: 0 to 2^53 - 1, 0 where nothing is.
        package let bandwidth: Int
        /// Lines of the picture; nil where the list does not say.
        package let height: Int?
        /// Groups of renditions that go with it.
        package let audio: String?
        package let subtitles: String?
    }

    /// A rendition with a playlist of its own.
    package struct Rendition: Sendable, Hashable {
        package let url: AbsoluteURL
        package let kind: TrackKind
        package let group: String
        package let isDefault: Bool
    }

    /// In the order of the list; each URL once.
    package let streams: [Stream]
    package let renditions: [Rendition]

    package init(streams: [Stream], renditions: [Rendition] = []) {
        self.streams = streams
        self.renditions = renditions
    }

    /// Reads it off a playlist.
    package init(_ list: MultivariantPlaylist) {
        var known: Set<AbsoluteURL> = []
        streams = list.streams.compactMap { variant in
            guard let url = variant.reference?.url, known.insert(url).inserted else { return nil }
            return Stream(
                url: url, bandwidth: variant.bandwidth ?? 0, height: variant.height,
                audio: variant.audioGroup, subtitles: variant.subtitlesGroup)
        }
        renditions = list.renditions.compactMap { rendition in
            guard let url = rendition.reference?.url, let group = rendition.groupID else {
                return nil
            }
            let kind: TrackKind =
                switch rendition.type {
                case "AUDIO": .sound
                case "SUBTITLES": .subtitles
                case "VIDEO": .picture
                default: .other
                }
            return Rendition(url: url, kind: kind, group: group, isDefault: rendition.isDefault)
        }
    }

    /// What a list of this title is.
    package func kind(of url: AbsoluteURL) -> TrackKind {
        // Sound alone may be a variant stream too, and is then played as one.
        if streams.contains(where: { $0.url == url }) { return .picture }
        return renditions.first { $0.url == url }?.kind ?? .picture
    }

    /// The announced bits per second of a stream.
    package func bandwidth(of url: AbsoluteURL) -> Int? {
        streams.first { $0.url == url }.map(\.bandwidth)
    }

    /// Whether a player of this stream could be led to choose a better one.
    package func hasBetter(than url: AbsoluteURL) -> Bool {
        guard let bandwidth = bandwidth(of: url) else { return false }
        return streams.contains { $0.bandwidth > bandwidth }
    }

    /// What is known of a player before it chooses.
    package struct Taste: Sendable, Hashable {
        /// Told: the tallest picture that is wanted.
        package var height: Int?
        /// The height that it played last.
        package var playedHeight: Int?
        /// Bytes per second that the line gives.
        package var line: Double?

        package init(height: Int? = nil, playedHeight: Int? = nil, line: Double? = nil) {
            self.height = height
            self.playedHeight = playedHeight
            self.line = line
        }
    }

    /// The stream that a player will probably start with: of the told height; else of the height
    /// that it played last; else the best one that the line carries with a quarter to spare; else
    /// the first of the list, which is where players start that know nothing.
    package func choice(_ taste: Taste) -> Stream? {
        if let wanted = taste.height ?? taste.playedHeight,
            let found = nearest(to: wanted, atMost: taste.height != nil)
        {
            return found
        }
        if let line = taste.line {
            let fitting = streams.filter { Double($0.bandwidth) <= line * 8 * 0.75 }
            return fitting.max { $0.bandwidth < $1.bandwidth }
                ?? streams.min { $0.bandwidth < $1.bandwidth }
        }
        return streams.first
    }

    /// Of several streams of one height the middle one: players seldom begin with the best.
    private func nearest(to height: Int, atMost: Bool) -> Stream? {
        let heights = Set(streams.compactMap(\.height))
        let candidates = atMost ? heights.filter { $0 <= height } : heights
        let found =
            candidates.min { abs($0 - height) < abs($1 - height) } ?? heights.min()
        let same = streams.filter { $0.height == found && found != nil }
            .sorted { $0.bandwidth < $1.bandwidth }
        return same.isEmpty ? nil : same[(same.count - 1) / 2]
    }

    /// The lists that are played beside a stream: of each kind the default, or the first.
    package func companions(of stream: Stream) -> [Rendition] {
        [(TrackKind.sound, stream.audio)].compactMap { kind, group in
            let members = renditions.filter { $0.kind == kind && $0.group == group }
            return members.first(where: \.isDefault) ?? members.first
        }
    }
}

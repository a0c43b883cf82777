package import HLS
package import URISyntax

/// A multivariant playlist as look-ahead needs it: its streams, and the one that a player is likely
/// to choose.
package struct StreamGraph: Sendable {
    /// A variant stream.
    package struct Stream: Sendable, Hashable {
        package let url: AbsoluteURL
        /// The announced peak bits per second: 0 to 2^53 - 1, 0 if not announced.
        package let bandwidth: Int
        /// The height of the picture in pixels; nil if not stated.
        package let height: Int?
        /// The rendition groups of the stream.
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

    /// The variant streams in the order of the list; each URL once.
    package let streams: [Stream]
    package let renditions: [Rendition]

    package init(streams: [Stream], renditions: [Rendition] = []) {
        self.streams = streams
        self.renditions = renditions
    }

    /// Creates the graph of a parsed playlist.
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

    /// The estimated memory in bytes.
    package var byteCount: Int {
        let ofStreams = streams.reduce(0) { sum, stream in
            sum + stream.url.bytes.count + (stream.audio?.utf8.count ?? 0)
                + (stream.subtitles?.utf8.count ?? 0) + 200
        }
        return renditions.reduce(ofStreams) { sum, rendition in
            sum + rendition.url.bytes.count + rendition.group.utf8.count + 200
        }
    }

    /// Returns the kind of a media playlist of this title.
    package func kind(of url: AbsoluteURL) -> TrackKind {
        // An audio-only variant stream counts as one too.
        if streams.contains(where: { $0.url == url }) { return .picture }
        return renditions.first { $0.url == url }?.kind ?? .picture
    }

    /// Returns the announced bits per second of a stream; nil for an unknown one.
    package func bandwidth(of url: AbsoluteURL) -> Int? {
        streams.first { $0.url == url }.map(\.bandwidth)
    }

    /// True if the title has a stream with more bandwidth.
    package func hasBetter(than url: AbsoluteURL) -> Bool {
        guard let bandwidth = bandwidth(of: url) else { return false }
        return streams.contains { $0.bandwidth > bandwidth }
    }

    /// The known preferences and conditions of a player before it chooses.
    package struct PlayerPreferences: Sendable, Hashable {
        /// The maximum height that was requested explicitly; nil for none.
        package var height: Int?
        /// The height that it played last.
        package var playedHeight: Int?
        /// The goodput of the line in bytes per second.
        package var line: Double?

        package init(height: Int? = nil, playedHeight: Int? = nil, line: Double? = nil) {
            self.height = height
            self.playedHeight = playedHeight
            self.line = line
        }
    }

    /// Returns the stream that a player will probably start with.
    ///
    /// In this order: the stream nearest to the requested height, or to the height played last; the
    /// best one that the line carries with a quarter to spare, or else the lowest one; the first of
    /// the list, where players without information start.
    package func choice(_ preferences: PlayerPreferences) -> Stream? {
        if let wanted = preferences.height ?? preferences.playedHeight,
            let found = nearest(to: wanted, atMost: preferences.height != nil)
        {
            return found
        }
        if let line = preferences.line {
            let fitting = streams.filter { Double($0.bandwidth) <= line * 8 * 0.75 }
            return fitting.max { $0.bandwidth < $1.bandwidth }
                ?? streams.min { $0.bandwidth < $1.bandwidth }
        }
        return streams.first
    }

    /// Returns the middle stream of those with the nearest height: players seldom begin with the
    /// best.
    private func nearest(to height: Int, atMost: Bool) -> Stream? {
        let heights = Set(streams.compactMap(\.height))
        let candidates = atMost ? heights.filter { $0 <= height } : heights
        let found =
            candidates.min { abs($0 - height) < abs($1 - height) } ?? heights.min()
        let same = streams.filter { $0.height == found && found != nil }
            .sorted { $0.bandwidth < $1.bandwidth }
        return same.isEmpty ? nil : same[(same.count - 1) / 2]
    }

    /// Returns the audio rendition that is played with a stream: the default of its group, or the
    /// first.
    package func companions(of stream: Stream) -> [Rendition] {
        [(TrackKind.sound, stream.audio)].compactMap { kind, group in
            let members = renditions.filter { $0.kind == kind && $0.group == group }
            return members.first(where: \.isDefault) ?? members.first
        }
    }
}

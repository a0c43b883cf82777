import Synchronization

/// A live media playlist whose window slides over a list of segments, by the clock or by hand.
///
/// After its last segment the list starts again after an `EXT-X-DISCONTINUITY`, so a window never
/// ends by itself; `end()` adds `EXT-X-ENDLIST`.
package final class LiveWindow: Sendable {
    /// A segment as it is written into the playlist.
    package struct Segment: Sendable {
        package let uri: String
        /// Seconds.
        package let duration: Double

        package init(uri: String, duration: Double) {
            self.uri = uri
            self.duration = duration
        }
    }

    /// What advances the window.
    package enum Drive: Sendable {
        /// One segment every target duration, counted from the creation of the window.
        case clock
        /// Only `advance(by:)`.
        case stepped
    }

    private struct State {
        var first = 0
        var isEnded = false
    }

    private let segments: [Segment]
    private let targetDuration: Int
    private let windowSize: Int
    private let drive: Drive
    /// Lines before the first segment, an `EXT-X-MAP` for example.
    private let header: [String]
    private let madeAt = Sockets.now()
    private let state = Mutex(State())

    /// A window of `windowSize` entries over `segments`; `targetDuration` in seconds.
    package init(
        segments: [Segment], targetDuration: Int, windowSize: Int, drive: Drive = .stepped,
        header: [String] = []
    ) {
        precondition(!segments.isEmpty && windowSize > 0 && targetDuration > 0)
        self.segments = segments
        self.targetDuration = targetDuration
        self.windowSize = windowSize
        self.drive = drive
        self.header = header
    }

    /// A window over the segments of a VOD playlist, whose URIs get `prefix` in front.
    package convenience init(
        vod playlist: String, prefix: String, windowSize: Int, drive: Drive = .stepped
    ) {
        var segments: [Segment] = []
        var duration = 0.0
        var header: [String] = []
        for line in playlist.split(separator: "\n") {
            if line.hasPrefix("#EXTINF:") {
                duration = Double(line.dropFirst(8).prefix { $0 != "," }) ?? 0
            } else if line.hasPrefix("#EXT-X-MAP:URI=\"") {
                header.append("#EXT-X-MAP:URI=\"" + prefix + line.dropFirst(16))
            } else if !line.hasPrefix("#") {
                segments.append(Segment(uri: prefix + line, duration: duration))
            }
        }
        let longest = segments.map(\.duration).max() ?? 1
        self.init(
            segments: segments, targetDuration: max(1, Int(longest.rounded())),
            windowSize: windowSize, drive: drive, header: header)
    }

    /// Advances the window by `count` segments.
    package func advance(by count: Int = 1) {
        state.withLock { $0.first += count }
    }

    /// Ends the stream: the window stops and the playlist gets `EXT-X-ENDLIST`.
    package func end() {
        let now = Sockets.now()
        state.withLock {
            $0.first = first($0, at: now)
            $0.isEnded = true
        }
    }

    /// The media sequence number of the first entry now.
    package var mediaSequence: Int {
        let now = Sockets.now()
        return state.withLock { first($0, at: now) }
    }

    private func first(_ state: State, at now: Int64) -> Int {
        guard drive == .clock, !state.isEnded else { return state.first }
        return state.first + Int((now - madeAt) / (Int64(targetDuration) * 1_000_000_000))
    }

    /// The playlist as of a monotonic time in nanoseconds.
    func playlist(at now: Int64) -> String {
        let (first, isEnded) = state.withLock { (self.first($0, at: now), $0.isEnded) }
        // A discontinuity precedes every entry that restarts the list; those that have left the
        // window count for EXT-X-DISCONTINUITY-SEQUENCE.
        let gone = first == 0 ? 0 : (first - 1) / segments.count
        var lines = [
            "#EXTM3U", "#EXT-X-VERSION:6", "#EXT-X-TARGETDURATION:\(targetDuration)",
            "#EXT-X-MEDIA-SEQUENCE:\(first)",
        ]
        if gone > 0 { lines.append("#EXT-X-DISCONTINUITY-SEQUENCE:\(gone)") }
        lines += header
        for number in first..<(first + windowSize) {
            let segment = segments[number % segments.count]
            if number > 0 && number % segments.count == 0 { lines.append("#EXT-X-DISCONTINUITY") }
            lines.append("#EXTINF:\(segment.duration),")
            lines.append(segment.uri)
        }
        if isEnded { lines.append("#EXT-X-ENDLIST") }
        return lines.joined(separator: "\n") + "\n"
    }
}

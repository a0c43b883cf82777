// Long videos, as played in the series and live traces.

/// An episode or film, determined by its number alone.
struct Episode {
    /// Seconds of a segment.
    static let segmentSeconds = 6.0
    /// How far ahead a player fetches, in seconds of media, and how fast, in multiples of real
    /// time.
    static let readAheadSeconds = 30.0
    static let speed = 4.0

    let title: UInt64
    /// Seconds.
    let length: Double
    let segmentBytes: Double

    var segments: Int { Int(length / Self.segmentSeconds) }

    /// An episode; all episodes of a series have the same length, 24 or 45 minutes, and bit rate.
    init(_ title: UInt64, series: UInt64) {
        var random = TraceRandom(seed: series &* 131)
        self.title = title
        length = (random.happens(0.5) ? 24 : 45) * 60
        let rate = random.logNormal(median: 4e6, sigma: 0.3, limits: 1.5e6...8e6)
        segmentBytes = rate / 8 * Self.segmentSeconds
    }

    /// Plays from the beginning for `watched` seconds.
    func play(_ builder: inout TraceBuilder, at start: Double, for watched: Double) {
        builder.add(.multivariantPlaylist, of: title, at: start)
        builder.add(.mediaPlaylist(segments: segments), of: title, at: start)
        builder.add(.initSection, of: title, at: start)
        for number in 0..<segments {
            let position = Double(number) * Self.segmentSeconds
            let asked = max(position / Self.speed, position - Self.readAheadSeconds)
            guard asked <= watched else { break }
            let part = TracePart.segment(number, of: title, bytes: segmentBytes)
            builder.add(part, of: title, at: start + 0.2 + asked)
        }
    }
}

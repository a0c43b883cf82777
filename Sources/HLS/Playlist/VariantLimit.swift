import Numbers
package import URISyntax

/// The highest variants that a session is offered, as its entry gives them: `height=720`,
/// `bandwidth=2500000`.
///
/// The limit concerns only what is served: the stored playlist has all variants.
package struct VariantLimit: Hashable, Sendable {
    /// The largest height in RESOLUTION; nil for any.
    package var height: Int?
    /// The largest BANDWIDTH in bits per second; nil for any.
    package var bandwidth: Int?

    package static let none = Self()
    /// The valid values of both.
    package static let range = 1...1 << 31

    package init(height: Int? = nil, bandwidth: Int? = nil) {
        self.height = height
        self.bandwidth = bandwidth
    }

    /// Returns the number of a text; nil outside of the range and for anything but digits.
    package static func number(_ text: some StringProtocol) -> Int? {
        ExternalNumber.integer(text, in: range)
    }

    /// The limits as arguments of an entry, in a fixed order.
    package var arguments: [(name: String, value: Int)] {
        [("height", height), ("bandwidth", bandwidth)].compactMap { name, value in
            value.map { (name: name, value: $0) }
        }
    }

    /// Returns a playlist without the variants and I-frame streams above the limits, and without
    /// the renditions that only these used.
    ///
    /// Of the variants that state their height one stays, the lowest, if all are above the limit;
    /// then for BANDWIDTH the same of those left that have pictures, or of all if none has. Equals
    /// of the lowest stay too, such as that of another pathway. A variant that does not state a
    /// value is not above its limit.
    ///
    /// - Parameters:
    ///   - text: a playlist of either kind; URIs are the origin's.
    ///   - base: its URL after redirects.
    ///   - reading: the context in which it is parsed.
    /// - Returns: the text itself if nothing is above the limits.
    /// - Throws: the errors of rewriting it.
    package func applied(
        to text: [UInt8], base: AbsoluteURL, _ reading: PlaylistReading
    ) throws(PlaylistError) -> [UInt8] {
        // Media playlists, which are reloaded all the time, are parsed once only: to be rewritten.
        guard self != .none, try !Self.startsWithSegment(text, reading.limits) else { return text }
        var reading = reading
        reading.keepsLines = true
        let list = try Playlist(text, base: base, reading)
        let above = list.multivariant.map(lines(above:)) ?? []
        guard !above.isEmpty else { return text }
        return MultivariantFilter.filter(list) { !above.contains($0.line) }.bytes
    }

    private static let segmentTag = Array("#EXTINF:".utf8)
    private static let variantTag = Array("#EXT-X-STREAM-INF:".utf8)

    /// True if a segment precedes the first variant: such a playlist is a media playlist.
    private static func startsWithSegment(
        _ text: [UInt8], _ limits: PlaylistLimits
    ) throws(PlaylistError) -> Bool {
        var reader = LineReader(text, limits: limits)
        while let line = try reader.next(in: text.span) {
            let bytes = text[line.range]
            if bytes.starts(with: segmentTag) { return true }
            if bytes.starts(with: variantTag) { return false }
        }
        return false
    }

    /// Returns the lines of the URIs above the limits.
    private func lines(above list: MultivariantPlaylist) -> Set<Int> {
        let streams = list.streams.filter { $0.reference != nil }
        var left = streams
        if let height {
            left = streams.filter { $0.height.map { $0 <= height } ?? true }
            // Sound alone is no substitute for pictures.
            if !left.contains(where: { $0.height != nil }) {
                let sized = streams.filter { $0.height != nil }
                left += Self.lowest(sized) { ($0.height ?? 0, $0.bandwidth ?? 0) }
            }
        }
        if let bandwidth {
            let isWithin = { (variant: MultivariantPlaylist.Variant) in
                variant.bandwidth.map { $0 <= bandwidth } ?? true
            }
            let pictures = left.filter { !MultivariantFilter.isSoundOnly($0, isRendition: false) }
            let wanted = pictures.isEmpty ? left : pictures
            left = left.filter(isWithin)
            if !wanted.contains(where: isWithin) {
                left += Self.lowest(wanted) { ($0.bandwidth ?? 0, 0) }
            }
        }
        let kept = Set(left.compactMap { $0.reference?.line })
        let lost = streams.compactMap { $0.reference?.line }.filter { !kept.contains($0) }
        let lostPictures = list.variants.filter { $0.kind == .iFrames && isAbove($0) }
            .compactMap { $0.reference?.line }
        return Set(lost + lostPictures)
    }

    private func isAbove(_ variant: MultivariantPlaylist.Variant) -> Bool {
        if let height, let own = variant.height, own > height { return true }
        if let bandwidth, let own = variant.bandwidth, own > bandwidth { return true }
        return false
    }

    /// Returns the variants of the lowest rank.
    private static func lowest(
        _ variants: [MultivariantPlaylist.Variant],
        by rank: (MultivariantPlaylist.Variant) -> (Int, Int)
    ) -> [MultivariantPlaylist.Variant] {
        guard let least = variants.map(rank).min(by: { $0 < $1 }) else { return [] }
        return variants.filter { rank($0) == least }
    }
}

/// Moves EXT-X-START (8216bis, 4.4.2.2) to the same point of a playlist that was shortened.
///
/// Without that, players would begin at another point or, where the offset exceeds what is left, at
/// the end.
enum StartOffset {
    /// What becomes of the tag.
    enum Change {
        case none
        case removed
        case edited(AttributeEdit)
    }

    /// Returns the offset of a point in a playlist that was reduced to some of its ranges.
    ///
    /// - Parameters:
    ///   - offset: TIME-OFFSET in the whole playlist, from its end if negative.
    ///   - total: the length of the whole playlist in seconds.
    ///   - kept: the ranges of it that are left, ascending.
    /// - Returns: the offset; nil if the point is in none of the ranges.
    static func moved(
        _ offset: Duration, in total: Double, to kept: [Range<Double>]
    ) -> Duration? {
        let seconds = offset / .seconds(1)
        let point = seconds < 0 ? total + seconds : seconds
        var length = 0.0
        var found: Double?
        for range in kept {
            if found == nil, range.contains(point) { found = length + point - range.lowerBound }
            length += range.length
        }
        guard let found else { return nil }
        let milliseconds = ((seconds < 0 ? found - length : found) * 1_000).rounded()
        // The offset is limited, and the point has no more before it, or behind it, than it had.
        guard abs(milliseconds) < 1e12, seconds >= 0 || milliseconds < 0 else { return nil }
        return .milliseconds(Int(milliseconds))
    }

    /// Returns what becomes of the tag in a line.
    ///
    /// - Parameters:
    ///   - line: the line; any other than EXT-X-START with an offset stays unchanged.
    ///   - source: the playlist.
    ///   - move: returns the new offset; nil removes the tag.
    /// - Returns: the change.
    static func change(
        of line: PlaylistLine, in source: [UInt8], by move: (Duration) -> Duration?
    ) -> Change {
        guard case .tag(.start, let value) = line.kind else { return .none }
        let attributes = AttributeList(source, in: value)
        guard let offset = attributes.seconds(of: "TIME-OFFSET") else { return .none }
        guard let moved = move(offset) else { return .removed }
        // The origin may have written more digits.
        let difference = moved - offset
        guard difference >= .milliseconds(1) || difference <= .milliseconds(-1) else {
            return .none
        }
        var edit = AttributeEdit(attributes)
        edit.set("TIME-OFFSET", DecimalNumber.text(ofSeconds: moved))
        return .edited(edit)
    }
}

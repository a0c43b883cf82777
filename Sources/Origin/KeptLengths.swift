import Model

/// What readers keep of a body while the slowest of them holds up one that waits for bytes.
struct KeptLengths: Equatable {
    /// The position of the slowest reader.
    let slowest: Int64
    /// The end of what was fetched.
    let written: Int64
    /// The window of one reader.
    let window: Int64
    /// The positions whose readers have all not moved for as long as a flight waits; nil if another
    /// request brings readers the rest.
    let stuck: Set<Int64>?

    /// A length that no body has.
    static let everything: Int64 = 1 << 60
    /// What a reader may be sending.
    static let least = Readers.longestOffer + 2 * Readers.step

    /// Returns how many bytes from its position on a reader keeps of what it needs.
    func length(for needed: Range<Int64>) -> Int64 {
        let position = needed.lowerBound
        // It needs nothing more of the transfer.
        if needed.upperBound <= written { return Self.everything }
        if let stuck { return length(at: position, stuck) }
        if position == slowest { return Self.least }
        // Readers near the slowest one must not keep all the rest.
        let half = (written - slowest) / 2
        if position > slowest + half { return window }
        // One before the slowest has a flight of its own, which would fetch its window again.
        return max(Self.least, half, min(window, slowest - position))
    }

    /// Returns the length where nothing brings readers the rest.
    private func length(at position: Int64, _ stuck: Set<Int64>) -> Int64 {
        // It was given up before, and finds a broken body at its hole.
        if position < slowest { return slowest - position }
        // Those that stand near the slowest one would keep its rest.
        let isGivenUp = stuck.contains(position) && position - slowest <= 2 * Self.least
        return isGivenUp ? Self.least : Self.everything
    }
}

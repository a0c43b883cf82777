/// Ranges of playing time in seconds from the start of a title: ascending, disjoint, not empty.
package struct Stretches: Hashable, Sendable {
    package private(set) var ranges: [Range<Double>] = []

    /// Ranges that are closer than this are joined, since durations in playlists are rounded.
    static let tolerance = 0.1

    package init() {}

    init(_ ranges: [Range<Double>]) {
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) { append(range) }
    }

    /// Adds a range that begins at or after the start of the last one.
    mutating func append(_ range: Range<Double>) {
        guard range.upperBound > range.lowerBound else { return }
        guard let last = ranges.last, range.lowerBound - last.upperBound < Self.tolerance else {
            return ranges.append(range)
        }
        ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
    }

    /// The sum of all ranges in seconds.
    package var duration: Double {
        ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
    }

    package var isEmpty: Bool { ranges.isEmpty }

    /// Only the longest range; the first of equally long ones.
    var longest: Stretches {
        var found: Range<Double>?
        for range in ranges
        where range.length > (found?.length ?? 0) + Self.tolerance { found = range }
        return Stretches(found.map { [$0] } ?? [])
    }

    /// Only the longest range; the last of equally long ones, which is nearest to the live edge.
    var lastLongest: Stretches {
        let most = ranges.reduce(0) { max($0, $1.length) } - Self.tolerance
        return Stretches(ranges.last { $0.length >= most }.map { [$0] } ?? [])
    }

    func contains(_ time: Double) -> Bool { index(of: time) != nil }

    /// Returns the ranges that have at least one of some times.
    func having(_ times: [Double]) -> Stretches {
        let indices = Set(times.compactMap { index(of: $0) })
        var found = Stretches()
        found.ranges = indices.sorted().map { ranges[$0] }
        return found
    }

    /// Returns the index of the range that has a time; nil if none has.
    func index(of time: Double) -> Int? {
        // Binary search: a film with scattered holes has thousands of ranges.
        let index = ranges.binarySearch { $0.upperBound <= time }
        return index < ranges.count && ranges[index].contains(time) ? index : nil
    }

    /// True if a range has more in common with one of these than rounding explains.
    func overlaps(_ range: Range<Double>) -> Bool {
        // Those behind the first one that ends late enough begin even later.
        let index = firstIndex(endingAfter: range.lowerBound)
        return index < ranges.count
            && range.upperBound > ranges[index].lowerBound + Self.tolerance
    }

    /// Returns what a segment has in common with each of these, but for what rounding explains.
    func pieces(of segment: Range<Double>) -> [SegmentPiece] {
        var pieces: [SegmentPiece] = []
        for index in firstIndex(endingAfter: segment.lowerBound)..<ranges.count {
            guard segment.upperBound > ranges[index].lowerBound + Self.tolerance else { break }
            let common = ranges[index].clamped(to: segment)
            guard common.length > Self.tolerance else { continue }
            let offset = common.lowerBound - segment.lowerBound
            let isWhole = segment.length - common.length < Self.tolerance
            pieces.append(
                SegmentPiece(
                    stretch: index, offset: isWhole ? 0 : offset,
                    seconds: isWhole ? nil : common.length))
        }
        return pieces
    }

    /// Returns the index of the first range that ends behind a time by more than rounding explains;
    /// the number of ranges if there is none.
    private func firstIndex(endingAfter time: Double) -> Int {
        ranges.binarySearch { $0.upperBound - Self.tolerance <= time }
    }

    /// Returns the ranges that both have in common.
    func intersection(_ other: Stretches) -> Stretches {
        var common: [Range<Double>] = []
        var (here, there) = (0, 0)
        while here < ranges.count, there < other.ranges.count {
            let (one, two) = (ranges[here], other.ranges[there])
            let start = max(one.lowerBound, two.lowerBound)
            let end = min(one.upperBound, two.upperBound)
            // A remainder of rounding is not a range.
            if end - start > Self.tolerance { common.append(start..<end) }
            if one.upperBound < two.upperBound { here += 1 } else { there += 1 }
        }
        return Stretches(common)
    }
}

/// What is played of a segment in one stretch.
package struct SegmentPiece: Hashable, Sendable {
    /// The index of the stretch.
    let stretch: Int
    /// The discontinuity sequence number of the piece.
    var discontinuity = 0
    /// Seconds from the start of the segment to where the piece begins.
    let offset: Double
    /// The length of the piece; nil if it is the whole segment.
    let seconds: Double?

    /// True if it has a time of the segment, in seconds from its start.
    func contains(_ time: Double) -> Bool {
        time >= offset && seconds.map { time < offset + $0 } ?? true
    }
}

extension Range<Double> {
    var length: Double { upperBound - lowerBound }
}

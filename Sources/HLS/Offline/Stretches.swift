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

    func contains(_ time: Double) -> Bool {
        // Binary search: a film with scattered holes has thousands of ranges.
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound <= time { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(time)
    }

    /// True if a range has more in common with one of these than rounding explains.
    func overlaps(_ range: Range<Double>) -> Bool {
        // The first range that ends late enough; those behind it begin even later.
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if range.lowerBound < ranges[middle].upperBound - Self.tolerance {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low < ranges.count && range.upperBound > ranges[low].lowerBound + Self.tolerance
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

extension Range<Double> {
    var length: Double { upperBound - lowerBound }
}

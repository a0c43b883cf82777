/// Stretches of playing time, in seconds from a title's beginning: ascending, disjoint, none empty.
package struct Stretches: Hashable, Sendable {
    package private(set) var ranges: [Range<Double>] = []

    /// Ends that are nearer than this are one: durations in playlists are rounded.
    static let tolerance = 0.1

    package init() {}

    init(_ ranges: [Range<Double>]) {
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) { append(range) }
    }

    /// Adds what begins at or behind the last beginning.
    mutating func append(_ range: Range<Double>) {
        guard range.upperBound > range.lowerBound else { return }
        guard let last = ranges.last, range.lowerBound - last.upperBound < Self.tolerance else {
            return ranges.append(range)
        }
        ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
    }

    /// Seconds of all together.
    package var duration: Double {
        ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
    }

    package var isEmpty: Bool { ranges.isEmpty }

    /// The longest one alone; of several the first.
    var longest: Stretches {
        var found: Range<Double>?
        for range in ranges
        where range.length > (found?.length ?? 0) + Self.tolerance { found = range }
        return Stretches(found.map { [$0] } ?? [])
    }

    func contains(_ time: Double) -> Bool {
        // A film with a hole here and there has thousands.
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound <= time { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(time)
    }

    /// What both have.
    func intersection(_ other: Stretches) -> Stretches {
        var common: [Range<Double>] = []
        var (here, there) = (0, 0)
        while here < ranges.count, there < other.ranges.count {
            let (one, two) = (ranges[here], other.ranges[there])
            let start = max(one.lowerBound, two.lowerBound)
            let end = min(one.upperBound, two.upperBound)
            // What rounding leaves over is no stretch.
            if end - start > Self.tolerance { common.append(start..<end) }
            if one.upperBound < two.upperBound { here += 1 } else { there += 1 }
        }
        return Stretches(common)
    }
}

extension Range<Double> {
    var length: Double { upperBound - lowerBound }
}

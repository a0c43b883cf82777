// The segments that windows name, counted.
import Numbers

/// Which segments the windows in memory name.
///
/// A window is compared with what was last known of it: its numbers rise by one from segment to
/// segment, and a number keeps its segment, so that only those that came and went are looked at. A
/// search through all windows for each segment that leaves one would take longer than segments last
/// where there are thousands of windows.
struct NamedSegments<Window: Hashable> {
    private struct Known {
        /// The number of the first segment.
        var first: Int
        /// The digest of each segment.
        var digests: [Int] = []
    }

    private var windows: [Window: Known] = [:]
    /// How often each digest is in `windows`.
    private var counts: [Int: Int] = [:]

    /// True if a window names a segment with this digest.
    func contains(_ digest: Int) -> Bool { counts[digest] != nil }

    /// Takes in the present segments of a window.
    ///
    /// - Parameters:
    ///   - window: the window.
    ///   - first: the number of its first segment.
    ///   - count: the number of its segments.
    ///   - digest: returns the digest of the segment at an index.
    mutating func update(
        _ window: Window, from first: Int, count: Int, digest: (Int) -> Int
    ) {
        var known = windows.removeValue(forKey: window) ?? Known(first: first)
        guard count > 0 else { return forget(known.digests[...]) }
        let gone = first.subtractingSaturated(known.first)
        let common = known.digests.count.subtractingSaturated(gone)
        if gone >= 0, common > 0, common <= count, known.digests[gone] == digest(0),
            known.digests.last == digest(common - 1)
        {
            forget(known.digests[..<gone])
            known.digests.removeFirst(gone)
        } else {
            forget(known.digests[...])
            known.digests = []
        }
        known.first = first
        for index in known.digests.count..<count {
            let digest = digest(index)
            known.digests.append(digest)
            counts[digest, default: 0] += 1
        }
        windows[window] = known
    }

    /// Forgets all other windows.
    mutating func keep(only isKept: (Window) -> Bool) {
        for (window, known) in windows where !isKept(window) {
            windows[window] = nil
            forget(known.digests[...])
        }
    }

    private mutating func forget(_ digests: ArraySlice<Int>) {
        for digest in digests {
            guard let count = counts[digest] else { continue }
            counts[digest] = count > 1 ? count - 1 : nil
        }
    }
}

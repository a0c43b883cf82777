@testable import Model
import HLS
import Posix
import Store
import Testing
import URISyntax

extension EpochTable {
    /// Reads a window of one-second segments with these numbers, received at a time in seconds.
    ///
    /// It was requested then, too, unless `requested` tells an earlier time. `steady` is the same time
    /// by the monotonic clock, nil for a text of an earlier run. Names recur after `ring` segments.
    mutating func read(
        _ numbers: Range<Int>, of list: ObjectKey, generation: UInt64, at time: Int64,
        requested: Int64? = nil, steady: Int64? = nil, ring: Int = .max
    ) throws -> Relation {
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n"
        let text = numbers.reduce(head) { $0 + "#EXTINF:1,\ns\($1 % ring)\n" }
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"),
                options: PlaylistReading()))
        let window = WindowNames(
            reading, known: knownNames(of: list, version: 0)
        ) { url, _ in ObjectKey(sha256Of: url.text) }
        let at = WallTime(seconds: 1_800_000_000 + time)
        let times = steady.map { seconds in
            let (sent, end) = (requested ?? seconds, seconds)
            return SteadyTimes(
                requested: Monotonic(nanoseconds: sent * 1_000_000_000),
                received: Monotonic(nanoseconds: end * 1_000_000_000))
        }
        let sent = WallTime(seconds: 1_800_000_000 + (requested ?? time))
        return take(
            reading, generation: generation, Times(requested: sent, received: at, steady: times),
            at: (list, window, 0)
        ).relation
    }
}

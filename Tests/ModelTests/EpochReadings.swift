@testable import Model
import HLS
import Posix
import Store
import Testing
import URISyntax

extension EpochTable {
    /// Reads a window of one-second segments with these numbers, received at a time in seconds.
    mutating func read(
        _ numbers: Range<Int>, of list: ObjectKey, generation: UInt64, at time: Int64
    ) throws -> Relation {
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n"
        let text = numbers.reduce(head) { $0 + "#EXTINF:1,\ns\($1)\n" }
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"),
                options: PlaylistReading()))
        let window = WindowNames(
            reading, known: knownNames(of: list, version: 0)
        ) { url, _ in ObjectKey(sha256Of: url.text) }
        let at = WallTime(seconds: 1_800_000_000 + time)
        return take(
            reading, generation: generation, Times(requested: at, received: at),
            at: (list, window, 0)
        ).relation
    }
}

@testable import Model
import HLS
import Posix
import Store
import Testing
import URISyntax

/// The names of live lists of which delta updates are read.
@Suite struct EpochDeltaTests {
    private let list = ObjectKey(sha256Of: "list")
    private var epochs = EpochTable()

    /// Reads a window of one-second segments with a key, received at a time in seconds; without
    /// the key and the first segments if it is a delta update.
    @discardableResult
    private mutating func read(
        _ numbers: Range<Int>, skipping skipped: Int = 0, at time: Int64
    ) throws -> EpochTable.Relation {
        var text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n"
        text += "#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=6.0\n"
        text +=
            skipped > 0
            ? "#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)\n"
            : "#EXT-X-KEY:METHOD=AES-128,URI=\"key\"\n"
        for number in numbers.dropFirst(skipped) { text += "#EXTINF:1,\ns\(number)\n" }
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"),
                options: PlaylistReading()))
        let window = WindowNames(
            reading, known: epochs.knownNames(of: list, version: 0)
        ) { url, _ in ObjectKey(sha256Of: url.text) }
        let at = WallTime(seconds: 1_800_000_000 + time)
        return epochs.take(
            reading, generation: UInt64(time), EpochTable.Times(requested: at, received: at),
            at: (list, window, 0)
        ).relation
    }

    private func since(_ name: String) -> Int64? {
        epochs.since(ObjectKey(sha256Of: "http://h/\(name)")).map {
            $0.wall.seconds - 1_800_000_000
        }
    }

    @Test mutating func `names that delta updates skip keep their meaning`() throws {
        let count = EpochTable.mostLeft + 1_000
        try read(0..<count, at: 0)
        for time in 1...3 {
            let window = time..<(count + time)
            #expect(try read(window, skipping: count - 10, at: Int64(time)) == .goesOn)
        }
        #expect(try read(4..<(count + 4), at: 4) == .goesOn)
        #expect(since("s4") == 0 && since("s\(count - 1)") == 0 && since("key") == 0)
        #expect(since("s\(count)") == 1 && since("s\(count + 3)") == 4)
    }

    @Test mutating func `names that left the window behind delta updates are forgotten eventually`()
        throws
    {
        let (count, step) = (EpochTable.mostLeft + 1_000, 10)
        try read(0..<count, at: 0)
        var start = 0
        while start < 2 * count {
            start += step
            try read(start..<(start + count), skipping: count - 2 * step, at: Int64(start))
        }
        // It was new in the update that ended with it.
        #expect(since("s\(start)") == Int64((start - count + step) / step * step))
        let oldest = start - EpochTable.mostLeft
        #expect(since("s\(oldest + 10)") != nil && since("s\(oldest - 10)") == nil)
    }

    @Test mutating func `a full list after delta updates shows what has left the window`() throws {
        let count = EpochTable.mostLeft + 10
        try read(0..<count, at: 0)
        try read(1..<(count + 1), skipping: count - 10, at: 1)
        // A shorter window: all others have left at once.
        #expect(try read((count - 2)..<(count + 2), at: 2) == .goesOn)
        #expect(since("s0") == nil && since("s\(count - 3)") != nil)
        #expect(since("s\(count - 2)") == 0)
    }
}

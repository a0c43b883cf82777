@testable import Origin
import Testing

/// What is freed of a body that is not stored, and when its transfer waits.
@Suite struct UnstoredBodyTests {
    @Test func `bytes are freed beyond two windows, and again a window later`() {
        var body = UnstoredBody()
        #expect(body.kept(80_000_000) == nil)
        #expect(body.kept(80_000_001) == KeptBytes.windows(40_000_000))
        body.noteFreed(leaving: 60_000_000, window: UnstoredBody.testWindow)
        #expect(body.kept(100_000_000) == nil)
        #expect(body.kept(100_000_001) == KeptBytes.windows(40_000_000))
        body.noteFreed(leaving: 100_000_001, window: UnstoredBody.testWindow)
        // Readers that have left held much of it.
        #expect(body.kept(45_000_000) == nil)
        #expect(body.kept(85_000_000) == nil)
        #expect(body.kept(85_000_001) == KeptBytes.windows(40_000_000))
    }

    @Test func `where nothing brings the rest, readers keep what they need`() {
        var body = UnstoredBody()
        #expect(body.kept(90_000_000, mayLeaveBehind: false) == KeptBytes.needed(from: 5_000_000))
        #expect(body.kept(90_000_000, isFreeable: false) == nil)
    }

    @Test func `readers keep a window or what they need, and what a response is compared with`() {
        let needs: [Range<Int64>] = [
            0..<Int64.max, 20_000_000..<30_000_000, 60_000_000..<Int64.max,
        ]
        let compared = StoredBody.mostCompared
        let windows: [Range<Int64>] = [
            0..<40_000_000, 20_000_000 - compared..<30_000_000,
            60_000_000 - compared..<100_000_000,
        ]
        #expect(KeptBytes.windows(40_000_000).ranges(for: needs) == windows)
        // The first two were given up.
        let needed: [Range<Int64>] = [
            0..<50_000_000, 20_000_000 - compared..<30_000_000,
            60_000_000 - compared..<60_000_000 + KeptLengths.everything,
        ]
        #expect(KeptBytes.needed(from: 50_000_000).ranges(for: needs) == needed)
    }
}

extension UnstoredBody {
    fileprivate static let testWindow: Int64 = 40_000_000

    /// Returns what readers keep of so many present bytes, the last of which follow the hole before
    /// 5 MB.
    fileprivate mutating func kept(
        _ present: Int64, isFreeable: Bool = true, mayLeaveBehind: Bool = true
    ) -> KeptBytes? {
        kept(
            of: present, window: Self.testWindow, isFreeable: isFreeable,
            mayLeaveBehind: mayLeaveBehind, from: 5_000_000)
    }
}

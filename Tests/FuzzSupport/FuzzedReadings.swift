/// Consecutive versions of playlists, made from bytes, that change as no sane origin's do: numbers
/// at the edges of their ranges, leaps, resets, lost and duplicated lines.
///
/// The same bytes give the same versions. The drivers in `Fixtures/fuzz/drivers` use this file too.
package struct FuzzedReadings {
    /// The bytes that determine further choices.
    private var choices: ArraySlice<UInt8>

    package init(_ bytes: some Sequence<UInt8>) { choices = Array(bytes)[...] }

    /// The bytes of a seed, by SplitMix64 (Steele, Lea, Flood 2014).
    package init(seed: UInt64, count: Int = 512) {
        var state = seed
        var bytes: [UInt8] = []
        for _ in 0..<count {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            bytes.append(UInt8(truncatingIfNeeded: mixed >> 56))
        }
        self.init(bytes)
    }

    /// A choice below `count`; 0 once the bytes are used up.
    package mutating func choose(_ count: Int) -> Int {
        guard let byte = choices.popFirst() else { return 0 }
        return Int(byte) % count
    }

    /// True in one of `count` cases.
    package mutating func happens(oneIn count: Int) -> Bool { choose(count) == count - 1 }

    /// Numbers at the ends of ranges.
    package static let edges = [
        "0", "1", "2", "5", "10", "16", "17", "1999", "2001", "49999", "50001", "1000000",
        "500000000", "4294967295", "4294967296", "200000000000", "1125899906842624",
        "5000000000000000", "8000000000000000", "9007199254740991", "9007199254740992",
        "4611686018427387904", "9223372036854775806", "9223372036854775807",
        "9223372036854775808", "18446744073709551615", "18446744073709551616",
        "-1", "-9223372036854775808", "99999999999999999999999999", "1e9", "0.000000001",
        "400000000.5", "nan", "inf", "",
    ]

    package mutating func edge() -> String { Self.edges[choose(Self.edges.count)] }

    /// Such a number as an `Int`, for arguments of functions.
    package mutating func number() -> Int { Int(edge()) ?? (happens(oneIn: 2) ? .min : .max) }

    /// The state that one version passes to the next.
    private struct State {
        var sequence = 0
        var discontinuity = 0
        var second = 0
    }

    /// Two to five versions of one live media playlist.
    package mutating func mediaPlaylists() -> [[UInt8]] {
        var state = State()
        return (0..<2 + choose(4)).map { _ in mediaPlaylist(&state) }
    }

    private mutating func mediaPlaylist(_ state: inout State) -> [UInt8] {
        state.sequence += choose(4)
        if happens(oneIn: 6) { state.sequence = 0 }
        var lines = ["#EXTM3U"]
        lines.append("#EXT-X-TARGETDURATION:" + (happens(oneIn: 5) ? edge() : "6"))
        lines.append(
            "#EXT-X-MEDIA-SEQUENCE:" + (happens(oneIn: 3) ? edge() : "\(state.sequence)"))
        if happens(oneIn: 3) {
            state.discontinuity += choose(3)
            lines.append(
                "#EXT-X-DISCONTINUITY-SEQUENCE:"
                    + (happens(oneIn: 2) ? edge() : "\(state.discontinuity)"))
        }
        if happens(oneIn: 8) { lines.append("#EXT-X-SKIP:SKIPPED-SEGMENTS=\(edge())") }
        if happens(oneIn: 8) { lines.append("#EXT-X-PART-INF:PART-TARGET=\(edge())") }
        let isDated = !happens(oneIn: 3)
        for index in 0..<1 + choose(5) {
            appendSegment(state.sequence + index, isDated && index == 0, &lines)
        }
        if happens(oneIn: 8) { lines.append("#EXT-X-ENDLIST") }
        while happens(oneIn: 4), !lines.isEmpty { mutate(&lines) }
        return Array((lines.joined(separator: "\n") + "\n").utf8)
    }

    private mutating func appendSegment(_ number: Int, _ isDated: Bool, _ lines: inout [String]) {
        if happens(oneIn: 6) { lines.append("#EXT-X-DISCONTINUITY") }
        if isDated || happens(oneIn: 8) {
            let year = happens(oneIn: 6) ? ["0000", "1969", "9999"][choose(3)] : "2026"
            lines.append("#EXT-X-PROGRAM-DATE-TIME:\(year)-01-01T00:00:\(10 + number * 6 % 49)Z")
        }
        if happens(oneIn: 6) {
            let format = happens(oneIn: 2) ? ",KEYFORMAT=\"f\(choose(40))\"" : ""
            let method = happens(oneIn: 5) ? "NONE" : "AES-128"
            lines.append("#EXT-X-KEY:METHOD=\(method),URI=\"k\(choose(3))\"\(format)")
        }
        if happens(oneIn: 8) {
            lines.append("#EXT-X-MAP:URI=\"i\(choose(2)).mp4\",BYTERANGE=\"\(edge())@\(edge())\"")
        }
        if happens(oneIn: 10) { lines.append("#EXT-X-GAP") }
        if happens(oneIn: 8) {
            lines.append("#EXT-X-PART:DURATION=\(edge()),URI=\"p\(number)\"")
            lines.append("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"h\",BYTERANGE-START=\(edge())")
        }
        if happens(oneIn: 10) {
            lines.append("#EXT-X-DATERANGE:ID=\"d\(choose(3))\",DURATION=\(edge())")
        }
        if happens(oneIn: 6) {
            lines.append("#EXT-X-BYTERANGE:\(edge())" + (happens(oneIn: 2) ? "@\(edge())" : ""))
        }
        lines.append("#EXTINF:\(happens(oneIn: 5) ? edge() : "6"),")
        lines.append(happens(oneIn: 5) ? "same.ts" : "s\(number).ts")
    }

    /// A multivariant playlist with absurd announcements.
    package mutating func multivariantPlaylist() -> [UInt8] {
        var lines = ["#EXTM3U"]
        for index in 0..<1 + choose(3) {
            lines.append(
                "#EXT-X-STREAM-INF:BANDWIDTH=\(edge()),RESOLUTION=\(edge())x\(edge()),AUDIO=\"a\"")
            lines.append("v\(index).m3u8")
        }
        lines.append("#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\",URI=\"a.m3u8\"")
        if happens(oneIn: 4) { mutate(&lines) }
        return Array((lines.joined(separator: "\n") + "\n").utf8)
    }

    /// Drops, duplicates or moves a line, or puts another number into it.
    private mutating func mutate(_ lines: inout [String]) {
        let index = choose(lines.count)
        switch choose(4) {
        case 0: lines.remove(at: index)
        case 1: lines.insert(lines[index], at: choose(lines.count))
        case 2: lines.swapAt(index, choose(lines.count))
        default:
            let line = lines[index]
            guard let start = line.firstIndex(where: \.isNumber) else { return }
            let rest = line[start...].drop(while: \.isNumber)
            lines[index] = line[..<start] + edge() + rest
        }
    }
}

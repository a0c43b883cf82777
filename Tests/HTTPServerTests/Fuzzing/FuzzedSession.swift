// Generated HTTP/2 sessions: valid ones (RFC 9113), and mutations of them. Pure.
import FuzzSupport

/// What one client sends, and its other behaviour.
struct FuzzedSession {
    enum Ending: CaseIterable {
        case close, reset, halfClose
    }

    /// All bytes from the preface on.
    private(set) var bytes: [UInt8] = []
    /// Where the bytes are split into writes, in ascending order.
    private(set) var cuts: [Int] = []
    let readsAnswers: Bool
    let ending: Ending

    private var frames: [Written] = []
    private var nextStream: UInt32 = 1

    /// A frame, and the length in its header if it differs from the true one.
    private struct Written {
        var frame: Frame
        var length: Int?
    }

    init(_ numbers: inout SeededNumbers) {
        readsAnswers = numbers.chance(60)
        ending = numbers.pick(Ending.allCases)
        append(.settings(Self.settings(&numbers)))
        if numbers.chance(50) { append(.settingsAcknowledgement) }
        for _ in 0..<(1 + numbers.below(16)) { appendStep(&numbers) }
        if numbers.chance(10) { appendMuch(&numbers) }
        // More streams than a client is granted.
        if numbers.chance(3) { for _ in 0..<400 { appendRequest(&numbers) } }
        if numbers.chance(60) {
            for _ in 0..<(1 + numbers.below(4)) { mutate(&numbers) }
        }
        write(&numbers)
    }

    private mutating func append(_ frame: Frame) { frames.append(Written(frame: frame)) }

    // MARK: Valid steps, and those whose values lie at their bounds or beyond

    private mutating func appendStep(_ numbers: inout SeededNumbers) {
        switch numbers.below(24) {
        case 0..<5, 16...20: appendRequest(&numbers)
        case 5..<7, 21...23: appendContent(&numbers)
        case 7: append(.windowUpdate(anyStream(&numbers), Self.increment(&numbers)))
        case 8: append(.windowUpdate(0, Self.increment(&numbers)))
        case 9: append(.settings(Self.settings(&numbers)))
        case 10: append(.reset(anyStream(&numbers), ErrorCode(rawValue: Self.code(&numbers))))
        case 11:
            let values = ["u=0", "u=7, i", "u=9", "i", "", "u=1;a=b, x=\"", "\u{1}"]
            append(.priorityUpdate(anyStream(&numbers), numbers.pick(values)))
        case 12: append(numbers.chance(50) ? .ping() : .ping(numbers.bytes(8)))
        case 13: appendCompression(&numbers)
        case 14:
            append(
                numbers.chance(30)
                    ? .goAway(last: anyStream(&numbers), Self.code(&numbers))
                    : .priority(anyStream(&numbers), dependsOn: anyStream(&numbers)))
        default: append(Self.randomFrame(&numbers, stream: anyStream(&numbers)))
        }
    }

    /// Requests for more than the socket holds, with windows that do not limit it.
    private mutating func appendMuch(_ numbers: inout SeededNumbers) {
        let widest: UInt32 = 0x7FFF_FFFF
        append(.settings([(Frame.Setting.initialWindowSize, widest)]))
        append(.windowUpdate(0, 1 << 30))
        for _ in 0..<40 {
            if numbers.chance(50) { appendRequest(&numbers) }
            let fields = FrameClient.fields(path: "/long")
            append(.headers(openStream(), HeaderBlock.literal(fields)))
        }
    }

    private mutating func openStream() -> UInt32 {
        defer { nextStream += 2 }
        return nextStream
    }

    /// A stream that was opened, the next one, or any.
    private func anyStream(_ numbers: inout SeededNumbers) -> UInt32 {
        switch numbers.below(30) {
        case 0: 0
        case 1: 0x7FFF_FFFF
        case 2: UInt32(truncatingIfNeeded: numbers.next())
        case 3: UInt32(numbers.below(Int(nextStream) + 2))
        default: UInt32(2 * numbers.below(Int(nextStream) / 2) + 1)
        }
    }

    private mutating func appendRequest(_ numbers: inout SeededNumbers) {
        let path = "/" + numbers.pick(FuzzedHandler.Kind.allCases).rawValue
        var fields = FrameClient.fields(numbers.chance(10) ? "HEAD" : "GET", path: path)
        if numbers.chance(20) { fields.append(("priority", "u=\(numbers.below(9))")) }
        appendBlock(
            openStream(), HeaderBlock.literal(fields), endStream: !numbers.chance(10), &numbers)
    }

    private mutating func appendContent(_ numbers: inout SeededNumbers) {
        let stream = openStream()
        let path = "/" + numbers.pick(FuzzedHandler.Kind.allCases).rawValue
        var fields = FrameClient.fields("POST", path: path)
        if numbers.chance(30) {
            fields.append(("content-length", numbers.pick(["0", "5", "16384", "99999999999"])))
        }
        if numbers.chance(20) { fields.append(("expect", "100-continue")) }
        appendBlock(stream, HeaderBlock.literal(fields), endStream: false, &numbers)
        for _ in 0..<numbers.below(5) {
            let count = numbers.pick([0, 1, 5, 100, 16384])
            var frame = Frame.data(stream, [UInt8](repeating: 0x41, count: count))
            if numbers.chance(30) {
                // Padding that fits, fills the frame, or is longer than it.
                frame.flags |= Frame.Flag.padded
                frame.payload.insert(numbers.pick([0, 1, UInt8(clamping: count), 255]), at: 0)
            }
            if numbers.chance(20) { frame.flags |= Frame.Flag.endStream }
            append(frame)
        }
        if numbers.chance(30) { append(.headers(stream, HeaderBlock.literal([("x", "y")]))) }
        if numbers.chance(40) { append(.data(stream, [], endStream: true)) }
    }

    /// HEADERS, occasionally split into CONTINUATION frames.
    private mutating func appendBlock(
        _ stream: UInt32, _ block: [UInt8], endStream: Bool, _ numbers: inout SeededNumbers
    ) {
        guard numbers.chance(20) else {
            return append(.headers(stream, block, endStream: endStream))
        }
        let cut = numbers.below(block.count + 1)
        append(
            .headers(stream, Array(block[..<cut]), endStream: endStream, endHeaders: false))
        if numbers.chance(5) { append(.ping()) }
        append(.continuation(stream, Array(block[cut...]), endHeaders: !numbers.chance(5)))
    }

    /// Header blocks that use, change and misuse the dynamic table (RFC 7541).
    private mutating func appendCompression(_ numbers: inout SeededNumbers) {
        var block: [UInt8] = []
        if numbers.chance(30) {
            block += HeaderBlock.tableSize(numbers.pick([0, 1, 4096, 4097, 1 << 20, 1 << 31]))
        }
        block += getBlock
        for _ in 0..<numbers.below(6) {
            switch numbers.below(5) {
            case 0: block += HeaderBlock.indexed(numbers.pick([0, 1, 61, 62, 63, 100, 1 << 30]))
            case 1: block += HeaderBlock.indexing("x-\(numbers.below(9))", "value")
            case 2:
                let value = String(repeating: "v", count: numbers.pick([0, 1, 4096, 70_000]))
                block += HeaderBlock.indexing("x-long", value)
            case 3: block += numbers.bytes(1 + numbers.below(20))
            default: block += HeaderBlock.literal([(numbers.pick(Self.names), "value")])
            }
        }
        if numbers.chance(20) { block.removeLast(numbers.below(block.count)) }
        let stream = openStream(), first = block.prefix(16384)
        var rest = block.dropFirst(first.count)
        append(.headers(stream, Array(first), endHeaders: rest.isEmpty))
        while !rest.isEmpty {
            let piece = Array(rest.prefix(16384))
            rest = rest.dropFirst(piece.count)
            append(.continuation(stream, piece, endHeaders: rest.isEmpty))
        }
    }

    private static let names = [
        ":path", ":status", ":unknown", "", "Upper", "connection", "te", "host", "cookie",
        "content-length", "transfer-encoding", "a b", "x\u{0}",
    ]

    private static let bounds: [UInt32] = [
        0, 1, 2, 100, 4096, 16383, 16384, 65535, 0xFF_FFFF, 0x100_0000, 0x7FFF_FFFF, 0x8000_0000,
        0xFFFF_FFFF,
    ]

    private static func settings(_ numbers: inout SeededNumbers) -> [(UInt16, UInt32)] {
        (0..<numbers.below(4)).map { _ in
            if numbers.chance(5) {
                return (UInt16(numbers.below(10)), numbers.pick(bounds))
            }
            // Values that the identifier may have, including the lowest and the highest.
            let identifier = numbers.pick([0, 1, 2, 3, 4, 4, 4, 5, 6, 8, 9, 0xFFFF])
            let allowed =
                switch identifier {
                case 2, 8, 9: bounds.filter { $0 <= 1 }
                case 4: bounds.filter { $0 <= 0x7FFF_FFFF }
                case 5: bounds.filter { 16384...0xFF_FFFF ~= $0 }
                default: bounds
                }
            return (UInt16(identifier), numbers.pick(allowed))
        }
    }

    private static func increment(_ numbers: inout SeededNumbers) -> UInt32 {
        numbers.chance(10)
            ? numbers.pick([0, 0x7FFF_FFFF, 0xFFFF_FFFF])
            : numbers.pick([1, 2, 100, 65535, 1 << 20, 1 << 28])
    }

    private static func code(_ numbers: inout SeededNumbers) -> UInt32 {
        numbers.pick([0, 1, 7, 8, 0xB, 0xD, 0xFFFF_FFFF])
    }

    private static func randomFrame(_ numbers: inout SeededNumbers, stream: UInt32) -> Frame {
        let type = numbers.chance(70) ? UInt8(numbers.below(17)) : UInt8(numbers.below(256))
        let flags = UInt8(numbers.below(256))
        let count = numbers.pick([0, 1, 4, 5, 6, 8, 16, 100, 1000])
        return Frame(type: type, flags: flags, stream: stream, payload: numbers.bytes(count))
    }

    // MARK: Mutations

    private mutating func mutate(_ numbers: inout SeededNumbers) {
        guard !frames.isEmpty else { return }
        let index = numbers.below(frames.count)
        switch numbers.below(11) {
        case 0, 1: numbers.flipBit(&frames[index].frame.payload)
        case 2: frames[index].frame.flags ^= 1 << UInt8(numbers.below(8))
        case 3: frames[index].frame.stream = anyStream(&numbers)
        case 4: frames[index].frame.type = UInt8(numbers.below(18))
        case 5:
            let actual = frames[index].frame.payload.count
            frames[index].length = numbers.pick([
                0, 1, max(0, actual - 1), actual + 1, 16384, 16385, 0xFF_FFFF,
            ])
        case 6:
            let kept = numbers.below(frames[index].frame.payload.count + 1)
            frames[index].frame.payload.removeLast(frames[index].frame.payload.count - kept)
        case 7:
            // Sometimes more often than any client would.
            let count = numbers.chance(10) ? 1500 : 1 + numbers.below(20)
            guard frames[index].frame.payload.count * count < 1 << 18 else { return }
            frames.insert(
                contentsOf: Array(repeating: frames[index], count: count), at: index)
        case 8: frames.swapAt(index, numbers.below(frames.count))
        case 9: frames.remove(at: index)
        default:
            let frame = Self.randomFrame(&numbers, stream: anyStream(&numbers))
            frames.insert(Written(frame: frame), at: index)
        }
    }

    private mutating func write(_ numbers: inout SeededNumbers) {
        bytes = FrameClient.preface
        if numbers.chance(3) { numbers.flipBit(&bytes) }
        for written in frames { bytes += written.frame.bytes(length: written.length) }
        if numbers.chance(10) {
            for _ in 0..<(1 + numbers.below(8)) { numbers.flipBit(&bytes) }
        }
        if numbers.chance(25) { bytes.removeLast(numbers.below(bytes.count)) }
        if numbers.chance(30) {
            cuts = (0..<numbers.below(6)).map { _ in numbers.below(bytes.count + 1) }.sorted()
        }
    }
}

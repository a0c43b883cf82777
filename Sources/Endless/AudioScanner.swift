// Streams of audio frames without a container, as radio stations send them: MPEG audio (ISO/IEC
// 11172-3 and 13818-3) and AAC with ADTS headers (ISO/IEC 13818-7).

/// The header of one frame.
struct AudioFrame: Equatable, Sendable {
    /// Bytes that decide.
    static let headerLength = 7

    /// The bits that are the same in all frames of a stream.
    private let kind: UInt32
    /// In bytes, the header included.
    let length: Int
    let samples: UInt64
    let rate: UInt64

    /// Reads a header; nil for other bytes.
    init?(_ header: [UInt8]) {
        guard header.count >= Self.headerLength, header[0] == 0xFF, header[1] & 0xE0 == 0xE0 else {
            return nil
        }
        let made =
            header[1] & 0xF6 == 0xF0 ? Self.adts(header) : Self.mpeg(header)
        guard let made, made.length >= Self.headerLength else { return nil }
        self = made
    }

    private init(kind: UInt32, length: Int, samples: UInt64, rate: UInt64) {
        self.kind = kind
        self.length = length
        self.samples = samples
        self.rate = rate
    }

    func continues(_ other: AudioFrame) -> Bool { kind == other.kind }

    private static func adts(_ header: [UInt8]) -> AudioFrame? {
        let index = Int(header[2] >> 2 & 0x0F)
        guard index < adtsRates.count else { return nil }
        let length =
            Int(header[3] & 0x03) << 11 | Int(header[4]) << 3 | Int(header[5]) >> 5
        return AudioFrame(
            kind: UInt32(header[1] & 0xFE) << 8 | UInt32(header[2] & 0xFC), length: length,
            samples: 1_024 * (UInt64(header[6] & 0x03) + 1), rate: adtsRates[index])
    }

    private static func mpeg(_ header: [UInt8]) -> AudioFrame? {
        let version = header[1] >> 3 & 0x03
        let layer = header[1] >> 1 & 0x03
        let speed = Int(header[2] >> 4)
        let index = Int(header[2] >> 2 & 0x03)
        guard version != 1, layer != 0, speed != 0, speed != 15, index != 3 else { return nil }
        let isFirst = version == 3
        let rate = mpegRates[index] >> (isFirst ? 0 : version == 2 ? 1 : 2)
        let speeds: [Int] =
            switch (isFirst, layer) {
            case (true, 3): firstLayer
            case (true, 2): secondLayer
            case (true, _): thirdLayer
            case (false, 3): lowFirstLayer
            case (false, _): lowLayers
            }
        let bits = speeds[speed] * 1_000
        let padding = Int(header[2] >> 1 & 1)
        let length: Int
        let samples: UInt64
        switch layer {
        case 3:
            (length, samples) = ((12 * bits / Int(rate) + padding) * 4, 384)
        case 1 where !isFirst:
            (length, samples) = (72 * bits / Int(rate) + padding, 576)
        default:
            (length, samples) = (144 * bits / Int(rate) + padding, 1_152)
        }
        return AudioFrame(
            kind: UInt32(header[1] & 0xFE) << 8 | UInt32(header[2] & 0x0C), length: length,
            samples: samples, rate: rate)
    }

    private static let adtsRates: [UInt64] = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025,
        8_000, 7_350,
    ]
    private static let mpegRates: [UInt64] = [44_100, 48_000, 32_000]
    private static let firstLayer = [
        0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448,
    ]
    private static let secondLayer = [
        0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384,
    ]
    private static let thirdLayer = [
        0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    ]
    private static let lowFirstLayer = [
        0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256,
    ]
    private static let lowLayers = [
        0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160,
    ]
}

/// Finds the frames of an audio stream that arrives in pieces.
///
/// Holds one header; the work is linear in the number of bytes, whatever they are.
package struct AudioScanner: Sendable {
    /// Frames that follow one another and prove that they are frames.
    private static let proof = 3

    /// The offset of the next byte that `header` does not hold.
    package private(set) var position: Int64 = 0
    private var header: [UInt8] = []
    /// The rest of the frame.
    private var skipped = 0
    private var last: AudioFrame?
    private var inARow = 0

    /// Offsets of frames, found since the caller last removed them.
    package var accessPoints: [Int64] = []
    /// The duration of the frames.
    package private(set) var clock = StreamClock()

    package init() {}

    /// True while frames follow one another.
    package var isRecognised: Bool { inARow >= Self.proof }

    /// Counts all offsets from another start.
    package mutating func shift(by distance: Int64) {
        position += distance
        for index in accessPoints.indices { accessPoints[index] += distance }
    }

    /// Takes the next bytes of the stream.
    package mutating func take(_ bytes: Span<UInt8>) {
        var index = 0
        while index < bytes.count {
            if skipped > 0 {
                let count = min(skipped, bytes.count - index)
                skipped -= count
                index += count
                position += Int64(count)
                continue
            }
            header.append(bytes[index])
            index += 1
            position += 1
            if header.count == AudioFrame.headerLength { endHeader() }
        }
    }

    private mutating func endHeader() {
        guard let frame = AudioFrame(header) else { return restart() }
        if let last, !frame.continues(last) { inARow = 0 }
        last = frame
        inARow = min(inARow + 1, Self.proof)
        if isRecognised {
            clock.add(samples: frame.samples, rate: frame.rate)
            accessPoints.append(position - Int64(header.count))
        }
        skipped = frame.length - header.count
        header.removeAll(keepingCapacity: true)
    }

    /// Goes on searching one byte later.
    private mutating func restart() {
        inARow = 0
        last = nil
        header.removeFirst()
        // Only these can begin a header, so the others need no test.
        while let first = header.first, first != 0xFF { header.removeFirst() }
    }
}

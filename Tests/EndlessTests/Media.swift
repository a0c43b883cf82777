import Endless
import Foundation
import Posix

/// The real media that the scanners read.
enum Media {
    private static let folder =
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures/media")

    static func bytes(_ names: [String]) -> [UInt8] {
        names.flatMap { (name: String) -> [UInt8] in
            (try? Array(Data(contentsOf: folder.appending(path: name)))) ?? []
        }
    }

    /// Twelve seconds of H.264 and AAC in a transport stream, a key frame every two seconds.
    static let video = bytes((0..<6).map { "ts/360p/seg00\($0).ts" })
    /// Twelve seconds of AAC in a transport stream.
    static let sound = bytes((0..<6).map { "ts/sound/seg00\($0).ts" })
    /// Twelve seconds of ADTS frames, with tags between the segments.
    static let audio = bytes((0..<6).map { "audio/seg00\($0).aac" })

    /// The PID of the packet at an offset.
    static func pid(_ bytes: [UInt8], at offset: Int) -> Int {
        Int(bytes[offset + 1] & 0x1F) << 8 | Int(bytes[offset + 2])
    }
}

extension StreamScanner {
    /// Scans bytes in pieces.
    static func scan(
        _ bytes: [UInt8], as format: StreamFormat, piece: Int = 16_384
    ) -> (scanner: StreamScanner, points: [Int64]) {
        var scanner = StreamScanner(format)
        var points: [Int64] = []
        for start in stride(from: 0, to: bytes.count, by: piece) {
            let part = Array(bytes[start..<min(start + piece, bytes.count)])
            scanner.take(part.span)
            points += scanner.takeAccessPoints()
        }
        return (scanner, points)
    }
}

/// Bytes that follow from a seed.
struct Noise {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt8 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state >> 32)
    }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in next() } }
}

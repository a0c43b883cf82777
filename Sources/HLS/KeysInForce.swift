import Numbers

/// The EXT-X-KEY lines in force: the last of each KEYFORMAT since the last METHOD=NONE.
struct KeysInForce {
    /// The most KEYFORMATs that can be in force at the same time.
    ///
    /// Each DRM system has one; titles for all devices have three or four. Each key change copies
    /// the references to all other keys, and writing a segment compares them.
    static let limit = 32

    /// One key, shared by all segments that use it; keeps a copy of its line and not the playlist.
    private final class Key: Sendable {
        let format: String
        let line: [UInt8]
        /// True if the media sequence number of a segment is its IV.
        let usesSequenceNumber: Bool

        init(format: String, line: [UInt8], usesSequenceNumber: Bool) {
            self.format = format
            self.line = line
            self.usesSequenceNumber = usesSequenceNumber
        }
    }

    private var keys: [Key] = []

    /// The number of the first line that was dropped because of the limit.
    private(set) var firstBeyondLimit: Int?

    /// The lines in force.
    var lines: [[UInt8]] { keys.map(\.line) }

    /// Records the next key of the list whose text is `source`.
    mutating func note(_ key: EncryptionKey, in source: [UInt8]) {
        if key.isNone {
            keys = []
            return
        }
        let format = key.format
        keys.removeAll { $0.format == format }
        // The identity key, which Sluice has to rewrite, is always kept.
        guard keys.count < Self.limit || format == EncryptionKey.identity else {
            firstBeyondLimit = firstBeyondLimit ?? key.line
            return
        }
        keys.append(
            Key(
                format: format, line: Array(source[key.source]),
                usesSequenceNumber: key.usesSequenceNumber))
    }

    /// Whether the same lines are in force.
    static func == (left: KeysInForce, right: KeysInForce) -> Bool {
        left.keys.elementsEqual(right.keys) { $0 === $1 || $0.line == $1.line }
    }

    /// Returns the lines that put these keys in force after `others`.
    func lines(replacing others: KeysInForce) -> [[UInt8]] {
        let formats = Set(keys.map(\.format))
        // A key stays in force until another of its format replaces it or NONE cancels all keys.
        if others.keys.allSatisfy({ formats.contains($0.format) }) {
            let known = Set(others.lines)
            return lines.filter { !known.contains($0) }
        }
        return [Array("#EXT-X-KEY:METHOD=NONE".utf8)] + lines
    }

    /// Returns the lines of the keys whose IV is the media sequence number, with that IV written
    /// out (8216bis, 5.2).
    func withIVs(of mediaSequence: Int) -> [[UInt8]] {
        keys.filter(\.usesSequenceNumber).map { key in
            key.line + Array(",IV=0x\(String(mediaSequence, radix: 16, width: 32))".utf8)
        }
    }
}

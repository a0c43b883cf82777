import Numbers

/// The EXT-X-KEY lines in force: the last of each KEYFORMAT since the last METHOD=NONE.
struct KeysInForce {
    /// KEYFORMATs in force at once at most.
    ///
    /// Every DRM system has one; titles for all devices have three or four. Each change of a key
    /// copies the references to all others, and compares them where a segment is written.
    static let limit = 32

    /// Shared by all segments that it is in force for; holds its line and not the playlist.
    private final class Key: Sendable {
        let format: String
        let line: [UInt8]
        /// Whether a segment's sequence number is its IV.
        let usesSequenceNumber: Bool

        init(format: String, line: [UInt8], usesSequenceNumber: Bool) {
            self.format = format
            self.line = line
            self.usesSequenceNumber = usesSequenceNumber
        }
    }

    private var keys: [Key] = []

    /// The line of the first key that was left out because of the limit.
    private(set) var firstBeyondLimit: Int?

    /// The lines in force.
    var lines: [[UInt8]] { keys.map(\.line) }

    /// Takes note of the next key of the list whose text is `source`.
    mutating func note(_ key: EncryptionKey, in source: [UInt8]) {
        if key.isNone {
            keys = []
            return
        }
        let format = key.format
        keys.removeAll { $0.format == format }
        // The one that Sluice has to write anew always has a place.
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

    /// The lines that put these keys in force where `others` are.
    func lines(replacing others: KeysInForce) -> [[UInt8]] {
        let formats = Set(keys.map(\.format))
        // A key stays in force until one of its format replaces it, or NONE all of them.
        if others.keys.allSatisfy({ formats.contains($0.format) }) {
            let known = Set(others.lines)
            return lines.filter { !known.contains($0) }
        }
        return [Array("#EXT-X-KEY:METHOD=NONE".utf8)] + lines
    }

    /// The lines of those keys that take a segment's sequence number for IV, with it written out
    /// (8216bis, 5.2).
    func withIVs(of mediaSequence: Int) -> [[UInt8]] {
        keys.filter(\.usesSequenceNumber).map { key in
            key.line + Array(",IV=0x\(String(mediaSequence, radix: 16, width: 32))".utf8)
        }
    }
}

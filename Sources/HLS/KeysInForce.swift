import URISyntax

/// The EXT-X-KEY lines in force: the last of each KEYFORMAT since the last METHOD=NONE.
struct KeysInForce {
    private struct Key {
        let format: String
        let line: [UInt8]
        let attributes: AttributeList
    }

    private var keys: [Key] = []

    /// The lines in force.
    var lines: [[UInt8]] { keys.map(\.line) }

    /// Takes note of a line if it is a key.
    mutating func note(_ line: PlaylistText.Line, _ text: PlaylistText) {
        guard case .tag(let tag, let value) = line.kind, tag.name == .key else { return }
        let list = AttributeList(text.bytes, in: value)
        if list.isValue("NONE", of: "METHOD") {
            keys = []
            return
        }
        let format = list.text(of: "KEYFORMAT") ?? "identity"
        keys.removeAll { $0.format == format }
        keys.append(
            Key(format: format, line: Array(text.bytes[line.range]), attributes: list))
    }

    /// The lines that put these keys in force where `others` are.
    func lines(replacing others: KeysInForce) -> [[UInt8]] {
        let formats = Set(keys.map(\.format))
        // A key stays in force until one of its format replaces it, or NONE all of them.
        if others.keys.allSatisfy({ formats.contains($0.format) }) {
            let known = others.lines
            return lines.filter { !known.contains($0) }
        }
        return [Array("#EXT-X-KEY:METHOD=NONE".utf8)] + lines
    }

    /// The lines of those keys that take a segment's sequence number for IV, with it written out
    /// (8216bis, 5.2).
    func withIVs(of mediaSequence: Int) -> [[UInt8]] {
        keys.compactMap { key in
            guard key.format == "identity", key.attributes.first("IV") == nil,
                !key.attributes.isValue("AES-256-GCM", of: "METHOD")
            else { return nil }
            let digits = String(mediaSequence, radix: 16)
            let zeros = String(repeating: "0", count: 32 - digits.utf8.count)
            return key.line + Array(",IV=0x\(zeros)\(digits)".utf8)
        }
    }
}

import Numbers
import URISyntax

/// The EXT-X-KEY lines in force: the last of each KEYFORMAT since the last METHOD=NONE.
struct KeysInForce {
    /// The most KEYFORMATs that can be in force at the same time.
    ///
    /// Each DRM system has one; titles for all devices have three or four. Each key change copies
    /// the references to all other keys, and writing a segment compares them.
    static let limit = 32
    /// The most bytes of the lines in force at the same time.
    ///
    /// A key with the header of a DRM system takes a few kilobytes. Writing a segment may compare
    /// all lines.
    static let byteLimit = 128 << 10
    /// The most bytes of the line of a key whose IV is the media sequence number.
    ///
    /// A list with other numbers repeats the line with an IV for each of its segments. Servers
    /// accept hardly any URL of 8 KiB, and the line has little besides its URL.
    static let numberedLineLimit = 8 << 10

    /// The most keys in force that are fetched; titles for all devices have three or four.
    private static let fetchLimit = 4

    /// One key, shared by all segments that use it; keeps a copy of its line and not the playlist.
    private final class Key: Sendable {
        let format: String
        let line: [UInt8]
        /// True if the media sequence number of a segment is its IV.
        let usesSequenceNumber: Bool
        let isIdentity: Bool
        /// Nil if only a DRM system can fetch it.
        let url: AbsoluteURL?

        init(_ key: EncryptionKey, format: String, line: [UInt8]) {
            self.format = format
            self.line = line
            usesSequenceNumber = key.usesSequenceNumber
            isIdentity = format == EncryptionKey.identity
            url = key.reference?.url
        }

        /// Makes the same key with this media sequence number as its IV (8216bis, 5.2).
        init(_ key: Key, ivOf mediaSequence: Int) {
            format = key.format
            line = key.line + Array(",IV=0x\(String(mediaSequence, radix: 16, width: 32))".utf8)
            usesSequenceNumber = false
            isIdentity = key.isIdentity
            url = key.url
        }
    }

    /// At most one of each format.
    private var keys: [Key] = []

    /// The error of the first line beyond a limit.
    private(set) var excess: PlaylistError?

    var isEmpty: Bool { keys.isEmpty }

    /// The bytes of the lines in force.
    var byteCount: Int { keys.reduce(0) { $0 + $1.line.count } }

    /// The bytes of the lines that a renumbered segment has for itself, with their IV.
    var numberedByteCount: Int {
        keys.reduce(0) { $0 + ($1.usesSequenceNumber ? $1.line.count + 40 : 0) }
    }

    /// The lines in force.
    var lines: [[UInt8]] { keys.map(\.line) }

    /// The URLs of the keys to fetch, that of the identity key first.
    var urls: [AbsoluteURL] {
        let fetched = keys.filter { $0.url != nil }
        let inOrder = fetched.filter(\.isIdentity) + fetched.filter { !$0.isIdentity }
        return inOrder.prefix(Self.fetchLimit).compactMap(\.url)
    }

    /// The URLs of which one is enough for playback: keys of different formats are the same key in
    /// different wrappings, but most players can unwrap only the identity key.
    var sufficientURLs: [AbsoluteURL] {
        let urls = urls
        return keys.contains { $0.isIdentity && $0.url != nil } ? Array(urls.prefix(1)) : urls
    }

    /// Records the next key of the list whose text is `source`.
    mutating func note(_ key: EncryptionKey, in source: [UInt8]) {
        if key.isNone {
            keys = []
            return
        }
        let format = key.format
        keys.removeAll { $0.format == format }
        let isIdentity = format == EncryptionKey.identity
        if let error = isIdentity ? error(ofIdentity: key) : error(adding: key) {
            excess = excess ?? error
            // The identity key, which Sluice has to rewrite, is always kept.
            if !isIdentity { return }
        }
        keys.append(Key(key, format: format, line: Array(source[key.source])))
    }

    private func error(ofIdentity key: EncryptionKey) -> PlaylistError? {
        guard key.source.count > Self.numberedLineLimit, key.usesSequenceNumber else { return nil }
        return .lineTooLong(line: key.line, limit: Self.numberedLineLimit)
    }

    private func error(adding key: EncryptionKey) -> PlaylistError? {
        if keys.count >= Self.limit { return .tooManyKeyFormats(line: key.line, limit: Self.limit) }
        let bytes = keys.reduce(key.source.count) { $0 + $1.line.count }
        guard bytes > Self.byteLimit else { return nil }
        return .keysTooLong(line: key.line, limit: Self.byteLimit)
    }

    /// Whether the same lines are in force.
    static func == (left: KeysInForce, right: KeysInForce) -> Bool {
        left.keys.elementsEqual(right.keys) {
            $0 === $1 || ($0.format == $1.format && $0.line == $1.line)
        }
    }

    /// Returns the lines that put these keys in force after `others`.
    ///
    /// Called for each segment: keys that both have are told by their identity, and their lines,
    /// which can be long, are neither compared nor hashed. With `repeatsAll`, each line is returned
    /// although both have it: its URI names another key now.
    func lines(replacing others: KeysInForce, repeatsAll: Bool = false) -> [[UInt8]] {
        let shared = zip(keys, others.keys).prefix { $0 === $1 }.count
        let next = keys[shared...]
        let before = others.keys[shared...]
        // A key stays in force until another of its format replaces it or NONE cancels all keys.
        if before.allSatisfy({ Self.counterpart(of: $0, in: next) != nil }) {
            if repeatsAll { return lines }
            return next.filter { Self.counterpart(of: $0, in: before)?.line != $0.line }.map(\.line)
        }
        return [Array("#EXT-X-KEY:METHOD=NONE".utf8)] + lines
    }

    /// Returns the key of the same format.
    private static func counterpart(of key: Key, in keys: ArraySlice<Key>) -> Key? {
        keys.first { $0 === key } ?? keys.first { $0.format == key.format }
    }

    /// Returns the same keys, with those objects of `others` that have the same lines.
    func sharing(_ others: KeysInForce) -> KeysInForce {
        var result = self
        for (index, key) in keys.enumerated() {
            if let other = Self.counterpart(of: key, in: others.keys[...]), other.line == key.line {
                result.keys[index] = other
            }
        }
        return result
    }

    /// Returns the same keys, with the IV written out of those whose IV is the media sequence
    /// number (8216bis, 5.2).
    func withIVs(of mediaSequence: Int) -> KeysInForce {
        guard keys.contains(where: \.usesSequenceNumber) else { return self }
        var result = self
        result.keys = keys.map { $0.usesSequenceNumber ? Key($0, ivOf: mediaSequence) : $0 }
        return result
    }
}

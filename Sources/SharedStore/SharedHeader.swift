// The form of an object in the bucket: a header that describes and proves it, then the body.
//
//     16 bytes   "SLUICE01", the length of the header, its CRC-32C
//     header     key, length of the body, shift of stretches, role, times, head, CRC-32C of each stretch
//     body
//
// One object holds both, so that a store that keeps a put whole or not at all never shows a body
// without what proves it. Numbers are big-endian.
package import Posix

/// The header of an object in the bucket.
package struct SharedHeader: Sendable, Equatable {
    /// The cache key's digest, 32 bytes: an object that is returned under another name is rejected.
    package let key: [UInt8]
    /// The length of the body.
    package let total: Int64
    /// The letter of the resource's role.
    package let role: UInt8
    /// When it was written.
    package let written: WallTime
    /// The stored head: status, fields, times, final URL.
    package let head: [UInt8]
    /// The CRC-32C of each stretch.
    package let sums: [UInt32]
    /// A stretch has `1 << shift` bytes, the last one the rest.
    package let shift: UInt8

    /// What stands before a header.
    package static let preambleLength = 16
    /// The largest body: 16 GiB.
    package static let largestBody = Int64(1) << 34
    /// The largest stored head.
    package static let largestHead = 64 << 10
    private static let mostStretches = 16_384
    private static let fixedLength = 32 + 8 + 1 + 1 + 8 + 4
    /// The longest header, without the preamble.
    package static let largestLength = fixedLength + largestHead + mostStretches * 4
    private static let magic = Array("SLUICE01".utf8)
    private static let shifts: ClosedRange<UInt8> = 16...20

    /// The shift for a body: stretches of 64 KiB, since a player waits for a whole one, and longer
    /// ones where there would be too many.
    package static func shift(for total: Int64) -> UInt8? {
        guard (0...largestBody).contains(total) else { return nil }
        return shifts.first { count(of: total, shift: $0) <= mostStretches }
    }

    private static func count(of total: Int64, shift: UInt8) -> Int {
        Int((total + (1 << Int64(shift)) - 1) >> Int64(shift))
    }

    /// Nil for a body, head or list of sums that the form does not hold.
    package init?(
        key: [UInt8], total: Int64, role: UInt8, written: WallTime, head: [UInt8], sums: [UInt32]
    ) {
        guard let shift = Self.shift(for: total), key.count == 32, head.count <= Self.largestHead,
            sums.count == Self.count(of: total, shift: shift)
        else { return nil }
        self.key = key
        self.total = total
        self.role = role
        self.written = written
        self.head = head
        self.sums = sums
        self.shift = shift
    }

    /// The offset of the body in the object.
    package var bodyOffset: Int64 {
        Int64(Self.preambleLength + Self.fixedLength + head.count + sums.count * 4)
    }

    /// The length of the object.
    package var objectLength: Int64 { bodyOffset + total }

    // MARK: Stretches

    /// The number of the stretch that holds a byte of the body.
    package func stretch(at offset: Int64) -> Int { Int(offset >> Int64(shift)) }

    /// The bytes of a stretch.
    package func range(ofStretch index: Int) -> Range<Int64> {
        let start = Int64(index) << Int64(shift)
        return start..<min(total, start + 1 << Int64(shift))
    }

    /// The whole stretches that hold a range of the body.
    package func aligned(_ range: Range<Int64>) -> Range<Int64> {
        let range = range.clamped(to: 0..<total)
        guard !range.isEmpty else { return range }
        let first = self.range(ofStretch: stretch(at: range.lowerBound))
        let last = self.range(ofStretch: stretch(at: range.upperBound - 1))
        return first.lowerBound..<last.upperBound
    }

    // MARK: Bytes

    /// Preamble and header.
    package var encoded: [UInt8] {
        var bytes = key
        append(UInt64(total), to: &bytes)
        bytes.append(shift)
        bytes.append(role)
        append(UInt64(bitPattern: written.nanoseconds), to: &bytes)
        append(UInt32(head.count), to: &bytes)
        bytes += head
        for sum in sums { append(sum, to: &bytes) }
        var all = Self.magic
        append(UInt32(bytes.count), to: &all)
        append(crc32c(bytes), to: &all)
        return all + bytes
    }

    private func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        for shift in stride(from: number.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    /// What the first bytes of an object say of its header.
    package enum Preamble: Equatable {
        /// There are too few bytes.
        case incomplete
        /// The object has another form, or another version of this one.
        case foreign
        /// The length of preamble and header.
        case length(Int)
    }

    /// Reads the preamble.
    package static func preamble(_ bytes: [UInt8]) -> Preamble {
        guard bytes.prefix(magic.count).elementsEqual(magic.prefix(bytes.count)) else {
            return .foreign
        }
        guard bytes.count >= preambleLength else { return .incomplete }
        let length = Int(number(bytes[8..<12]))
        guard (fixedLength...largestLength).contains(length) else { return .foreign }
        return .length(preambleLength + length)
    }

    /// Parses preamble and header; nil unless every part and the checksum are as they should be.
    ///
    /// - Parameter bytes: as many as `preamble` has said, or more.
    package init?(_ bytes: [UInt8]) {
        guard case .length(let length) = Self.preamble(bytes), bytes.count >= length else {
            return nil
        }
        let header = Array(bytes[Self.preambleLength..<length])
        guard crc32c(header) == UInt32(Self.number(bytes[12..<16])) else { return nil }
        let shift = header[40]
        let total = Int64(bitPattern: Self.number(header[32..<40]))
        let headLength = Int(Self.number(header[50..<54]))
        guard Self.shift(for: total) == shift, headLength <= Self.largestHead else { return nil }
        let count = Self.count(of: total, shift: shift)
        guard header.count == Self.fixedLength + headLength + count * 4 else { return nil }
        let sumsStart = Self.fixedLength + headLength
        self.init(
            key: Array(header[0..<32]), total: total, role: header[41],
            written: WallTime(nanoseconds: Int64(bitPattern: Self.number(header[42..<50]))),
            head: Array(header[Self.fixedLength..<sumsStart]),
            sums: (0..<count).map {
                UInt32(Self.number(header[(sumsStart + $0 * 4)..<(sumsStart + $0 * 4 + 4)]))
            })
    }

    /// The number in up to eight bytes.
    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Names after the prefix of the location.
package enum SharedNames {
    /// The version of the form: another one shares no names with it.
    package static let version = "v1"

    /// The name of an object of the cache.
    ///
    /// - Parameter key: 64 hexadecimal digits, the digest of the cache key.
    /// - Returns: the name after the prefix of the location.
    package static func object(_ key: String) -> String { "\(version)/o/\(key.prefix(2))/\(key)" }

    /// An object that nobody writes: a store that answers 404 for it works.
    package static let probe = "\(version)/probe"

    /// The prefix of rules that all nodes follow.
    package static let rules = "\(version)/rules/"
}

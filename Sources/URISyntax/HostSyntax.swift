import HostNames
import Numbers

/// Validation of hosts, and their canonical spelling for comparisons.
enum HostSyntax {
    /// True if `bytes` is an IPv6 address without brackets and without a zone (RFC 4291, 2.2).
    static func isIPv6(_ bytes: ArraySlice<UInt8>) -> Bool {
        var groups = 0
        var hasGap = false
        var index = bytes.startIndex
        if bytes.starts(with: [0x3A, 0x3A]) {
            hasGap = true
            index += 2
        }
        while index < bytes.endIndex {
            let end = bytes[index...].firstIndex(of: 0x3A) ?? bytes.endIndex
            let group = bytes[index..<end]
            if group.contains(0x2E) {
                guard end == bytes.endIndex, isIPv4(group) else { return false }
                groups += 2
                break
            }
            guard (1...4).contains(group.count), group.allSatisfy(ASCII.isHexDigit)
            else { return false }
            groups += 1
            index = end
            guard index < bytes.endIndex else { break }
            index += 1
            guard index < bytes.endIndex else { return false }
            if bytes[index] == 0x3A {
                guard !hasGap else { return false }
                hasGap = true
                index += 1
            }
        }
        return hasGap ? groups < 8 : groups == 8
    }

    /// Returns the canonical text of a valid IPv6 address (RFC 5952): all spellings of one address
    /// have one.
    static func canonicalIPv6(_ bytes: ArraySlice<UInt8>) -> String {
        let groups = groups(ofIPv6: bytes)
        if groups[..<5].allSatisfy({ $0 == 0 }), groups[5] == 0xFFFF {
            let quad = groups[6...].flatMap { [$0 >> 8, $0 & 0xFF] }.map { String($0) }
            return "::ffff:" + quad.joined(separator: ".")
        }
        // The first of the longest runs of zero groups, if it has more than one.
        var zeros = 0..<0
        var index = 0
        while index < groups.count {
            let end = groups[index...].firstIndex { $0 != 0 } ?? groups.count
            if end - index > max(1, zeros.count) { zeros = index..<end }
            index = end + 1
        }
        func text(_ groups: ArraySlice<UInt16>) -> String {
            groups.map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard !zeros.isEmpty else { return text(groups[...]) }
        return text(groups[..<zeros.lowerBound]) + "::" + text(groups[zeros.upperBound...])
    }

    /// Returns the eight groups of a valid IPv6 address.
    private static func groups(ofIPv6 bytes: ArraySlice<UInt8>) -> [UInt16] {
        var groups: [UInt16] = []
        var gap: Int?
        for part in bytes.split(separator: 0x3A, omittingEmptySubsequences: false) {
            if part.isEmpty {
                gap = gap ?? groups.count
            } else if part.contains(0x2E) {
                let quad = part.split(separator: 0x2E).map {
                    UInt16(DecimalDigits<UInt8>($0, upTo: .max).number ?? 0)
                }
                groups += [quad[0] << 8 | quad[1], quad[2] << 8 | quad[3]]
            } else {
                groups.append(
                    part.reduce(0 as UInt16) { $0 << 4 | UInt16(ASCII.hexValue($1) ?? 0) })
            }
        }
        let missing = max(0, 8 - groups.count)
        groups.insert(contentsOf: repeatElement(0, count: missing), at: gap ?? groups.count)
        return groups
    }

    /// True if `bytes` is a dotted quad of decimal numbers up to 255.
    static func isIPv4(_ bytes: ArraySlice<UInt8>) -> Bool {
        let parts = bytes.split(separator: 0x2E, omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { part in
                part.count <= 3 && DecimalDigits<UInt8>(part, upTo: .max).number != nil
            }
    }

    /// True if an ASCII byte may occur in a host name.
    ///
    /// Underscores occur in practice. Blanks, backslashes and others are rejected, because programs
    /// disagree on the host that they name.
    static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
    }

    /// Returns the ASCII lower-case form of a host name, or nil if it is not a valid name.
    ///
    /// Names beyond ASCII, whose bytes may be percent-encoded, follow `InternationalName.ascii`.
    static func asciiName(_ bytes: ArraySlice<UInt8>) -> String? {
        let span = bytes.span
        var isName = true
        var isLower = true
        for index in span.indices {
            if !isNameByte(span[index]) { isName = false }
            if ASCII.lowercased(span[index]) != span[index] { isLower = false }
        }
        if isName {
            if isLower { return PercentCoding.text(bytes) }
            return PercentCoding.text(bytes.map(ASCII.lowercased)[...])
        }
        // Invalid ASCII stays invalid: the mapping must not turn it into a name.
        guard let decoded = decodedName(bytes),
            decoded.allSatisfy({ $0 >= 0x80 || isNameByte($0) }),
            let text = String(validating: decoded, as: UTF8.self),
            let name = InternationalName.ascii(text), name.utf8.allSatisfy(isNameByte)
        else { return nil }
        return name
    }

    /// Decodes the escapes of bytes beyond ASCII (RFC 3986 section 3.2.2).
    ///
    /// Returns nil for all others: programs disagree on the host that an escaped ASCII byte names.
    private static func decodedName(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var decoded: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == ASCII.percent else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(ASCII.hexValue), high >= 8,
                let low = rest.popFirst().flatMap(ASCII.hexValue)
            else { return nil }
            decoded.append(high << 4 | low)
        }
        return decoded
    }
}

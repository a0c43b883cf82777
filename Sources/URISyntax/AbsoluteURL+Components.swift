/// The components of an absolute URL, as given unless said otherwise.
extension AbsoluteURL {
    /// The URL as given, without its fragment; bytes that are not UTF-8 appear as `%XX`.
    package var text: String { PercentCoding.text(bytes[...]) }

    /// The range of the user information in `bytes`, without its `@`.
    package var userinfoRange: Range<Int>? {
        layout.hostStart > layout.authorityStart
            ? Int(layout.authorityStart)..<Int(layout.hostStart) - 1 : nil
    }

    /// The range of the host in `bytes`, an IPv6 address with its brackets.
    package var hostRange: Range<Int> { Int(layout.hostStart)..<Int(layout.hostEnd) }

    /// The range of the path in `bytes`; empty in `http://host`.
    package var pathRange: Range<Int> { Int(layout.pathStart)..<Int(layout.queryMark) }

    /// The range of the query in `bytes`, without its `?`; nil without one.
    package var queryRange: Range<Int>? {
        Int(layout.queryMark) < bytes.count ? Int(layout.queryMark) + 1..<bytes.count : nil
    }

    /// True if both URLs have the same bytes up to the end of the authority.
    ///
    /// Cheap; false for different spellings of one authority.
    package func sharesAuthority(with other: AbsoluteURL) -> Bool {
        guard layout.pathStart == other.layout.pathStart else { return false }
        let mine = bytes.span
        let others = other.bytes.span
        for index in 0..<Int(layout.pathStart) where mine[index] != others[index] { return false }
        return true
    }

    /// True if the host is an IPv6 address.
    package var hasIPv6Host: Bool { bytes[Int(layout.hostStart)] == 0x5B }

    /// The host in lower case, an IPv6 address without brackets, a name in the script given.
    package var host: String {
        let range =
            hasIPv6Host ? hostRange.lowerBound + 1..<hostRange.upperBound - 1 : hostRange
        let name = bytes[range]
        let decoded = name.contains(ASCII.percent) ? PercentCoding.decode(name)[...] : name
        return PercentCoding.text(decoded).lowercased()
    }

    /// The host as sent to the DNS: ASCII lower case, `xn--` labels for other scripts; an IPv6
    /// address in its canonical form, without brackets.
    package var asciiHost: String {
        guard hasIPv6Host else { return HostSyntax.asciiName(bytes[hostRange]) ?? host }
        return HostSyntax.canonicalIPv6(bytes[hostRange].dropFirst().dropLast())
    }

    /// True if `asciiHost` is `name`; an ASCII host of another length is not converted.
    package func hasHost(_ name: String) -> Bool {
        let host = hostRange
        if host.count == name.utf8.count || hasIPv6Host { return asciiHost == name }
        // One name has several spellings in other scripts.
        let span = bytes.span
        for index in host where span[index] >= 0x80 || span[index] == ASCII.percent {
            return asciiHost == name
        }
        return false
    }

    /// The port written in the URL; nil if there is none.
    package var explicitPort: UInt16? { layout.hostEnd + 1 < layout.pathStart ? port : nil }

    /// `user:password` as given, escapes included; nil without user information.
    package var userinfo: String? { userinfoRange.map { PercentCoding.text(bytes[$0]) } }

    /// The path; `/` if it is empty.
    package var path: String {
        pathRange.isEmpty ? "/" : PercentCoding.text(bytes[pathRange])
    }

    /// The query without its `?`; nil without one.
    package var query: String? { queryRange.map { PercentCoding.text(bytes[$0]) } }

    /// The text after the last dot of the file name, in lower case; empty without one.
    package var nameExtension: String {
        let span = bytes.span
        let name = lastPathSegmentRange
        var start = name.upperBound
        while start > name.lowerBound, span[start &- 1] != 0x2E { start &-= 1 }
        guard start > name.lowerBound else { return "" }
        let text = PercentCoding.text(bytes[start..<name.upperBound])
        for index in start..<name.upperBound where ASCII.lowercased(span[index]) != span[index] {
            return String(decoding: text.utf8.map(ASCII.lowercased), as: UTF8.self)
        }
        return text
    }

    /// Path and query; starts with `/`.
    package var pathAndQuery: String {
        (pathRange.isEmpty ? "/" : "")
            + PercentCoding.text(bytes[Int(layout.pathStart)...])
    }

    /// The range of the last path segment in `bytes`; empty after a final slash.
    package var lastPathSegmentRange: Range<Int> {
        let path = pathRange
        let span = bytes.span
        var start = path.upperBound
        while start > path.lowerBound, span[start &- 1] != 0x2F { start &-= 1 }
        return start..<path.upperBound
    }

    /// The file name: the text after the path's last slash, undecoded; may be empty.
    package var lastPathSegment: String { PercentCoding.text(bytes[lastPathSegmentRange]) }

    /// Scheme, host and effective port.
    package var origin: Origin { Origin(scheme: scheme, host: asciiHost, port: port) }
}

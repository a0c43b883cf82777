/// Other spellings of an absolute URL: for the wire, for cache keys and for logs.
extension AbsoluteURL {
    /// The same URL without user information.
    package var withoutUserinfo: AbsoluteURL {
        guard userinfoRange != nil else { return self }
        let cut = Int(layout.hostStart - layout.authorityStart)
        var shorter = bytes
        shorter.removeSubrange(Int(layout.authorityStart)..<Int(layout.hostStart))
        return AbsoluteURL(bytes: shorter, copying: self, shiftedBy: Int32(cut))
    }

    /// The URL as passed to the transfer library.
    ///
    /// The host is ASCII, blanks and bytes above 0x7E are percent-encoded, other bytes are
    /// unchanged. User information is left out: it is sent as an Authorization field.
    package var requestForm: String {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 8)
        output.append(contentsOf: scheme.name.utf8)
        output.append(contentsOf: "://".utf8)
        output.append(contentsOf: (hasIPv6Host ? "[" + asciiHost + "]" : asciiHost).utf8)
        if let explicitPort { output.append(contentsOf: (":" + String(explicitPort)).utf8) }
        if pathRange.isEmpty { output.append(0x2F) }
        PercentCoding.appendRequestForm(of: bytes[Int(layout.pathStart)...], to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// The normalised form of the URL for cache keys, equal for spellings of scheme and authority.
    ///
    /// Scheme and host are in ASCII lower case, default port and user information are dropped, an
    /// empty path becomes `/`; path and query are unchanged byte for byte, even where RFC 3986
    /// section 6.2.2 would normalise them: objects are stored under these keys.
    package var normalisedForKey: String {
        isNormalised ? text : origin.description + pathAndQuery
    }

    /// True if the bytes are already normalised, as in nearly all URLs; false if a quick check
    /// cannot tell.
    private var isNormalised: Bool {
        let span = bytes.span
        guard userinfoRange == nil, !hasIPv6Host, !pathRange.isEmpty else { return false }
        for index in 0..<Int(layout.authorityStart)
        where ASCII.lowercased(span[index]) != span[index] { return false }
        for index in hostRange {
            guard HostSyntax.isNameByte(span[index]), ASCII.lowercased(span[index]) == span[index]
            else { return false }
        }
        guard layout.hostEnd < layout.pathStart else { return true }
        let portStart = Int(layout.hostEnd) + 1
        return portStart < Int(layout.pathStart) && span[portStart] != 0x30
            && port != scheme.defaultPort
    }

    /// True if an item of the query begins with `start`; a cheap check before splitting the query.
    ///
    /// - Parameter start: one byte or more.
    /// - Returns: false also if there is no query.
    package func hasQueryItem(startingWith start: [UInt8]) -> Bool {
        guard let query = queryRange else { return false }
        let span = bytes.span
        var isAtItem = true
        for index in query {
            if isAtItem, span[index] == start[0], query.upperBound - index >= start.count {
                var matched = 1
                while matched < start.count, span[index + matched] == start[matched] {
                    matched += 1
                }
                if matched == start.count { return true }
            }
            isAtItem = span[index] == 0x26
        }
        return false
    }

    /// The URL for logs and error texts: no user information, no query values, no long path
    /// segments.
    ///
    /// Path segments with `name=value`, as in signed paths, keep only the name, and those with an
    /// encoded query what is before it.
    package var redacted: String {
        var output = origin.description
        var length = 0
        for (index, part) in bytes[pathRange].split(
            separator: 0x2F, omittingEmptySubsequences: false
        ).enumerated() {
            let text = Self.redactPathPart(part)
            if index > 0 { output += "/" }
            length += min(text.utf8.count, Self.characterCount(of: part))
            if length > 160 {
                output += "…"
                break
            }
            output += text
        }
        if pathRange.isEmpty { output += "/" }
        if let queryRange { output += "?" + Self.redactQuery(bytes[queryRange]) }
        return output
    }

    /// The texts that the redacted form does not have, as written and decoded: user, password, the
    /// values of the query and of `name=value` in the path, and what is behind an encoded `?` there,
    /// as a whole and each value of it.
    package var secrets: [String] {
        var found: [String] = []
        func add(_ bytes: ArraySlice<UInt8>) {
            let raw = String(decoding: bytes, as: UTF8.self)
            found += [raw, PercentCoding.decode(raw)]
        }
        if let userinfo = userinfoRange.map({ bytes[$0] }) {
            userinfo.split(separator: 0x3A, maxSplits: 1).forEach(add)
        }
        func addValues(of query: ArraySlice<UInt8>) {
            for item in query.split(separator: 0x26) {
                add(item.firstIndex(of: 0x3D).map { item[($0 + 1)...] } ?? item)
            }
        }
        if let queryRange { addValues(of: bytes[queryRange]) }
        for part in bytes[pathRange].split(separator: 0x2F) {
            guard let (start, text) = Self.secretMark(in: part) else { continue }
            let rest = part[(start + (part[start] == ASCII.percent ? 3 : 1))...]
            add(rest)
            if text == Self.queryMark {
                addValues(of: Self.withPlainSeparators(rest))
            } else if let mark = Self.encodedQuestionMark(in: rest) {
                // A value, and an encoded query behind it.
                add(rest[..<mark])
                addValues(of: Self.withPlainSeparators(rest[(mark + 3)...]))
            }
        }
        return found
    }

    /// Returns the index of the first encoded `?`; nil if there is none.
    private static func encodedQuestionMark(in bytes: ArraySlice<UInt8>) -> Int? {
        bytes.indices.first { index in
            bytes[index] == ASCII.percent && bytes.endIndex - index > 2
                && bytes[index + 1] == 0x33 && ASCII.lowercased(bytes[index + 2]) == 0x66
        }
    }

    /// Returns the bytes with encoded `&` and `=` decoded.
    private static func withPlainSeparators(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var output: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let code = bytes[index...].prefix(3).map { ASCII.lowercased($0) }
            let plain: UInt8? = code == encodedEquals ? 0x3D : code == encodedAnd ? 0x26 : nil
            output.append(plain ?? bytes[index])
            index += plain == nil ? 1 : 3
        }
        return output[...]
    }

    private static let encodedEquals = Array("%3d".utf8)
    private static let encodedAnd = Array("%26".utf8)
    /// Stands for what is behind an encoded `?` of a path.
    private static let queryMark = "%3F***"

    private static func redactPathPart(_ part: ArraySlice<UInt8>) -> String {
        if let (start, text) = secretMark(in: part) {
            return printable(part[..<start].prefix(24)) + text
        }
        return characterCount(of: part) > 48 ? printable(part.prefix(8)) + "…" : printable(part)
    }

    /// Returns the number of characters of a path segment, or of its bytes if it is no UTF-8, such
    /// as a binary token.
    ///
    /// Encoded, a character of most scripts takes six or nine bytes: a name would count as a token.
    private static func characterCount(of part: ArraySlice<UInt8>) -> Int {
        guard part.contains(where: { $0 == ASCII.percent || $0 >= 0x80 }),
            let text = String(validating: PercentCoding.decode(part), as: UTF8.self)
        else { return part.count }
        return text.unicodeScalars.count
    }

    /// Returns the first `=`, plain or encoded, or encoded `?` of a path segment, and what stands
    /// for it and the rest; nil if there is none.
    private static func secretMark(in part: ArraySlice<UInt8>) -> (start: Int, text: String)? {
        for index in part.indices {
            if part[index] == 0x3D { return (index, "=***") }
            guard part[index] == ASCII.percent, part.endIndex - index > 2, part[index + 1] == 0x33
            else { continue }
            switch part[index + 2] {
            case 0x44, 0x64: return (index, "=***")
            case 0x46, 0x66: return (index, queryMark)
            default: break
            }
        }
        return nil
    }

    private static func redactQuery(_ query: ArraySlice<UInt8>) -> String {
        var arguments: [String] = []
        for argument in query.split(separator: 0x26) {
            guard arguments.count < 8 else { return arguments.joined(separator: "&") + "&…" }
            if let equals = argument.firstIndex(of: 0x3D), equals - argument.startIndex <= 32 {
                arguments.append(printable(argument[..<equals]) + "=***")
            } else {
                arguments.append("***")
            }
        }
        return arguments.joined(separator: "&")
    }

    private static func printable(_ bytes: ArraySlice<UInt8>) -> String {
        var output: [UInt8] = []
        PercentCoding.appendRequestForm(of: bytes, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    private init(bytes: [UInt8], copying other: AbsoluteURL, shiftedBy cut: Int32) {
        var layout = other.layout
        layout.hostStart -= cut
        layout.hostEnd -= cut
        layout.pathStart -= cut
        layout.queryMark -= cut
        self.init(bytes: bytes, scheme: other.scheme, port: other.port, layout: layout)
    }

    // MARK: Hosts

    /// Makes the URL `http://<text>/` of a host as people write it; nil if the text is no host, or has
    /// more than that.
    ///
    /// - Parameter text: a name, an IPv4 address, or an IPv6 address with or without brackets; a port
    ///   may follow, but for an IPv6 address without brackets.
    package init?(authority text: String) {
        let isBareIPv6 = !text.hasPrefix("[") && text.utf8.count { $0 == 0x3A } > 1
        // A URL may have a colon without a port after it; here, a port was forgotten.
        guard isBareIPv6 || !text.hasSuffix(":"), !text.contains("#"),
            let url = try? AbsoluteURL("http://\(isBareIPv6 ? "[\(text)]" : text)/"),
            url.pathAndQuery == "/", url.userinfo == nil
        else { return nil }
        self = url
    }
}

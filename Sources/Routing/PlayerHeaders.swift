// Request headers as players write them next to a URL: Kodi after a `|`; `ChannelHeaders` has those
// in lines of channel lists.
import HTTP
import URISyntax

/// Parses these notations of request headers.
package enum PlayerHeaders {
    /// The most headers of one URL or entry.
    package static let most = 32
    /// The most bytes of a name.
    static let longestName = 256
    /// The most bytes of a value.
    static let longestValue = 8 << 10

    /// Splits `URL|Name=value&Name=value` (values percent-encoded); nil if there is no such suffix.
    ///
    /// An encoded `|` may belong to a URL, and any `|` to the file name that a relative reference
    /// is. It counts only if the first name after it is one that players commonly set.
    ///
    /// - Parameters:
    ///   - bytes: the URL or reference.
    ///   - isRelative: whether it is a reference without a scheme.
    /// - Returns: the URL without the suffix, and its headers.
    package static func split(
        _ bytes: [UInt8], isRelative: Bool = false
    ) -> (url: [UInt8], headers: [Entry.Header])? {
        let bar = UInt8(ascii: "|")
        if let mark = bytes.firstIndex(of: bar), let headers = headers(bytes[(mark + 1)...]),
            !isRelative || beginsWithCommonName(headers)
        {
            return (Array(bytes[..<mark]), headers)
        }
        guard let mark = PercentCoding.firstBar(in: bytes[...]),
            let headers = headers(bytes[(mark + 3)...]), beginsWithCommonName(headers)
        else { return nil }
        return (Array(bytes[..<mark]), headers)
    }

    private static func beginsWithCommonName(_ headers: [Entry.Header]) -> Bool {
        headers.first.map { commonNames.contains(ASCII.lowercased($0.name)) } ?? false
    }

    /// A URL as a person gives it to a command, without the headers behind it.
    ///
    /// - Returns: the URL's text and its headers, none where it ends in nothing like them.
    package static func cut(_ text: String) -> (url: String, headers: [Entry.Header]) {
        guard let split = split(Array(text.utf8)) else { return (text, []) }
        return (String(decoding: split.url, as: UTF8.self), split.headers)
    }

    /// Parses `Name=value&Name=value`; nil if any part is malformed.
    ///
    /// Blanks before a name, also percent-encoded ones, are dropped: some lists have them.
    /// Settings of Kodi that are not headers are dropped; headers that must not be set are kept,
    /// and `fault` reports them.
    static func headers(_ text: ArraySlice<UInt8>) -> [Entry.Header]? {
        var headers: [Entry.Header] = []
        for item in text.split(separator: UInt8(ascii: "&")).map(withoutBlanks) {
            guard let mark = item.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            // Kodi marks headers that have the name of one of its settings.
            let isMarked = item.first == UInt8(ascii: "!")
            let name = item[(isMarked ? item.startIndex + 1 : item.startIndex)..<mark]
            guard !name.isEmpty, name.allSatisfy(ASCII.isToken) else { return nil }
            let text = String(decoding: name, as: UTF8.self)
            if !isMarked, settings.contains(ASCII.lowercased(text)) { continue }
            let value = PercentCoding.decode(item[(mark + 1)...])
            headers.append(
                Entry.Header(name: text, value: String(decoding: value, as: UTF8.self)))
            guard headers.count <= most else { return headers }
        }
        return text.isEmpty ? nil : headers
    }

    private static func withoutBlanks(_ item: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = item
        while let first = rest.first {
            if first == 0x20 {
                rest = rest.dropFirst()
            } else if rest.starts(with: encodedBlank) {
                rest = rest.dropFirst(encodedBlank.count)
            } else {
                break
            }
        }
        return rest
    }

    private static let encodedBlank = Array("%20".utf8)

    /// Returns the error in the headers of one URL, without their values; nil if there is none.
    ///
    /// `place` says where they were found.
    package static func fault(
        of headers: [Entry.Header], at place: String = "behind the URL"
    ) -> String? {
        if headers.count > most { return "there are more than \(most) headers \(place)" }
        for header in headers {
            let name = "the header \(header.name.prefix(40)) \(place)"
            if let fault = header.fault { return "\(name) \(fault)" }
            if header.name.utf8.count > longestName {
                return "\(name) has a name of more than \(longestName) bytes"
            }
            if header.value.utf8.count > longestValue {
                return "\(name) has more than \(longestValue) bytes"
            }
        }
        return nil
    }

    private static let commonNames: Set<String> = [
        "user-agent", "referer", "origin", "cookie", "authorization", "accept", "accept-language",
    ]

    /// Names that Kodi interprets itself after a `|` (CurlFile.cpp).
    private static let settings: Set<String> = [
        "auth", "sslcipherlist", "connection-timeout", "failonerror", "redirect-limit", "postdata",
        "active-remote", "customrequest", "acceptencoding", "noshout", "seekable", "verifypeer",
    ]
}

extension Entry.Header {
    /// The error in a session header, nil if there is none: names are tokens, values contain no
    /// line ends (RFC 9110 section 5), and players must not set framing fields or
    /// the fields by which a request that loops is recognised (RFC 8586 section 2).
    package var fault: String? {
        guard !name.isEmpty, name.utf8.allSatisfy(ASCII.isToken) else {
            return "does not name a header"
        }
        guard value.utf8.allSatisfy(ASCII.isFieldValue) else { return "holds a control character" }
        return Self.ownNames.contains(ASCII.lowercased(name)) ? "is set by the daemon itself" : nil
    }

    private static let ownNames: Set<String> = [
        "host", "connection", "content-length", "transfer-encoding", "te", "upgrade", "range",
        "if-range", "if-none-match", "if-modified-since", "accept-encoding", "expect", "trailer",
        "keep-alive", "proxy-connection", "proxy-authorization", "cdn-loop", "via",
    ]
}

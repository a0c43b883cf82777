// Request headers as players write them next to a URL: Kodi after a `|`; VLC, Kodi and players of
// channel lists in lines of such a list.
import HLS
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

/// The request headers that a channel list sets for single entries, by the line number of the
/// entry.
package struct ChannelHeaders: Sendable {
    /// From 1; entries without headers of their own are absent.
    package private(set) var byLine: [Int: [Entry.Header]] = [:]
    /// The lines of entries that a property names manifests of DASH or Smooth Streaming.
    package private(set) var foreignManifests: Set<Int> = []
    /// The list without the suffixes after the `|` of its entries, except those that players open
    /// without the daemon.
    package private(set) var text: [UInt8]
    /// The number of dropped headers that must not be set, and of dropped sets.
    package private(set) var refused = 0

    /// The most different sets of headers, since each is a session.
    ///
    /// Sets of further entries are dropped.
    package static let mostSets = 64

    /// Nil for a list without headers and types of manifests, the usual case.
    package init?(_ body: [UInt8]) {
        guard Self.mayBeChannels(body),
            body.contains(UInt8(ascii: "|")) || PercentCoding.firstBar(in: body[...]) != nil
                || Self.hasOptions(body)
        else { return nil }
        text = []
        var pending: [Entry.Header] = []
        var isForeign = false
        var sets: Set<[Entry.Header]> = []
        var line = 0
        var start = 0
        while start < body.count {
            line += 1
            let end = body[start...].firstIndex(of: 0x0A) ?? body.count
            let range = start..<end
            defer { start = end + 1 }
            let trimmed = Self.trimmed(body[range])
            if trimmed.first == UInt8(ascii: "#") || trimmed.isEmpty {
                if pending.count < PlayerHeaders.most { pending += Self.option(trimmed) }
                isForeign = isForeign || Self.namesForeignManifest(trimmed)
                text += body[range]
            } else if isForeign || ForeignManifest.isNamed(by: trimmed) {
                if isForeign { foreignManifests.insert(line) }
                isForeign = false
                pending = []
                text += body[range]
            } else {
                var headers = pending
                pending = []
                if let found = PlayerHeaders.split(
                    Array(trimmed), isRelative: !Self.isAbsolute(trimmed))
                {
                    headers += found.headers
                    text += found.url
                } else {
                    text += body[range]
                }
                keep(headers, at: line, &sets)
            }
            if end < body.count { text.append(0x0A) }
        }
        if byLine.isEmpty, foreignManifests.isEmpty, text == body { return nil }
    }

    private mutating func keep(
        _ headers: [Entry.Header], at line: Int, _ sets: inout Set<[Entry.Header]>
    ) {
        guard !headers.isEmpty else { return }
        var kept: [Entry.Header] = []
        for header in headers.prefix(PlayerHeaders.most) {
            guard PlayerHeaders.fault(of: [header]) == nil else {
                refused += 1
                continue
            }
            // The last one counts, as in VLC.
            kept.removeAll { ASCII.equalIgnoringCase($0.name, header.name) }
            kept.append(header)
        }
        guard !kept.isEmpty else { return }
        guard sets.contains(kept) || sets.count < Self.mostSets else {
            refused += 1
            return
        }
        sets.insert(kept)
        byLine[line] = kept
    }

    private static func isAbsolute(_ line: ArraySlice<UInt8>) -> Bool {
        let start = line.prefix(8).map { ASCII.lowercased($0) }
        return start.starts(with: "http://".utf8) || start.starts(with: "https://".utf8)
    }

    private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let end = line.lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? line.startIndex
        return line[line.startIndex..<end].drop { $0 <= 0x20 }
    }

    private static let vlc = Array("#EXTVLCOPT:".utf8)
    private static let kodi = Array("#KODIPROP:".utf8)
    /// Followed by an object of header fields in JSON.
    private static let fields = Array("#EXTHTTP:".utf8)

    /// Returns false for HLS playlists, recognisable by their first lines: they are not searched.
    private static func mayBeChannels(_ body: [UInt8]) -> Bool {
        let start = Array("#EXT-X-".utf8)
        var place = 0
        while place < min(body.count, 4_096) {
            if body[place...].starts(with: start) { return false }
            guard let end = body[place...].firstIndex(of: 0x0A) else { return true }
            place = end + 1
        }
        return true
    }

    private static func hasOptions(_ body: [UInt8]) -> Bool {
        body.split(separator: 0x0A).contains { line in
            let line = trimmed(line)
            return line.starts(with: vlc) || line.starts(with: kodi) || line.starts(with: fields)
        }
    }

    /// Returns the headers of one line.
    private static func option(_ line: ArraySlice<UInt8>) -> [Entry.Header] {
        if line.starts(with: vlc) {
            let (name, value) = pair(line.dropFirst(vlc.count))
            let names = [
                "http-user-agent": "User-Agent", "http-referrer": "Referer",
                "http-cookie": "Cookie",
            ]
            guard let name = names[name], !value.isEmpty else { return [] }
            return [Entry.Header(name: name, value: String(decoding: value, as: UTF8.self))]
        }
        if line.starts(with: fields) {
            let members = JSONText.stringMembers(of: line.dropFirst(fields.count)) ?? []
            return members.prefix(PlayerHeaders.most).map { member in
                Entry.Header(
                    name: String(decoding: member.name, as: UTF8.self),
                    value: String(decoding: member.value, as: UTF8.self))
            }
        }
        guard line.starts(with: kodi) else { return [] }
        let (name, value) = pair(line.dropFirst(kodi.count))
        let start = "inputstream.adaptive."
        guard name.hasPrefix(start),
            ["stream_headers", "manifest_headers", "common_headers"].contains(
                String(name.dropFirst(start.count)))
        else { return [] }
        return PlayerHeaders.headers(value) ?? []
    }

    /// True for a property that says that the next entry is a manifest of DASH or Smooth Streaming.
    private static func namesForeignManifest(_ line: ArraySlice<UInt8>) -> Bool {
        guard line.starts(with: kodi) else { return false }
        let (name, value) = pair(line.dropFirst(kodi.count))
        return name == "inputstream.adaptive.manifest_type"
            && ["mpd", "ism"].contains(ASCII.lowercased(String(decoding: value, as: UTF8.self)))
    }

    private static func pair(_ line: ArraySlice<UInt8>) -> (String, ArraySlice<UInt8>) {
        let mark = line.firstIndex(of: UInt8(ascii: "=")) ?? line.endIndex
        let name = String(decoding: trimmed(line[..<mark]), as: UTF8.self)
        return (ASCII.lowercased(name), trimmed(line[min(mark + 1, line.endIndex)...]))
    }
}

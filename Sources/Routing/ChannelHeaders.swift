// Request headers in lines of channel lists, as VLC, Kodi and other players read them.
import HLS
import URISyntax

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

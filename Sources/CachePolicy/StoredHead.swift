/// The head that is kept with a stored response, and its form on disk.
package import HTTP
package import Posix

/// What is known of a stored response besides its body (RFC 9111 section 3.1).
package struct StoredHead: Sendable, Equatable {
    /// The status of the response; 206 is kept as the 200 that it is a part of.
    package var status: HTTPStatus
    /// End-to-end fields that may be replayed.
    package var fields: Fields
    /// When the request was sent.
    package var requestTime: WallTime
    /// When the head arrived.
    package var responseTime: WallTime
    /// The URL that answered, after redirects: the base of relative references.
    package var finalURL: String
    /// True when the body is a playlist, which is rewritten for each session.
    package var isPlaylist: Bool

    package init(
        status: HTTPStatus, fields: Fields, requestTime: WallTime, responseTime: WallTime,
        finalURL: String, isPlaylist: Bool = false
    ) {
        self.status = status
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.finalURL = finalURL
        self.isPlaylist = isPlaylist
    }

    /// Fields that describe one hop, one transfer or one viewer, or that speak for an origin whose
    /// place we take; none of them is replayed from the store.
    private static let dropped: Set<String> = [
        "set-cookie", "set-cookie2", "strict-transport-security", "alt-svc", "link",
        "content-security-policy", "content-security-policy-report-only", "report-to", "nel",
        "content-length", "content-range", "accept-ranges", "transfer-encoding",
        "public-key-pins", "clear-site-data", "server-timing", "timing-allow-origin",
        "cross-origin-resource-policy", "cross-origin-opener-policy",
        "cross-origin-embedder-policy",
        "refresh", "cache-status", "x-frame-options",
    ]

    /// The fields of an origin's response that are kept (RFC 9111 section 3.1).
    package static func keptFields(of response: Fields) -> Fields {
        var kept = Fields()
        for (name, value) in endToEndFields(response) {
            let lower = HTTP.ASCII.lowercased(name)
            if dropped.contains(lower) || lower.hasPrefix("access-control-") { continue }
            kept.append(name, value)
        }
        return kept
    }

    /// Takes over the fields of a 304 (RFC 9111 section 3.2) and its times.
    package mutating func update(
        from notModified: Fields, requestTime: WallTime, responseTime: WallTime
    ) {
        let news = Self.keptFields(of: notModified)
        for (name, _) in news
        where !["content-encoding", "content-type"].contains(HTTP.ASCII.lowercased(name)) {
            fields.remove(name)
        }
        for (name, value) in news
        where !["content-encoding", "content-type"].contains(HTTP.ASCII.lowercased(name)) {
            fields.append(name, value)
        }
        self.requestTime = requestTime
        self.responseTime = responseTime
    }

    /// The validator for `If-Range`: a strong entity tag, else a date old enough to be strong
    /// (RFC 9110 section 8.8.2.2); nil if neither is there.
    package var strongValidator: String? {
        if let tag = EntityTag.parse(fields), !tag.isWeak { return tag.description }
        guard let modified = fields.first(.lastModified), let at = HTTPDate.parse(modified) else {
            return nil
        }
        let served = fields.first(.date).flatMap { HTTPDate.parse($0) } ?? responseTime.seconds
        return served - at >= 1 ? modified : nil
    }

    // MARK: On disk

    /// Lines of text: a version, the values, an empty line, the fields as in HTTP/1.1.
    package var encoded: [UInt8] {
        var text = "1 \(status.rawValue) \(requestTime.nanoseconds) \(responseTime.nanoseconds) "
        text += "\(isPlaylist ? "playlist" : "media") \(finalURL)\n"
        for (name, value) in fields { text += "\(name): \(value)\n" }
        return Array(text.utf8)
    }

    /// Reads what `encoded` gave; nil for anything else.
    package init?(encoded bytes: [UInt8]) {
        var lines = bytes.split(separator: 0x0A).makeIterator()
        guard let first = lines.next() else { return nil }
        let parts = first.split(separator: 0x20, maxSplits: 5)
            .map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 6, parts[0] == "1", let status = UInt16(parts[1]),
            let requested = Int64(parts[2]), let received = Int64(parts[3])
        else { return nil }
        self.init(
            status: HTTPStatus(rawValue: status), fields: Fields(),
            requestTime: WallTime(nanoseconds: requested),
            responseTime: WallTime(nanoseconds: received), finalURL: parts[5],
            isPlaylist: parts[4] == "playlist")
        while let line = lines.next() {
            guard fields.append(line: line) else { return nil }
        }
    }
}

// The head that is kept with a stored response, and its form on disk.
package import HTTP
import Numbers
package import Posix
import URISyntax

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
    /// The kind of cache it was stored by; nil for playback, where HTTP's rules do not lead.
    package var kind: CacheKind?

    package init(
        status: HTTPStatus, fields: Fields, requestTime: WallTime, responseTime: WallTime,
        finalURL: String, isPlaylist: Bool = false, kind: CacheKind? = nil
    ) {
        self.kind = kind
        self.status = status
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.finalURL = finalURL
        self.isPlaylist = isPlaylist
    }

    /// Fields that describe one hop, one transfer or one viewer, or that speak for an origin whose
    /// place we take; none of them is replayed from the store.
    private static let dropped = FieldNameSet([
        "set-cookie", "set-cookie2", "strict-transport-security", "alt-svc", "link",
        "content-security-policy", "content-security-policy-report-only", "report-to", "nel",
        "content-length", "content-range", "accept-ranges", "transfer-encoding",
        "public-key-pins", "clear-site-data", "server-timing", "timing-allow-origin",
        "cross-origin-resource-policy", "cross-origin-opener-policy",
        "cross-origin-embedder-policy",
        "refresh", "cache-status", "x-frame-options",
    ])

    /// The fields of an origin's response that are kept (RFC 9111 section 3.1).
    ///
    /// - Parameters:
    ///   - response: the fields as they came.
    ///   - kind: what HTTP's rules are followed for: all end-to-end fields are kept then, as bytes;
    ///     nil for playback, which keeps what may stand in answers of ours.
    /// - Returns: the fields to store.
    package static func keptFields(of response: Fields, for kind: CacheKind? = nil) -> Fields {
        if kind != nil {
            var kept = endToEndFields(response)
            kept.remove(.contentLength)
            return kept
        }
        let fields = endToEndFields(response).filtered { name in
            !dropped.contains(name) && !isAccessControl(name)
        }
        guard !fields.isASCII else { return fields }
        // What stands in answers of ours is text.
        var texts = Fields()
        for (name, value) in fields { texts.append(name, value) }
        return texts
    }

    private static func isAccessControl(_ name: ArraySlice<UInt8>) -> Bool {
        name.count >= accessControl.count
            && name.prefix(accessControl.count).elementsEqual(accessControl) {
                ASCII.lowercased($0) == $1
            }
    }

    private static let accessControl = Array("access-control-".utf8)

    /// Takes out the fields that a shared cache must not store, those that `private` names (RFC
    /// 9111 section 5.2.2.7).
    ///
    /// - Returns: what was taken out; it belongs to the answer that brought it.
    package mutating func removePrivateFields() -> Fields {
        var removed = Fields()
        guard let kind, kind.isShared,
            case .fields(let names) = kind.directives(of: fields).control.private
        else { return removed }
        for name in names {
            for value in fields.all(name) { removed.append(name, value) }
            fields.remove(name)
        }
        return removed
    }

    /// Takes over the fields of a 304 (RFC 9111 section 3.2) and its times.
    package mutating func update(
        from notModified: Fields, requestTime: WallTime, responseTime: WallTime
    ) {
        // What describes the stored bytes stays: they did not change. Content-Type changes only
        // where HTTP's rules lead; for playback it was found out here.
        var fixed: Set<FieldName> = ["Content-Encoding", "Content-Range"]
        if kind == nil { fixed.insert(.contentType) }
        let news = Self.keptFields(of: notModified, for: kind)
        let lines = (0..<news.count).map { news.bytes(at: $0) }
            .map { (name: FieldName(String(decoding: $0.name, as: UTF8.self)), line: $0) }
            .filter { !fixed.contains($0.name) }
        for (name, _) in lines { fields.remove(name) }
        // The age and the date are those of the answer that was just given.
        fields.remove(.age)
        if !news.contains(.date) { fields.set(.date, HTTPDate.format(responseTime.seconds)) }
        for (_, line) in lines { fields.append(nameBytes: line.name, valueBytes: line.value) }
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
        var bytes: [UInt8] = []
        // Numbers and words of the first line take no more than 80 bytes.
        bytes.reserveCapacity(80 + finalURL.utf8.count + fieldBytes)
        for number in [
            1, Int64(status.rawValue), requestTime.nanoseconds, responseTime.nanoseconds,
        ] {
            appendDecimal(number, to: &bytes)
            bytes.append(ASCII.space)
        }
        if let kind {
            bytes += kind.rawValue.utf8
            bytes.append(0x2D)
        }
        bytes += isPlaylist ? Self.playlist : Self.media
        bytes.append(ASCII.space)
        bytes += finalURL.utf8
        bytes.append(ASCII.lineFeed)
        for index in 0..<fields.count {
            let line = fields.bytes(at: index)
            bytes += line.name
            bytes.append(ASCII.colon)
            bytes.append(ASCII.space)
            bytes += line.value
            bytes.append(ASCII.lineFeed)
        }
        return bytes
    }

    /// What the field lines take.
    private var fieldBytes: Int {
        var count = 0
        for index in 0..<fields.count {
            let line = fields.bytes(at: index)
            count += line.name.count + line.value.count + 3
        }
        return count
    }

    /// Reads what `encoded` gave; nil for anything else.
    ///
    /// The fields share the memory of `bytes`: every hit on what is not open comes through here.
    package init?(encoded bytes: [UInt8]) {
        let end = bytes.firstIndex(of: ASCII.lineFeed) ?? bytes.count
        var words = Words(rest: bytes[..<end])
        guard words.next() == [0x31], let status = words.number(),
            let status = UInt16(exactly: status), let requested = words.number(),
            let received = words.number(), let form = words.next(), !words.rest.isEmpty,
            let (isPlaylist, kind) = Self.form(form),
            let fields = Fields(lines: bytes, from: min(end + 1, bytes.count))
        else { return nil }
        self.init(
            status: HTTPStatus(rawValue: status), fields: fields,
            requestTime: WallTime(nanoseconds: requested),
            responseTime: WallTime(nanoseconds: received),
            finalURL: String(decoding: words.rest, as: UTF8.self), isPlaylist: isPlaylist,
            kind: kind)
    }

    /// What the fifth word says: `media`, `playlist`, or either behind a kind of cache.
    private static func form(_ word: ArraySlice<UInt8>) -> (isPlaylist: Bool, kind: CacheKind?)? {
        if word.elementsEqual(media) { return (false, nil) }
        let words = word.split(separator: 0x2D)
        let kind =
            words.count == 2 ? CacheKind(rawValue: String(decoding: words[0], as: UTF8.self)) : nil
        guard words.count == 1 || kind != nil else { return nil }
        return (words.last?.elementsEqual(playlist) ?? false, kind)
    }

    private static let media = Array("media".utf8)
    private static let playlist = Array("playlist".utf8)

    /// Takes words, which single spaces divide, off the front of a line.
    private struct Words {
        var rest: ArraySlice<UInt8>

        mutating func next() -> ArraySlice<UInt8>? {
            guard let space = rest.firstIndex(of: ASCII.space), space > rest.startIndex else {
                return nil
            }
            defer { rest = rest[(space + 1)...] }
            return rest[..<space]
        }

        mutating func number() -> Int64? {
            guard var word = next() else { return nil }
            let isNegative = word.first == 0x2D
            if isNegative { word.removeFirst() }
            let number = DecimalDigits<Int64>(word, upTo: .max).number
            return isNegative ? number.map { -$0 } : number
        }
    }
}

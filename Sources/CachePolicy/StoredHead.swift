// The head that is stored with a response, and its form on disk.
package import HTTP
import Numbers
package import Posix
import URISyntax

/// The metadata of a stored response (RFC 9111 section 3.1).
package struct StoredHead: Sendable, Equatable {
    /// The status of the response; a 206 is stored as the 200 that it is a part of.
    package var status: HTTPStatus
    /// End-to-end fields that may be sent again.
    package var fields: Fields
    /// When the request was sent; when the head arrived, if the origin may have held the request.
    package var requestTime: WallTime
    /// When the head arrived.
    package var responseTime: WallTime
    /// The URL that responded, after redirects: the base of relative references.
    package var finalURL: String
    /// True when the body is a playlist, which is rewritten for each session.
    package var isPlaylist: Bool
    /// True for a playlist whose URL had a live playlist before, and for a multivariant playlist
    /// that names one.
    package var wasLive: Bool
    /// True for a multivariant playlist of playback that did not prove its end, and whose text ends
    /// as a cut one does.
    package var mayBeCut = false
    /// The kind of cache it was stored by; nil for playback, where HTTP caching rules do not
    /// decide.
    package var kind: CacheKind?
    /// True if it was stored by HTTP's rules instead of playlist semantics.
    @inlinable package var followsHTTP: Bool { kind != nil }
    /// True for a playlist of playback if its response set a cookie, or its request carried one, by
    /// which the origin may recognize the viewer.
    package var hasViewerCookie: Bool
    /// What stands in cache keys for the credentials that a response was requested with; nil
    /// without any, for playlists, and where HTTP's rules apply.
    ///
    /// For a decryption key it is the user information alone. For other media it also names the
    /// credentials of the session, if it has any, and it is nil if the origin allows sharing.
    package var user: String?

    package init(
        status: HTTPStatus, fields: Fields, requestTime: WallTime, responseTime: WallTime,
        finalURL: String, isPlaylist: Bool = false, wasLive: Bool = false, kind: CacheKind? = nil,
        hasViewerCookie: Bool = false
    ) {
        self.kind = kind
        self.hasViewerCookie = hasViewerCookie
        self.status = status
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.finalURL = finalURL
        self.isPlaylist = isPlaylist
        self.wasLive = wasLive
    }

    /// Fields that describe one hop, one transfer or one viewer, or that apply to the origin that
    /// Sluice replaces; none of them is sent again from the store.
    private static let dropped = FieldNameSet([
        "set-cookie", "set-cookie2", "strict-transport-security", "alt-svc", "link",
        "content-security-policy", "content-security-policy-report-only", "report-to", "nel",
        "content-length", "content-range", "accept-ranges", "transfer-encoding",
        "public-key-pins", "clear-site-data", "server-timing", "timing-allow-origin",
        "cross-origin-resource-policy", "cross-origin-opener-policy",
        "cross-origin-embedder-policy",
        "refresh", "cache-status", "x-frame-options",
    ])

    /// Returns the fields of an origin's response that are stored (RFC 9111 section 3.1).
    ///
    /// - Parameters:
    ///   - response: the fields as received.
    ///   - kind: the kind of cache, which keeps all end-to-end fields as bytes; nil for playback,
    ///     which keeps only fields that may occur in Sluice's responses.
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
        // Sluice's own responses contain text only.
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

    /// Removes the fields that a shared cache must not store, those that `private` names (RFC 9111
    /// section 5.2.2.7).
    ///
    /// - Returns: the removed fields; they belong only to the response that contained them.
    package mutating func removePrivateFields() -> Fields {
        guard let kind, kind.isShared,
            case .fields(let names) = kind.directives(of: fields).control.private
        else { return Fields() }
        return fields.remove(Set(names.map { FieldName($0) }))
    }

    /// True unless the entity tags say that a 304 is about another response.
    ///
    /// By weak comparison, since servers that compress mark one of the two tags as weak.
    package func isValidated(by notModified: Fields) -> Bool {
        guard notModified.contains(.etag), fields.contains(.etag) else { return true }
        if notModified.valueBytes(.etag) == fields.valueBytes(.etag) { return true }
        guard let new = EntityTag.parse(notModified), let known = EntityTag.parse(fields) else {
            return false
        }
        return new.opaque == known.opaque
    }

    /// Updates the fields from a 304 (RFC 9111 section 3.2), and the times.
    package mutating func update(
        from notModified: Fields, requestTime: WallTime, responseTime: WallTime
    ) {
        // Fields that describe the stored bytes stay, since these did not change. Content-Type
        // changes only under HTTP caching rules; for playback Sluice has determined it.
        var fixed: Set<FieldName> = ["Content-Encoding", "Content-Range"]
        if !followsHTTP { fixed.insert(.contentType) }
        // A strong tag instead of a weak one would promise more than was promised of these bytes.
        if fields.contains(.etag) { fixed.insert(.etag) }
        let news = Self.keptFields(of: notModified, for: kind)
        let lines = (0..<news.count).map { news.bytes(at: $0) }
            .map { (name: FieldName(String(decoding: $0.name, as: UTF8.self)), line: $0) }
            .filter { !fixed.contains($0.name) }
        _ = fields.remove(Set(lines.map(\.name)))
        // Age and date are those of the 304.
        fields.remove(.age)
        if !news.contains(.date) { fields.set(.date, HTTPDate.format(responseTime.seconds)) }
        for (_, line) in lines { fields.append(nameBytes: line.name, valueBytes: line.value) }
        self.requestTime = requestTime
        self.responseTime = responseTime
    }

    /// The validator for `If-Range`: a strong entity tag, otherwise a date old enough to be strong
    /// (RFC 9110 section 8.8.2.2); nil without either.
    package var strongValidator: String? {
        if let tag = EntityTag.parse(fields), !tag.isWeak { return tag.description }
        guard let modified = fields.first(.lastModified), let at = HTTPDate.parse(modified) else {
            return nil
        }
        let served = fields.first(.date).flatMap { HTTPDate.parse($0) } ?? responseTime.seconds
        return served - at >= 1 ? modified : nil
    }

    // MARK: On disk

    /// The text form: a version and values in the first line, then the fields as in HTTP/1.1.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        // The numbers and words of the first line take at most 90 bytes.
        bytes.reserveCapacity(90 + finalURL.utf8.count + fieldBytes)
        for number in [
            1, Int64(status.rawValue), requestTime.nanoseconds, responseTime.nanoseconds,
        ] {
            appendDecimal(number, to: &bytes)
            bytes.append(ASCII.space)
        }
        if let kind {
            bytes += kind.rawValue.utf8
            bytes.append(0x2D)
        } else if isPlaylist, hasViewerCookie {
            bytes += Self.cookie
            bytes.append(0x2D)
        } else if !isPlaylist, let user {
            bytes += Self.opened
            bytes.append(0x2D)
            bytes += user.utf8
            bytes.append(0x2D)
        }
        bytes += isPlaylist ? Self.playlist : Self.media
        if isPlaylist, wasLive { bytes += Self.afterLive }
        if isPlaylist, mayBeCut { bytes += Self.cut }
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

    /// The size of the field lines.
    private var fieldBytes: Int {
        var count = 0
        for index in 0..<fields.count {
            let line = fields.bytes(at: index)
            count += line.name.count + line.value.count + 3
        }
        return count
    }

    /// Parses an `encoded` head; nil for any other bytes.
    ///
    /// The fields share the memory of `bytes`, since every hit on an object that is not open parses
    /// its head.
    package init?(encoded bytes: [UInt8]) {
        let end = bytes.firstIndex(of: ASCII.lineFeed) ?? bytes.count
        var words = WordReader(rest: bytes[..<end])
        guard words.next() == [0x31], let status = words.number(),
            let status = UInt16(exactly: status), let requested = words.number(),
            let received = words.number(), let form = words.next(), !words.rest.isEmpty,
            let word = Self.form(Self.isCut(form) ? form.dropLast(Self.cut.count) : form),
            word.isPlaylist || !Self.isCut(form),
            let fields = Fields(lines: bytes, from: min(end + 1, bytes.count))
        else { return nil }
        self.init(
            status: HTTPStatus(rawValue: status), fields: fields,
            requestTime: WallTime(nanoseconds: requested),
            responseTime: WallTime(nanoseconds: received),
            finalURL: String(decoding: words.rest, as: UTF8.self), isPlaylist: word.isPlaylist,
            wasLive: word.wasLive, kind: word.kind, hasViewerCookie: word.hasViewerCookie)
        user = word.user
        mayBeCut = Self.isCut(form)
    }

    private typealias Form = (
        isPlaylist: Bool, wasLive: Bool, kind: CacheKind?, hasViewerCookie: Bool, user: String?
    )

    /// Parses the fifth word.
    ///
    /// It is `media`, `playlist`, `playlist-after-live`, each of them after a kind of cache and a
    /// hyphen, one of the playlists after `cookie-`, or `media` after `user-`, digests and a
    /// hyphen. A playlist that may be cut has `-cut` at its end. Former versions reject the last
    /// three, so that they fetch the response anew.
    private static func form(_ given: ArraySlice<UInt8>) -> Form? {
        if given.elementsEqual(media) { return (false, false, nil, false, nil) }
        let wasLive = given.suffix(afterLive.count).elementsEqual(afterLive)
        let word = wasLive ? given.dropLast(afterLive.count) : given
        let words = word.split(separator: 0x2D)
        if words.count == 2, words[0].elementsEqual(cookie), words[1].elementsEqual(playlist) {
            return (true, wasLive, nil, true, nil)
        }
        if words.count == 3, !wasLive, words[0].elementsEqual(opened),
            words[2].elementsEqual(media)
        {
            return (false, false, nil, false, String(decoding: words[1], as: UTF8.self))
        }
        let kind =
            words.count == 2 ? CacheKind(rawValue: String(decoding: words[0], as: UTF8.self)) : nil
        guard words.count == 1 || kind != nil else { return nil }
        let isPlaylist = words.last?.elementsEqual(playlist) ?? false
        guard isPlaylist || !wasLive else { return nil }
        return (isPlaylist, wasLive, kind, false, nil)
    }

    private static func isCut(_ form: ArraySlice<UInt8>) -> Bool {
        form.suffix(cut.count).elementsEqual(cut)
    }

    private static let afterLive = Array("-after-live".utf8)
    private static let cut = Array("-cut".utf8)
    private static let media = Array("media".utf8)
    private static let playlist = Array("playlist".utf8)
    private static let cookie = Array("cookie".utf8)
    private static let opened = Array("user".utf8)

    /// Takes words, separated by single spaces, off the front of a line.
    private struct WordReader {
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

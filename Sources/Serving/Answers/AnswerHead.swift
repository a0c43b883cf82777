// Heads of responses to players.
import CachePolicy
import HLS
import HTTP
import Model
import Posix
import URISyntax

/// The CORS fields that browsers need on every response of a proxy for several origins.
enum CrossOrigin {
    static let exposed =
        "Accept-Ranges, Age, Cache-Status, Content-Length, Content-Range, Content-Type, Date, ETag, Last-Modified"

    /// Adds the CORS fields.
    ///
    /// Never `*` together with credentials (Fetch standard, CORS protocol).
    ///
    /// A document is readable only for origins that were named with `--cors-origin`.
    static func append(
        to fields: inout Fields, for request: RequestHead, settings: ProxySettings,
        isDocument: Bool = false
    ) {
        if !settings.credentialedOrigins.isEmpty {
            fields.append(.vary, "Origin")
            if let origin = request.fields.first(.origin),
                settings.credentialedOrigins.contains(origin)
            {
                fields.append(.accessControlAllowOrigin, origin)
                fields.append("Access-Control-Allow-Credentials", "true")
                fields.append(.accessControlExposeHeaders, exposed)
                return
            }
        }
        if !isDocument { appendPublic(to: &fields) }
    }

    /// Adds the fields of a response that any page may read.
    static func appendPublic(to fields: inout Fields) {
        fields.append(.accessControlAllowOrigin, "*")
        fields.append(.accessControlExposeHeaders, exposed)
    }

    /// Returns the response to a preflight (Fetch standard; Private Network Access).
    static func preflight(_ request: RequestHead, settings: ProxySettings) -> ResponseHead {
        var fields = Fields()
        append(to: &fields, for: request, settings: settings)
        fields.append(.accessControlAllowMethods, "GET, HEAD, OPTIONS")
        let asked = request.fields.combined(.accessControlRequestHeaders)
        fields.append(
            .accessControlAllowHeaders, asked ?? "Range, If-Range, If-None-Match, If-Modified-Since"
        )
        fields.append(.accessControlMaxAge, "86400")
        if request.fields.first(.accessControlRequestPrivateNetwork) == "true" {
            fields.append(.accessControlAllowPrivateNetwork, "true")
        }
        fields.append(.vary, "Access-Control-Request-Headers")
        return ResponseHead(status: .noContent, fields: fields)
    }
}

/// A destination of fields: a collection, or serialized lines.
private protocol FieldOutput {
    mutating func append(_ name: FieldName, _ value: String) throws(ResponseHeadError)
    mutating func append(_ name: FieldName, _ value: ArraySlice<UInt8>) throws(ResponseHeadError)
}

extension SerializedFields: FieldOutput {}

extension Fields: FieldOutput {
    fileprivate mutating func append(_ name: FieldName, _ value: ArraySlice<UInt8>) {
        append(nameBytes: name.spelling.utf8, valueBytes: value)
    }
}

/// Builds the heads of responses from stored heads.
struct AnswerHead {
    let request: RequestHead
    let resource: Resource
    let core: ProxyCore
    let now: WallTime

    private var settings: ProxySettings { core.settings }

    /// Returns the head of a response with stored content.
    func head(
        _ facts: ObjectFacts, _ status: HTTPStatus, _ how: Provenance,
        contentRange: String? = nil
    ) -> ResponseHead {
        var head = ResponseHead(status: status)
        if resource.followsHTTP {
            head.fields = fieldsUnderRules(facts, how)
        } else {
            if let lines = facts.lines(for: resource, { lastingLines(facts) }) {
                head.written = try? aged(lines, facts, how)
            }
            if head.written == nil {
                head.fields = lastingFields(facts)
                addAge(&head.fields, facts, how)
            }
            if !core.settings.credentialedOrigins.isEmpty {
                CrossOrigin.append(
                    to: &head.fields, for: request, settings: settings,
                    isDocument: facts.isDocument)
            }
        }
        if let contentRange { head.fields.set(.contentRange, contentRange) }
        return head
    }

    /// Returns the constant fields in written form; nil if one of the origin's is malformed.
    private func lastingLines(_ facts: ObjectFacts) -> SerializedFields? {
        guard !resource.isMounted, !facts.isDocument,
            core.settings.credentialedOrigins.isEmpty
        else {
            return try? SerializedFields(lastingFields(facts))
        }
        guard let fixed = Self.fixedLines else { return nil }
        // Without a `Fields` value: every hit that is not a document comes here.
        var lines = SerializedFields(reserving: 512)
        guard (try? appendOwn(facts, to: &lines)) != nil else { return nil }
        lines.append(fixed)
        return lines
    }

    /// Appends the lines that change between responses to the constant ones.
    private func aged(
        _ lines: SerializedFields, _ facts: ObjectFacts, _ how: Provenance
    ) throws(ResponseHeadError) -> SerializedFields {
        var lines = SerializedFields(reserving: 96, behind: lines)
        lines.append(.age, age(of: facts))
        if case .hit = how.disposition, how.ttl == nil, how.status == nil,
            let plain = Self.plainHitLine
        {
            lines.append(plain)
            return lines
        }
        try how.cacheStatus.append(to: &lines)
        return lines
    }

    /// Returns the fields that stay the same while the response is stored, whoever requests it.
    private func lastingFields(_ facts: ObjectFacts) -> Fields {
        var fields = ownFields(facts)
        fields.append(contentsOf: Self.fixedFields(isMounted: resource.isMounted))
        if core.settings.credentialedOrigins.isEmpty {
            CrossOrigin.append(
                to: &fields, for: request, settings: settings, isDocument: facts.isDocument)
        }
        return fields
    }

    private static func fixedFields(isMounted: Bool) -> Fields {
        var fields = Fields()
        fields.append(.acceptRanges, "bytes")
        if !isMounted { fields.append("X-Content-Type-Options", "nosniff") }
        return fields
    }

    /// The lines common to all responses to playback URLs if no origin has special CORS rights.
    private static let fixedLines: SerializedFields? = {
        var fields = fixedFields(isMounted: false)
        CrossOrigin.appendPublic(to: &fields)
        return try? SerializedFields(fields)
    }()

    /// The Cache-Status line of nearly every hit.
    private static let plainHitLine: SerializedFields? = {
        var lines = SerializedFields(reserving: 32)
        let status = Disposition.hit.cacheStatus(ttl: nil, status: nil)
        return (try? status.append(to: &lines)).map { lines }
    }()

    /// Returns the fields that differ between stored responses.
    private func ownFields(_ facts: ObjectFacts) -> Fields {
        var fields = Fields()
        fields.reserve(lines: 12, bytes: 512)
        if resource.isMounted {
            for (name, value) in facts.head.fields
            where !Self.replaced.contains(ASCII.lowercased(name)) {
                fields.append(name, value)
            }
        }
        // Does not throw for `Fields`.
        try? appendOwn(facts, to: &fields)
        return fields
    }

    /// Appends the fields that differ between stored responses; of a mount's, those that `ownFields`
    /// has not copied.
    private func appendOwn(
        _ facts: ObjectFacts, to output: inout some FieldOutput
    ) throws(ResponseHeadError) {
        let stored = facts.head.fields
        let copiesNone = !resource.isMounted
        if copiesNone, let control = stored.combinedBytes(.cacheControl) {
            try output.append(.cacheControl, control[...])
        }
        try output.append(
            .contentType, ContentTypes.media(resource, stated: stored.first(.contentType)))
        if copiesNone, let coding = stored.valueBytes(.contentEncoding) {
            try output.append(.contentEncoding, coding)
        }
        // Members of caches nearer to the origin stand before ours (RFC 9211 section 2).
        if copiesNone, let before = stored.combinedBytes(.cacheStatus) {
            try output.append(.cacheStatus, before[...])
        }
        // Under a mount only the origin may set one (RFC 9110 section 8.8.3).
        if copiesNone { try output.append(.etag, facts.entityTag) }
        if let modified = stored.valueBytes(.lastModified) {
            try output.append(.lastModified, modified)
        }
    }

    /// Returns the stored fields as the origin sent them, with those that a cache adds.
    ///
    /// Fields named by `no-cache` are sent only after successful revalidation (RFC 9111 section
    /// 5.2.2.4).
    private func fieldsUnderRules(
        _ facts: ObjectFacts, _ how: Provenance
    ) -> Fields {
        let disposition = how.disposition
        var fields = facts.head.fields
        if !facts.rules.withheld.isEmpty, !disposition.hasOriginsWord {
            let names = Set(facts.rules.withheld.map { FieldName($0) })
            _ = fields.remove(names)
        }
        let age = facts.rules.age(at: now)
        // A response straight from an origin keeps its Age field; without one, it gets one only if
        // its age is above 0.
        if disposition.isFirstHand {
            if age > 0, !fields.contains(.age) { fields.append(.age, String(age)) }
        } else {
            fields.set(.age, String(age))
        }
        how.cacheStatus.append(to: &fields)
        resource.mount?.localise(&fields, of: resource.url, for: request, settings)
        return fields
    }

    /// Returns the fields of a response that is passed on and not stored.
    func passedOn(_ head: StoredHead, _ reason: Freshness.StaleReason?) -> Fields {
        var fields = head.fields
        var status = CacheStatus(cache: "sluice", forward: reason?.forwardReason ?? .uriMiss)
        if request.method == .head, reason == nil { status.forward = .method }
        status.forwardStatus = head.status
        status.append(to: &fields)
        resource.mount?.localise(&fields, of: resource.url, for: request, settings)
        return fields
    }

    /// Returns the head of a response with a rewritten playlist or JSON text.
    func textHead(
        _ facts: ObjectFacts, of playlist: PlaylistFacts, isCompressed: Bool,
        _ how: Provenance
    ) -> ResponseHead {
        var fields = Fields()
        let listType = playlist.isChannelList ? ContentTypes.channelList : ContentTypes.playlist
        fields.append(.contentType, resource.role == .json ? "application/json" : listType)
        fields.append(.cacheControl, "no-cache")
        fields.append(.vary, "Accept-Encoding")
        if isCompressed { fields.append(.contentEncoding, "gzip") }
        if let before = facts.head.fields.combined(.cacheStatus) {
            fields.append(.cacheStatus, before)
        }
        addAge(&fields, facts, how)
        if !resource.isMounted { fields.append("X-Content-Type-Options", "nosniff") }
        CrossOrigin.append(to: &fields, for: request, settings: settings)
        return ResponseHead(status: .ok, fields: fields)
    }

    private func addAge(
        _ fields: inout Fields, _ facts: ObjectFacts, _ how: Provenance
    ) {
        fields.append(.age, String(age(of: facts)))
        how.cacheStatus.append(to: &fields)
    }

    /// The age that players are told; where HTTP decides, as for JSON, it is that of RFC 9111.
    private func age(of facts: ObjectFacts) -> Int64 {
        resource.policy == .media && resource.role != .json
            ? facts.rules.playbackAge(at: now) : facts.rules.age(at: now)
    }

    private static let replaced: Set<String> = [
        "content-type", "last-modified", "age", "date", "accept-ranges",
        // Of the origin's host, as `Mount.localise` has it.
        "alt-svc", "strict-transport-security",
    ]

    /// Returns the head of a response with a body that may have no end.
    func endless(_ facts: ObjectFacts, _ how: Provenance) -> ResponseHead {
        var fields = Fields()
        let stored = facts.head.fields
        fields.append(
            .contentType, ContentTypes.media(resource, stated: stored.first(.contentType)))
        fields.append(.cacheControl, "no-store")
        fields.append(.acceptRanges, "none")
        for name in Self.stationFields {
            if let value = stored.first(name) { fields.append(name, value) }
        }
        if let before = stored.combined(.cacheStatus) { fields.append(.cacheStatus, before) }
        how.disposition.cacheStatus(ttl: nil, status: how.status).append(to: &fields)
        fields.append("X-Content-Type-Options", "nosniff")
        CrossOrigin.append(
            to: &fields, for: request, settings: core.settings, isDocument: facts.isDocument)
        return ResponseHead(status: .ok, fields: fields)
    }

    /// What a radio station says of itself; without the distance of titles, which are removed.
    private static let stationFields: [FieldName] = [
        "icy-name", "icy-genre", "icy-description", "icy-url", "icy-br", "icy-sr", "icy-pub",
        "ice-audio-info",
    ]

    /// Returns the response to a failure: one line of text that says who caused it.
    static func failure(
        _ failure: ProxyFailure, request: RequestHead, settings: ProxySettings
    ) -> (ResponseHead, [UInt8]) {
        var failure = failure
        if let told = failure.toldToForeignPage, ForeignPage.isSender(of: request, settings) {
            failure = told
        }
        var fields = Fields()
        fields.append(.contentType, "text/plain; charset=utf-8")
        fields.append(.cacheControl, "no-store")
        fields.append("X-Content-Type-Options", "nosniff")
        if let total = failure.total, failure.status == .rangeNotSatisfiable {
            fields.append(.contentRange, ContentRange.unsatisfied(total: total).description)
        }
        if let seconds = failure.retryAfter { fields.append(.retryAfter, String(seconds)) }
        if failure.status == .methodNotAllowed { fields.append(.allow, "GET, HEAD, OPTIONS") }
        // An origin's 401 is not about the access token.
        if failure.status == .unauthorized, failure.fault == .client {
            fields.append(.wwwAuthenticate, "Bearer realm=\"sluice\"")
            if ForeignPage.mayAskForPassword(request, settings) {
                fields.append(.wwwAuthenticate, "Basic realm=\"sluice\", charset=\"UTF-8\"")
            }
        }
        var status = CacheStatus(cache: "sluice")
        // Without `fwd` there is no `fwd-status` (RFC 9211 section 2.3): a status that an origin
        // gave an earlier request is in Proxy-Status.
        if !failure.isUnasked {
            status.forward = failure.forwardReason ?? .uriMiss
            status.forwardStatus = failure.originStatus
        }
        if failure.status != .noContent {
            status.detail = failure.lookupDetail ?? "\(failure.fault.rawValue)-error"
        }
        if failure.fault == .origin || failure.originStatus != nil || failure.lookupDetail != nil {
            status.append(to: &fields)
        }
        failure.proxyStatus?.append(to: &fields)
        if failure.isHiddenFromPages {
            // What `ForeignPage.isSender` reads.
            fields.append(.vary, "Origin, Sec-Fetch-Site, Sec-Fetch-Mode")
        } else {
            CrossOrigin.append(to: &fields, for: request, settings: settings)
        }
        return (ResponseHead(status: failure.status, fields: fields), Array(failure.text.utf8))
    }
}

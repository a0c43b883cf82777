import URISyntax

/// What a cache did with a request: the value of `Cache-Status` (RFC 9211).
package struct CacheStatus: Sendable, Hashable {
    /// Why a request went forward (RFC 9211 section 2.2).
    package enum ForwardReason: String, Sendable, Hashable, CaseIterable {
        /// The cache was told not to handle the request.
        case bypass
        /// The method's semantics require it.
        case method
        /// Nothing is stored under the cache key.
        case uriMiss = "uri-miss"
        /// What is stored does not fit the request's `Vary` fields.
        case varyMiss = "vary-miss"
        /// Nothing fits, for one of the two reasons above.
        case miss
        /// The request's own directives forbid what is stored.
        case request
        /// What is stored is stale.
        case stale
        /// What is stored is a part only.
        case partial
    }

    /// The name of the cache, written first.
    package var cache: String
    /// Whether the response was answered from the cache without going forward.
    package var hit: Bool
    /// Why the request went forward; left out where `hit`.
    package var forward: ForwardReason?
    /// The status of the answer to the forwarded request.
    package var forwardStatus: HTTPStatus?
    /// Seconds of freshness left, negative for what is stale.
    package var ttl: Int64?
    /// Whether the forwarded response was stored.
    package var stored: Bool
    /// Whether the request shared one that was already under way.
    package var collapsed: Bool
    /// The cache key; may hold tokens of a URL, so it is written only where set.
    package var key: String?
    /// What else there is to say, in the cache's own words.
    package var detail: String?

    package init(
        cache: String, hit: Bool = false, forward: ForwardReason? = nil, ttl: Int64? = nil
    ) {
        self.cache = cache
        self.hit = hit
        self.forward = forward
        self.ttl = ttl
        forwardStatus = nil
        stored = false
        collapsed = false
        key = nil
        detail = nil
    }

    /// The value as a list member of a structured field (RFC 8941): parameters in the order of
    /// RFC 9211.
    package var serialised: String {
        if isPlainHit { return ttl.map { "sluice; hit; ttl=\(Self.integer($0))" } ?? "sluice; hit" }
        var value = CacheStatus.item(cache)
        if hit {
            value += "; hit"
        } else if let forward {
            value += "; fwd=\(forward.rawValue)"
        }
        if let forwardStatus { value += "; fwd-status=\(forwardStatus.rawValue)" }
        if let ttl { value += "; ttl=\(CacheStatus.integer(ttl))" }
        if stored { value += "; stored" }
        if collapsed { value += "; collapsed" }
        if let key { value += "; key=\(CacheStatus.string(key))" }
        if let detail { value += "; detail=\(CacheStatus.item(detail))" }
        return value
    }

    /// Adds this cache's member after those of the caches nearer to the origin.
    package func append(to fields: inout Fields) {
        fields.append(.cacheStatus, serialised)
    }

    /// As above, among written lines.
    ///
    /// - Throws: Where the member is no field value.
    package func append(to lines: inout WrittenFields) throws(ResponseHeadError) {
        try lines.append(.cacheStatus, serialised)
    }

    /// What most answers say.
    private var isPlainHit: Bool {
        hit && cache == "sluice" && forwardStatus == nil && !stored && !collapsed && key == nil
            && detail == nil
    }

    /// A token where the text can be one, else a string.
    private static func item(_ text: String) -> String {
        guard let first = text.utf8.first, ASCII.isLetter(first) || first == 0x2A,
            text.utf8.allSatisfy({ ASCII.isToken($0) || $0 == ASCII.colon || $0 == 0x2F })
        else { return string(text) }
        return text
    }

    /// A string of RFC 8941 section 3.3.3; what is not printable ASCII cannot stand in one and
    /// becomes `?`.
    private static func string(_ text: String) -> String {
        var bytes: [UInt8] = [ASCII.quote]
        for scalar in text.unicodeScalars {
            guard scalar.value >= 0x20, scalar.value < 0x7F else {
                bytes.append(0x3F)
                continue
            }
            let byte = UInt8(scalar.value)
            if byte == ASCII.quote || byte == ASCII.backslash { bytes.append(ASCII.backslash) }
            bytes.append(byte)
        }
        bytes.append(ASCII.quote)
        return bytes[...].text
    }

    /// An integer of at most 15 digits (RFC 8941 section 3.3.1).
    private static func integer(_ number: Int64) -> Int64 {
        min(max(number, -999_999_999_999_999), 999_999_999_999_999)
    }
}

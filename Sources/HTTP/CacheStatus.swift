import URISyntax

/// How a cache handled a request: the value of `Cache-Status` (RFC 9211).
package struct CacheStatus: Sendable, Hashable {
    /// The reason why a request was forwarded (RFC 9211 section 2.2).
    package enum ForwardReason: String, Sendable, Hashable, CaseIterable {
        /// The cache was told not to handle the request.
        case bypass
        /// The method's semantics require it.
        case method
        /// Nothing is stored under the cache key.
        case uriMiss = "uri-miss"
        /// The stored responses do not match the request's `Vary` fields.
        case varyMiss = "vary-miss"
        /// No stored response matches, for one of the two reasons above.
        case miss
        /// The request's directives forbid the stored response.
        case request
        /// The stored response is stale.
        case stale
        /// The stored response is partial.
        case partial
    }

    /// The name of the cache, written first.
    package var cache: String
    /// True if the response came from the cache without forwarding the request.
    package var hit: Bool
    /// The reason why the request was forwarded; omitted if `hit`.
    package var forward: ForwardReason?
    /// The status of the response to the forwarded request.
    package var forwardStatus: HTTPStatus?
    /// Remaining seconds of freshness, negative if stale.
    package var ttl: Int64?
    /// True if the forwarded response was stored.
    package var stored: Bool
    /// True if the request was collapsed with one already in flight.
    package var collapsed: Bool
    /// The cache key; may contain tokens of a URL, so it is written only if set.
    package var key: String?
    /// Further details in implementation-specific words.
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

    /// The value as a list member of a structured field (RFC 8941), parameters in the order of RFC
    /// 9211.
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

    /// Appends this cache's member after those of the caches nearer to the origin.
    package func append(to fields: inout Fields) {
        fields.append(.cacheStatus, serialised)
    }

    /// Appends this cache's member to written lines.
    ///
    /// - Throws: If the member is not a valid field value.
    package func append(to lines: inout SerializedFields) throws(ResponseHeadError) {
        try lines.append(.cacheStatus, serialised)
    }

    /// True for the most common value.
    private var isPlainHit: Bool {
        hit && cache == "sluice" && forwardStatus == nil && !stored && !collapsed && key == nil
            && detail == nil
    }

    /// Returns a token if the text is one, otherwise a string.
    private static func item(_ text: String) -> String {
        guard let first = text.utf8.first, ASCII.isLetter(first) || first == 0x2A,
            text.utf8.allSatisfy({ ASCII.isToken($0) || $0 == ASCII.colon || $0 == 0x2F })
        else { return string(text) }
        return text
    }

    /// Returns a string of RFC 8941 section 3.3.3; characters outside printable ASCII, which it
    /// cannot contain, become `?`.
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

    /// Clamps an integer to 15 digits (RFC 8941 section 3.3.1).
    private static func integer(_ number: Int64) -> Int64 {
        min(max(number, -999_999_999_999_999), 999_999_999_999_999)
    }
}

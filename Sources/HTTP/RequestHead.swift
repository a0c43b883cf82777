import URISyntax

/// The framing of a request's content (RFC 9112 section 6.3).
package enum BodyFraming: Sendable, Hashable {
    /// No content.
    case none
    /// Exactly this many bytes, 0 or more.
    case length(Int64)
    /// Chunked transfer coding; see `ChunkedDecoder`.
    case chunked
}

/// The request line and fields of a request (RFC 9112 section 3).
package struct RequestHead: Sendable, Equatable {
    package var method: HTTPMethod
    /// The request target as it was sent: origin-form, absolute-form, `*` or an authority.
    ///
    /// Visible ASCII; bytes above 0x7F that a client sent raw are percent-encoded.
    package var target: String
    package var version: HTTPVersion
    package var fields: Fields

    package init(
        method: HTTPMethod, target: String, version: HTTPVersion = .http11,
        fields: Fields = Fields()
    ) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
    }

    /// The host and optional port of the request: from a target in absolute-form, otherwise from
    /// `Host` (RFC 9112 section 3.2.2).
    ///
    /// Nil if both lack one.
    package var host: String? {
        if target.utf8.first != 0x2F, let authority = RequestTarget(target).authority {
            return authority
        }
        return fields.first(.host)
    }

    /// True if the connection stays open after the response (RFC 9112 section 9.3).
    package var keepAlive: Bool {
        guard fields.contains(.connection) else { return version >= .http11 }
        if fields.hasConnectionOption("close") { return false }
        return version >= .http11 || fields.hasConnectionOption("keep-alive")
    }

    /// The framing of the content; `.none` if the fields contradict each other, which never occurs
    /// in heads from `RequestParser`.
    package var bodyFraming: BodyFraming {
        (try? fields.requestFraming(version: version)) ?? .none
    }

    /// True if the client waits for `100 Continue` before it sends the content (RFC 9110 section
    /// 10.1.1); always false in HTTP/1.0.
    package var expectsContinue: Bool {
        version >= .http11
            && fields.listMembers(.expect).contains {
                ASCII.equalIgnoringCase($0, "100-continue")
            }
    }

    /// The raw path of the target; "/" if an absolute-form has none, the target itself in
    /// asterisk-form and authority-form.
    package var path: String { RequestTarget(target).path }

    /// The raw text after the first `?` of the target; nil without one.
    package var query: String? { RequestTarget(target).query }

    /// True if the bytes occur anywhere in the target; a cheap check before parsing all items of
    /// the query.
    package func targetContains(_ wanted: [UInt8]) -> Bool {
        let bytes = target.utf8.span
        guard let first = wanted.first, bytes.count >= wanted.count else { return wanted.isEmpty }
        let wanted = wanted.span
        var start = 0
        while start <= bytes.count - wanted.count {
            if start &+ 8 <= bytes.count {
                let firsts = ASCII.places(of: first, in: EightBytes.load(bytes, at: start))
                if firsts == 0 {
                    start &+= 8
                    continue
                }
                start &+= firsts.trailingZeroBitCount / 8
                guard start <= bytes.count - wanted.count else { return false }
            }
            var matched = 0
            while matched < wanted.count, bytes[start + matched] == wanted[matched] { matched += 1 }
            if matched == wanted.count { return true }
            start += 1
        }
        return false
    }

    /// The query's items in order; empty without a query.
    package var queryItems: [QueryItem] { QueryItem.items(of: query ?? "") }
}

import URISyntax

/// A field name with its lower-case bytes, so that looking it up allocates nothing.
package struct FieldName: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The spelling used when the name is written.
    package let spelling: String
    /// The lower-case bytes, by which names are compared.
    let lowercased: [UInt8]
    /// The start of a line of this field: the name, a colon and a space.
    let lineStart: [UInt8]

    /// Creates a name from any spelling; not validated as a token.
    package init(_ spelling: String) {
        self.spelling = spelling
        lowercased = spelling.utf8.map(ASCII.lowercased)
        lineStart = Array(spelling.utf8) + [ASCII.colon, ASCII.space]
    }

    package init(stringLiteral value: String) {
        self.init(value)
    }

    package static func == (left: FieldName, right: FieldName) -> Bool {
        left.lowercased == right.lowercased
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(lowercased)
    }
}

extension FieldName: CustomStringConvertible {
    package var description: String { spelling }
}

extension FieldName {
    package static let accept: FieldName = "Accept"
    package static let acceptEncoding: FieldName = "Accept-Encoding"
    package static let acceptRanges: FieldName = "Accept-Ranges"
    package static let accessControlAllowHeaders: FieldName = "Access-Control-Allow-Headers"
    package static let accessControlAllowMethods: FieldName = "Access-Control-Allow-Methods"
    package static let accessControlAllowOrigin: FieldName = "Access-Control-Allow-Origin"
    package static let accessControlAllowPrivateNetwork: FieldName =
        "Access-Control-Allow-Private-Network"
    package static let accessControlExposeHeaders: FieldName = "Access-Control-Expose-Headers"
    package static let accessControlMaxAge: FieldName = "Access-Control-Max-Age"
    package static let accessControlRequestHeaders: FieldName = "Access-Control-Request-Headers"
    package static let accessControlRequestPrivateNetwork: FieldName =
        "Access-Control-Request-Private-Network"
    package static let age: FieldName = "Age"
    package static let allow: FieldName = "Allow"
    package static let altSvc: FieldName = "Alt-Svc"
    package static let authorization: FieldName = "Authorization"
    package static let cacheControl: FieldName = "Cache-Control"
    package static let cacheStatus: FieldName = "Cache-Status"
    package static let cdnCacheControl: FieldName = "CDN-Cache-Control"
    package static let cdnLoop: FieldName = "CDN-Loop"
    package static let connection: FieldName = "Connection"
    package static let contentEncoding: FieldName = "Content-Encoding"
    package static let contentLanguage: FieldName = "Content-Language"
    package static let contentLength: FieldName = "Content-Length"
    package static let contentLocation: FieldName = "Content-Location"
    package static let contentRange: FieldName = "Content-Range"
    package static let contentType: FieldName = "Content-Type"
    package static let cookie: FieldName = "Cookie"
    package static let date: FieldName = "Date"
    package static let etag: FieldName = "ETag"
    package static let expect: FieldName = "Expect"
    package static let expires: FieldName = "Expires"
    package static let host: FieldName = "Host"
    package static let ifMatch: FieldName = "If-Match"
    package static let ifModifiedSince: FieldName = "If-Modified-Since"
    package static let ifNoneMatch: FieldName = "If-None-Match"
    package static let ifRange: FieldName = "If-Range"
    package static let ifUnmodifiedSince: FieldName = "If-Unmodified-Since"
    package static let keepAlive: FieldName = "Keep-Alive"
    package static let lastModified: FieldName = "Last-Modified"
    package static let location: FieldName = "Location"
    package static let origin: FieldName = "Origin"
    package static let pragma: FieldName = "Pragma"
    package static let proxyAuthorization: FieldName = "Proxy-Authorization"
    package static let range: FieldName = "Range"
    package static let retryAfter: FieldName = "Retry-After"
    package static let setCookie: FieldName = "Set-Cookie"
    package static let strictTransportSecurity: FieldName = "Strict-Transport-Security"
    package static let te: FieldName = "TE"
    package static let transferEncoding: FieldName = "Transfer-Encoding"
    package static let userAgent: FieldName = "User-Agent"
    package static let vary: FieldName = "Vary"
    package static let via: FieldName = "Via"
    package static let wwwAuthenticate: FieldName = "WWW-Authenticate"
    package static let xForwardedHost: FieldName = "X-Forwarded-Host"
    package static let xForwardedPrefix: FieldName = "X-Forwarded-Prefix"
    package static let xForwardedProto: FieldName = "X-Forwarded-Proto"
}

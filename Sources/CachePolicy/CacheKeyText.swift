/// The text whose digest names a stored response.
package import URISyntax

/// Cache keys (RFC 9111 section 2): the normalised URL, and the session where it may not be shared.
package enum CacheKeyText {
    /// The key of a URL.
    ///
    /// - Parameters:
    ///   - url: the URL as it is asked for, before redirects.
    ///   - session: text that keeps one session's responses apart from all others; nil to share.
    /// - Returns: the text, which is also what objects are purged by.
    package static func text(for url: AbsoluteURL, session: String? = nil) -> String {
        text(url.normalisedForKey, session: session)
    }

    /// The key of a URL that was normalised already.
    package static func text(_ normalised: String, session: String?) -> String {
        // A blank cannot stand in a URL, so the parts cannot run into each other.
        guard let session else { return normalised }
        return "\(normalised) \(session)"
    }

    /// The normalised URL of a key, without what keeps it apart.
    package static func url(of text: String) -> Substring { text.prefix { $0 != " " } }
}

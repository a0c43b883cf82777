package import HLS
import Numbers

/// The key of a stored response (RFC 9111 section 2): the normalised URL, and everything that
/// distinguishes the responses of one URL.
///
/// The parts have one encoding, `text`; its SHA-256 digest is the name of an object in the store,
/// and the index contains the text itself. Cache folders depend on it: the `text` of a key must not
/// change between versions.
package struct CacheKey: Hashable, Sendable {
    /// The users who may get the response.
    package enum Audience: Hashable, Sendable {
        case everyone
        /// Users who send the same credentials; the text is that of their session's ID.
        case credentials(String)
        /// One session only, whatever it sends; the text is that of its ID.
        case session(String)
        /// Clients of a mount, under the rules of this kind of cache.
        case mount(CacheKind)
        /// Caches that we are the parent of, by the rules of this kind of cache: they get playlists too
        /// as they came.
        case children(CacheKind)
    }

    /// The requested URL, before redirects, normalised by the key rules; without blanks.
    package let url: String
    package var audience: Audience
    /// The digest of the user information that a mount's requests are made with; nil without any.
    package var user: String?
    /// The value of `_HLS_skip` of a delta update; nil for everything else (8216bis 6.2.5.1).
    package var skip: String?
    package var epoch: Epoch
    /// The digest of the request fields that `Vary` names; nil without any (RFC 9111 4.1).
    package var variant: String?
    /// A counter for bodies fetched in addition to a stored one that accepts no more bytes; nil for
    /// the body that may be stored.
    package var detour: Int?

    /// - Parameters:
    ///   - url: the normalised URL.
    ///   - audience: the users who may get the response.
    ///   - skip: the value of `_HLS_skip`.
    ///   - epoch: the epoch of the name.
    package init(
        url: String, audience: Audience = .everyone, skip: String? = nil, epoch: Epoch = .first
    ) {
        self.url = url
        self.audience = audience
        self.skip = skip
        self.epoch = epoch
    }

    /// The key of the URL in the first epoch.
    package var name: CacheKey { changing { $0.epoch = .first } }

    /// The key of the full playlist of a delta update.
    package var list: CacheKey { changing { $0.skip = nil } }

    /// The common key of all variants and detours.
    package var primary: CacheKey {
        changing {
            $0.variant = nil
            $0.detour = nil
        }
    }

    /// Returns the key that the same response has under another normalised URL.
    package func at(_ url: String) -> CacheKey {
        var key = CacheKey(url: url, audience: audience, skip: skip, epoch: epoch)
        key.user = user
        key.variant = variant
        key.detour = detour
        return key
    }

    /// Returns a copy with changed parts.
    package func changing(_ change: (inout CacheKey) -> Void) -> CacheKey {
        var copy = self
        change(&copy)
        return copy
    }
}

extension CacheKey {
    /// The encoding; URLs contain no blanks, so that blanks separate the parts.
    package var text: String {
        var text = url
        switch audience {
        case .everyone: break
        case .credentials(let id): text += " \(id)"
        case .session(let id): text += " viewer \(id)"
        case .mount(let kind): text += " \(kind.rawValue)"
        case .children(let kind): text += " children=\(kind.rawValue)"
        }
        if let user { text += " user=\(user)" }
        if let skip { text += " skip=\(skip)" }
        if epoch != .first { text += " epoch=\(epoch.number)" }
        if let variant { text += " vary=\(variant)" }
        if let detour { text += " unstored \(detour)" }
        return text
    }

    /// Parses a `text`.
    ///
    /// Unknown words are read as credentials: such a key is never looked up again, and its object
    /// remains distinct from all others.
    package init(text: String) {
        var words = text.split(separator: " ", omittingEmptySubsequences: false)[...]
        self.init(url: String(words.popFirst() ?? ""))
        while let word = words.popFirst() {
            if word == "viewer", let id = words.popFirst() {
                audience = .session(String(id))
            } else if word == "unstored", let number = words.popFirst() {
                detour = ExternalNumber.integer(number, in: 0...Int.max)
            } else if let value = Self.value(of: word, "user=") {
                user = value
            } else if let value = Self.value(of: word, "skip=") {
                skip = value
            } else if let value = Self.value(of: word, "epoch="),
                let number = ExternalNumber.integer(value, in: 1...UInt32.max)
            {
                epoch = Epoch(number: number)
            } else if let value = Self.value(of: word, "vary=") {
                variant = value
            } else if let value = Self.value(of: word, "children="),
                let kind = CacheKind(rawValue: value)
            {
                audience = .children(kind)
            } else if let kind = CacheKind(rawValue: String(word)) {
                audience = .mount(kind)
            } else {
                audience = .credentials(String(word))
            }
        }
    }

    /// Returns the URL of a key's text; cheaper than parsing the whole text.
    package static func url(ofText text: String) -> String { String(text.prefix { $0 != " " }) }

    private static func value(of word: Substring, _ name: String) -> String? {
        word.hasPrefix(name) ? String(word.dropFirst(name.count)) : nil
    }
}

package import HLS
import Numbers

/// What a stored response is found by (RFC 9111 section 2): the normalised URL, and whatever keeps the
/// responses of one URL apart.
///
/// The parts have one encoding, `text`; its SHA-256 digest is the name of an object in the store, and
/// the index holds the text itself. Cache folders depend on it: what `text` gives for a key must not
/// change between versions.
package struct CacheKey: Hashable, Sendable {
    /// Whose response it is.
    package enum Audience: Hashable, Sendable {
        case everyone
        /// Those who send the same credentials; the text is that of their session's ID.
        case credentials(String)
        /// One session alone, whatever it sends; the text is that of its ID.
        case session(String)
        /// Clients of a mount, by the rules of this kind of cache.
        case mount(CacheKind)
    }

    /// The URL as it is asked for, before redirects, normalised by the key rules; without blanks.
    package let url: String
    package var audience: Audience
    /// The value of `_HLS_skip` that a delta update answers; nil for everything else (8216bis 6.2.5.1).
    package var skip: String?
    package var epoch: Epoch
    /// The digest of the request fields that `Vary` names; nil where nothing selects (RFC 9111 4.1).
    package var variant: String?
    /// Counts the bodies that were fetched beside a stored one that takes no more bytes; nil for that
    /// which may be stored.
    package var detour: Int?

    /// - Parameters:
    ///   - url: the normalised URL.
    ///   - audience: whose response it is.
    ///   - skip: the value of `_HLS_skip`.
    ///   - epoch: of the name.
    package init(
        url: String, audience: Audience = .everyone, skip: String? = nil, epoch: Epoch = .first
    ) {
        self.url = url
        self.audience = audience
        self.skip = skip
        self.epoch = epoch
    }

    /// The key of the URL's name, whatever it stands for.
    package var name: CacheKey { changing { $0.epoch = .first } }

    /// The key of the list that a delta update is a form of.
    package var list: CacheKey { changing { $0.skip = nil } }

    /// The key that all variants and detours belong to.
    package var primary: CacheKey {
        changing {
            $0.variant = nil
            $0.detour = nil
        }
    }

    /// A copy with other parts.
    package func changing(_ change: (inout CacheKey) -> Void) -> CacheKey {
        var copy = self
        change(&copy)
        return copy
    }
}

extension CacheKey {
    /// The encoding; a blank cannot stand in a URL, so that the parts cannot run into each other.
    package var text: String {
        var text = url
        switch audience {
        case .everyone: break
        case .credentials(let id): text += " \(id)"
        case .session(let id): text += " viewer \(id)"
        case .mount(let kind): text += " \(kind.rawValue)"
        }
        if let skip { text += " skip=\(skip)" }
        if epoch != .first { text += " epoch=\(epoch.number)" }
        if let variant { text += " vary=\(variant)" }
        if let detour { text += " unstored \(detour)" }
        return text
    }

    /// Reads what `text` gave.
    ///
    /// Words that no version has written are taken for credentials: such a key is not found again, and
    /// its object is told apart from all others.
    package init(text: String) {
        var words = text.split(separator: " ", omittingEmptySubsequences: false)[...]
        self.init(url: String(words.popFirst() ?? ""))
        while let word = words.popFirst() {
            if word == "viewer", let id = words.popFirst() {
                audience = .session(String(id))
            } else if word == "unstored", let number = words.popFirst() {
                detour = OutsideNumber.integer(number, in: 0...Int.max)
            } else if let value = Self.value(of: word, "skip=") {
                skip = value
            } else if let value = Self.value(of: word, "epoch="),
                let number = OutsideNumber.integer(value, in: 1...UInt32.max)
            {
                epoch = Epoch(number: number)
            } else if let value = Self.value(of: word, "vary=") {
                variant = value
            } else if let kind = CacheKind(rawValue: String(word)) {
                audience = .mount(kind)
            } else {
                audience = .credentials(String(word))
            }
        }
    }

    /// The URL of a key's text; cheaper than reading all of it.
    package static func url(ofText text: String) -> String { String(text.prefix { $0 != " " }) }

    private static func value(of word: Substring, _ name: String) -> String? {
        word.hasPrefix(name) ? String(word.dropFirst(name.count)) : nil
    }
}

// The configuration of origins: policy and key rules by host pattern.
package import URISyntax

/// How far URLs are normalised for keys where the configuration has no rules.
package enum KeyMode: String, CaseIterable, Sendable {
    /// URLs as they are; rules written in the configuration still apply.
    case off
    /// Spelling, and signatures of known kinds.
    case standard
    /// Also rules learned for an origin.
    case auto
}

/// The settings of the origins that match one pattern.
package struct OriginSettings: Hashable, Sendable {
    /// Matches a host, or host and port; lower case.
    package var pattern: KeyGlob
    /// Nil keeps the policy of the context: playback or mount.
    package var policy: Policy?
    /// Nil keeps the mode of the context.
    package var keys: KeyMode?
    package var rules: [KeyRule] = []
    /// The extent of look-ahead, in the words of the configuration; nil if unspecified.
    package var lookAhead: String?
    /// The number of segments kept from the start of a title; nil if unspecified.
    package var keepHead: Int?
    /// The most concurrent transfers to a host; nil if unspecified.
    package var limit: Int?

    package init(pattern: String) { self.pattern = KeyGlob(pattern.lowercased()) }
}

/// The settings of all origins; each is taken from the most specific pattern that specifies it.
///
/// Key rules accumulate: the rules of all matching patterns apply, those of the most specific
/// pattern last.
package struct KeyOrigins: Hashable, Sendable {
    private let origins: [OriginSettings]

    /// All settings, the most specific pattern first.
    package var all: [OriginSettings] { origins }

    /// Sorts patterns without wildcards first, then longer ones before shorter ones.
    package init(_ origins: [OriginSettings] = []) {
        self.origins = origins.enumerated().sorted { left, right in
            let a = left.element.pattern, b = right.element.pattern
            if a.isWild != b.isWild { return !a.isWild }
            let lengths = (a.description.utf8.count, b.description.utf8.count)
            return lengths.0 != lengths.1 ? lengths.0 > lengths.1 : left.offset < right.offset
        }.map(\.element)
    }

    /// True if nothing is configured for any origin.
    package var isEmpty: Bool { origins.isEmpty }

    /// Returns the mode of an origin written as `scheme://host[:port]`; nil if unspecified.
    package func mode(of origin: String) -> KeyMode? {
        (try? AbsoluteURL(origin)).flatMap { settings(of: $0.origin).keys }
    }

    /// Returns the look-ahead settings of one origin.
    package func ahead(of origin: Origin) -> (lookAhead: String?, keepHead: Int?) {
        let fitting = self.fitting(origin)
        return (
            fitting.lazy.compactMap(\.lookAhead).first, fitting.lazy.compactMap(\.keepHead).first
        )
    }

    /// Returns the most concurrent transfers to the host of an origin; nil if unspecified.
    package func limit(of origin: Origin) -> Int? {
        fitting(origin).lazy.compactMap(\.limit).first
    }

    private func fitting(_ origin: Origin) -> [OriginSettings] {
        let names = OriginNames(origin)
        return origins.filter { names.match($0.pattern) }
    }

    /// Returns the policy, mode and rules of one origin.
    package func settings(of origin: Origin) -> (
        policy: (Policy, pattern: String)?, keys: KeyMode?, rules: [KeyRule]
    ) {
        let fitting = self.fitting(origin)
        let policy = fitting.lazy.compactMap { one in
            one.policy.map { ($0, pattern: one.pattern.description) }
        }.first
        return (
            policy, fitting.lazy.compactMap(\.keys).first,
            fitting.reversed().flatMap(\.rules)
        )
    }
}

// What the configuration says of origins: policy and key rules by host pattern.
package import URISyntax

/// How far URLs are normalised for keys where the configuration leaves it open.
package enum KeyMode: String, CaseIterable, Sendable {
    /// URLs as they are; rules that the configuration spells out still hold.
    case off
    /// Spelling, and signatures of known kinds.
    case standard
    /// Also what was learnt of an origin.
    case auto
}

/// The settings of the origins that fit one pattern.
package struct OriginSettings: Hashable, Sendable {
    /// Fits a host, or host and port; lower case.
    package var pattern: KeyGlob
    /// Nil leaves the policy of the place: playback or mount.
    package var policy: Policy?
    /// Nil leaves the mode of the place.
    package var keys: KeyMode?
    package var rules: [KeyRule] = []
    /// How far to run ahead of players, in the words of the configuration; nil leaves it open.
    package var lookAhead: String?
    /// Segments that are kept from the start of a title; nil leaves it open.
    package var keepHead: Int?

    package init(pattern: String) { self.pattern = KeyGlob(pattern.lowercased()) }
}

/// All of them; the most exact pattern that says something decides it.
///
/// Key rules add up: those of all patterns that fit are applied, the most exact pattern's last.
package struct KeyOrigins: Hashable, Sendable {
    private let origins: [OriginSettings]

    /// All settings, the most exact pattern first.
    package var all: [OriginSettings] { origins }

    /// Patterns without wildcards come first, then longer ones before shorter ones.
    package init(_ origins: [OriginSettings] = []) {
        self.origins = origins.enumerated().sorted { left, right in
            let a = left.element.pattern, b = right.element.pattern
            if a.isWild != b.isWild { return !a.isWild }
            let lengths = (a.description.utf8.count, b.description.utf8.count)
            return lengths.0 != lengths.1 ? lengths.0 > lengths.1 : left.offset < right.offset
        }.map(\.element)
    }

    /// Whether nothing is configured for any origin.
    package var isEmpty: Bool { origins.isEmpty }

    /// The mode of an origin written as `scheme://host[:port]`; nil where none is set.
    package func mode(of origin: String) -> KeyMode? {
        (try? AbsoluteURL(origin)).flatMap { settings(of: $0.origin).keys }
    }

    /// What holds ahead of players of one origin.
    package func ahead(of origin: Origin) -> (lookAhead: String?, keepHead: Int?) {
        let fitting = self.fitting(origin)
        return (
            fitting.lazy.compactMap(\.lookAhead).first, fitting.lazy.compactMap(\.keepHead).first
        )
    }

    private func fitting(_ origin: Origin) -> [OriginSettings] {
        let names = [
            Array(origin.host.utf8)[...], Array("\(origin.host):\(origin.port)".utf8)[...],
        ]
        return origins.filter { one in names.contains { one.pattern.matches($0) } }
    }

    /// What holds for one origin.
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

// Makes the key of a URL by rules, and reports which rules changed it.
import Numbers
package import URISyntax

/// The source of a rule.
package enum KeyRuleSource: String, Sendable {
    /// Built in.
    case shipped
    /// From the configuration.
    case configured
    /// Derived from evidence.
    case learned
}

/// A rule in force for an origin.
package struct KeyRuleInForce: Hashable, Sendable {
    package let rule: KeyRule
    package let source: KeyRuleSource

    package init(_ rule: KeyRule, _ source: KeyRuleSource) {
        self.rule = rule
        self.source = source
    }
}

/// One change of a key by a rule.
package struct KeyStep: Hashable, Sendable {
    package let rule: String
    package let source: KeyRuleSource
    /// The names that it removed or wrote; never a value that may be secret.
    package let effect: String
}

/// The key of a URL, and the steps that made it.
package struct KeyedURL: Sendable {
    /// The normalised URL.
    package let text: String
    package let steps: [KeyStep]
    /// True if URLs that differ in more than spelling may have this key.
    package let isMerged: Bool
}

/// The parts of a URL while rules are applied.
package struct KeyMaker {
    /// A parameter as written in the URL.
    struct Item: Equatable {
        let raw: ArraySlice<UInt8>
        let nameEnd: Int

        init(_ raw: ArraySlice<UInt8>) {
            self.raw = raw
            nameEnd = raw.firstIndex(of: 0x3D) ?? raw.endIndex
        }

        var name: ArraySlice<UInt8> { raw[..<nameEnd] }
        /// Empty without `=`.
        var value: ArraySlice<UInt8> { nameEnd < raw.endIndex ? raw[(nameEnd + 1)...] : [] }
        var nameText: String { String(decoding: name, as: UTF8.self) }
    }

    private var origin: String
    private let authority: String
    private let scheme: Scheme
    private var path: ArraySlice<UInt8>
    private var items: [Item]
    private var steps: [KeyStep] = []
    private let recordsSteps: Bool
    private(set) var isMerged = false

    init(_ url: AbsoluteURL, _ rules: [KeyRuleInForce], recordsSteps: Bool) {
        self.recordsSteps = recordsSteps
        origin = url.origin.description
        authority = url.origin.authority
        scheme = url.scheme
        path = url.pathRange.isEmpty ? [0x2F] : url.bytes[url.pathRange]
        items = Self.items(of: url)
        remove("cmcd", .shipped, merges: false) { $0.name.elementsEqual(Self.telemetry) }
        for rule in rules { apply(rule.rule, rule.source) }
    }

    private static let telemetry = Array("CMCD".utf8)

    /// Returns the parameters of a URL, in their order.
    static func items(of url: AbsoluteURL) -> [Item] {
        guard let query = url.queryRange else { return [] }
        let bytes = url.bytes
        var items: [Item] = []
        items.reserveCapacity(4)
        var start = query.lowerBound
        for index in query where bytes[index] == 0x26 {
            items.append(Item(bytes[start..<index]))
            start = index + 1
        }
        // The item after the last separator.
        items.append(Item(bytes[start..<query.upperBound]))
        return items
    }

    /// Returns the key of a URL under rules, applied in their order, and the steps that made it.
    ///
    /// Without rules it is `AbsoluteURL.normalisedForKey`. Telemetry of players (CTA-5004, `CMCD`)
    /// is never part of a key.
    package static func key(of url: AbsoluteURL, rules: [KeyRuleInForce]) -> KeyedURL {
        guard rulesConcern(url, rules) else {
            return KeyedURL(text: url.normalisedForKey, steps: [], isMerged: false)
        }
        let maker = KeyMaker(url, rules, recordsSteps: true)
        return KeyedURL(text: maker.text, steps: maker.steps, isMerged: maker.isMerged)
    }

    /// Returns the key of a URL as `key(of:rules:)` does, without the steps.
    package static func text(of url: AbsoluteURL, rules: [KeyRuleInForce]) -> String {
        guard rulesConcern(url, rules) else { return url.normalisedForKey }
        return KeyMaker(url, rules, recordsSteps: false).text
    }

    /// True if URLs that differ in more than spelling may have the same key as this one.
    package static func isMerged(_ url: AbsoluteURL, rules: [KeyRuleInForce]) -> Bool {
        rulesConcern(url, rules) && KeyMaker(url, rules, recordsSteps: false).isMerged
    }

    var text: String {
        var bytes = Array(origin.utf8)
        bytes.append(contentsOf: path)
        // A query from which rules removed all items disappears; one that was empty stays.
        if !items.isEmpty {
            for (index, item) in items.enumerated() {
                bytes.append(index == 0 ? 0x3F : 0x26)
                bytes.append(contentsOf: item.raw)
            }
        }
        return PercentCoding.text(bytes[...])
    }

    private mutating func note(
        _ rule: @autoclosure () -> String, _ source: KeyRuleSource,
        _ effect: @autoclosure () -> String, merges: Bool
    ) {
        if merges { isMerged = true }
        guard recordsSteps else { return }
        steps.append(KeyStep(rule: rule(), source: source, effect: effect()))
    }

    private mutating func apply(_ rule: KeyRule, _ source: KeyRuleSource) {
        switch rule {
        case .sort:
            if items.count < 2 { return }
            let sorted = items.enumerated().sorted { left, right in
                if left.element.name.elementsEqual(right.element.name) {
                    return left.offset < right.offset
                }
                return left.element.name.lexicographicallyPrecedes(right.element.name)
            }.map(\.element)
            guard sorted != items else { return }
            items = sorted
            note("sort", source, "parameters by name", merges: false)
        case .unique:
            // A few are compared faster than they are hashed; a query may have thousands.
            let areFew = items.count <= 16
            var few: [ArraySlice<UInt8>] = []
            var many: Set<ArraySlice<UInt8>> = []
            remove("unique", source, merges: false) { item in
                guard areFew else { return !many.insert(item.raw).inserted }
                if few.contains(item.raw) { return true }
                few.append(item.raw)
                return false
            }
        case .drop(let names):
            remove("drop", source, merges: true) { item in
                names.contains { $0.matches(item.name) }
            }
        case .keep(let names):
            remove("keep", source, merges: true) { item in
                !names.contains { $0.matches(item.name) }
            }
        case .tier(let name, let limits): tier(name, limits, source)
        case .fold(let name, let into, let values): fold(name, into, values, source)
        case .host(let name):
            guard name != authority else { return }
            origin = scheme.name + "://" + name
            let authority = authority
            note("host", source, "\(authority) as \(name)", merges: true)
        case .segment(let patterns):
            dropSegments("segment", source) { part in
                patterns.first { $0.matches(part) }?.description
            }
        case .signatures: dropSignatures(source)
        }
    }

    private mutating func remove(
        _ rule: @autoclosure () -> String, _ source: KeyRuleSource, merges: Bool,
        where isOut: (Item) -> Bool
    ) {
        var out: [Item] = []
        items.removeAll { item in
            guard isOut(item) else { return false }
            out.append(item)
            return true
        }
        guard !out.isEmpty else { return }
        note(rule(), source, out.map(\.nameText).joined(separator: " "), merges: merges)
    }

    private mutating func rewrite(
        _ rule: String, _ source: KeyRuleSource, _ name: KeyGlob,
        _ change: (ArraySlice<UInt8>) -> String?
    ) {
        for (index, item) in items.enumerated() where name.matches(item.name) {
            guard let value = change(item.value), !item.value.elementsEqual(value.utf8) else {
                continue
            }
            items[index] = Item((Array(item.name) + [0x3D] + Array(value.utf8))[...])
            note(rule, source, "\(item.nameText) as \(value)", merges: true)
        }
    }

    private mutating func tier(_ name: KeyGlob, _ limits: [UInt64], _ source: KeyRuleSource) {
        rewrite("tier", source, name) { value in
            let text = String(decoding: value, as: UTF8.self)
            guard let number = ExternalNumber.integer(text, in: 0...UInt64.max) else { return nil }
            return (limits.first { $0 >= number } ?? limits.last).map(String.init)
        }
    }

    private mutating func fold(
        _ name: KeyGlob, _ into: String, _ values: [KeyGlob], _ source: KeyRuleSource
    ) {
        rewrite("fold", source, name) { value in
            values.contains { $0.matches(value) } ? into : nil
        }
    }

    private mutating func dropSegments(
        _ rule: String, _ source: KeyRuleSource, name: (ArraySlice<UInt8>) -> String?
    ) {
        var out: [String] = []
        let kept = path.split(separator: 0x2F, omittingEmptySubsequences: false).filter { part in
            guard !part.isEmpty, let name = name(part) else { return true }
            out.append(name)
            return false
        }
        guard !out.isEmpty else { return }
        path = Array(kept.joined(separator: [0x2F]))[...]
        if path.first != 0x2F { path = [0x2F] + path }
        note(rule, source, "path " + out.joined(separator: " "), merges: true)
    }

    private mutating func dropSignatures(_ source: KeyRuleSource) {
        if path.contains(0x3D) {
            dropSegments("signatures", source) { part in
                KeySignatures.pathTokens.first { $0.pattern.matches(part) }?.name
            }
        }
        guard items.contains(where: { $0.nameEnd < $0.raw.endIndex }) else { return }
        let lengths = items.map { $0.nameEnd - $0.raw.startIndex }
        for kind in KeySignatures.kinds where kind.mayHaveSigned(lengths) && isSigned(kind) {
            remove("signatures (\(kind.name))", source, merges: true) { item in
                kind.needs.contains { $0.name.matches(item.name) }
                    || kind.oneOf.contains { $0.matches(item.name) }
                    || kind.also.contains { $0.matches(item.name) }
            }
        }
    }

    /// True if all parameters of a signature of this kind are present exactly once: of two `token`s
    /// one may be the origin's own.
    private func isSigned(_ kind: KeySignatures.Kind) -> Bool {
        for need in kind.needs {
            var found: Item?
            for item in items where need.name.matches(item.name) {
                guard found == nil else { return false }
                found = item
            }
            guard let found, need.shape.fits(found.value) else { return false }
        }
        guard !kind.oneOf.isEmpty else { return true }
        return kind.oneOf.contains { name in items.contains { name.matches($0.name) } }
    }
}

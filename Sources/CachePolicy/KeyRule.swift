import Numbers

/// The rule language of cache keys: one step each, written as a word and its arguments.
///
/// | rule | effect on the key |
/// |---|---|
/// | `sort` | orders parameters by name; those of one name keep their order |
/// | `unique` | keeps the first of parameters that are equal in name and value |
/// | `drop NAME...` | removes the named parameters |
/// | `keep NAME...` | removes all other parameters |
/// | `tier NAME N...` | raises a number to the next one listed, or lowers it to the last |
/// | `fold NAME TEXT VALUE...` | replaces every matching value by TEXT |
/// | `host NAME[:PORT]` | replaces the origin's host, so that mirrors share keys |
/// | `segment PATTERN...` | removes matching path segments |
/// | `signatures` | removes signatures of known kinds from query and path (`KeySignatures`) |
///
/// Names, values and patterns may contain `*` and `?`. They are compared with the URL as written.
package enum KeyRule: Hashable, Sendable {
    case sort
    case unique
    case drop([KeyGlob])
    case keep([KeyGlob])
    case tier(name: KeyGlob, limits: [UInt64])
    case fold(name: KeyGlob, into: String, values: [KeyGlob])
    case host(String)
    case segment([KeyGlob])
    case signatures

    /// The reason why a text is not a rule.
    package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Parses a rule.
    package init(_ text: String) throws(Fault) {
        let words = text.split(separator: " ").map(String.init)
        guard let name = words.first else { throw Fault(description: "a key rule is empty") }
        let rest = Array(words.dropFirst())
        func need(_ count: Int, _ form: String) throws(Fault) {
            guard rest.count >= count else {
                throw Fault(description: "the key rule '\(text)' is written '\(form)'")
            }
        }
        switch name {
        case "sort", "unique", "signatures":
            guard rest.isEmpty else {
                throw Fault(description: "the key rule '\(name)' takes no arguments")
            }
            self = name == "sort" ? .sort : name == "unique" ? .unique : .signatures
        case "drop":
            try need(1, "drop NAME...")
            self = .drop(rest.map { KeyGlob($0) })
        case "keep":
            try need(1, "keep NAME...")
            self = .keep(rest.map { KeyGlob($0) })
        case "tier":
            try need(2, "tier NAME NUMBER...")
            let limits = rest.dropFirst().compactMap {
                ExternalNumber.integer($0, in: 0...UInt64.max)
            }
            guard limits.count == rest.count - 1 else {
                throw Fault(description: "the key rule '\(text)' is written 'tier NAME NUMBER...'")
            }
            self = .tier(name: KeyGlob(rest[0]), limits: limits.sorted())
        case "fold":
            try need(3, "fold NAME TEXT VALUE...")
            self = .fold(
                name: KeyGlob(rest[0]), into: rest[1], values: rest[2...].map { KeyGlob($0) })
        case "host":
            try need(1, "host NAME[:PORT]")
            guard rest.count == 1, Self.isAuthority(rest[0]) else {
                throw Fault(description: "the key rule '\(text)' is written 'host NAME[:PORT]'")
            }
            self = .host(rest[0].lowercased())
        case "segment":
            try need(1, "segment PATTERN...")
            self = .segment(rest.map { KeyGlob($0) })
        default:
            throw Fault(
                description: "'\(name)' is no key rule: sort, unique, drop, keep, tier, fold, "
                    + "host, segment or signatures")
        }
    }

    private static func isAuthority(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                $0 > 0x20 && $0 < 0x7F && ![0x2F, 0x3F, 0x23, 0x40].contains($0)
            }
    }

    /// True if the rule may give one key to URLs that differ in more than spelling.
    package var merges: Bool {
        switch self {
        case .sort, .unique: false
        default: true
        }
    }
}

extension KeyRule: CustomStringConvertible {
    /// The rule as written.
    package var description: String {
        func list(_ globs: [KeyGlob]) -> String {
            globs.map(\.description).joined(separator: " ")
        }
        switch self {
        case .sort: return "sort"
        case .unique: return "unique"
        case .signatures: return "signatures"
        case .drop(let names): return "drop \(list(names))"
        case .keep(let names): return "keep \(list(names))"
        case .tier(let name, let limits):
            return "tier \(name) \(limits.map(String.init).joined(separator: " "))"
        case .fold(let name, let into, let values): return "fold \(name) \(into) \(list(values))"
        case .host(let name): return "host \(name)"
        case .segment(let patterns): return "segment \(list(patterns))"
        }
    }
}

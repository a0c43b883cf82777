// The settings of origins: the object `origins` of the configuration file, and the corresponding
// flags.
import CachePolicy
import FoundationEssentials
import Lookahead
import Numbers

/// Reads the settings of origins into one table; collects every error.
struct OriginsReader {
    /// The options for single origins, by name.
    enum Option: String, CaseIterable {
        case policy = "origin-policy"
        case rule = "key-rule"
        case lookAhead = "origin-look-ahead"
        case keepHead = "origin-keep-head"
        case limit = "origin-limit"

        /// What follows the equals sign, as errors call it.
        fileprivate var word: String {
            switch self {
            case .policy: "POLICY"
            case .rule: "RULE"
            case .lookAhead: "MODE"
            case .keepHead: "SEGMENTS"
            case .limit: "N"
            }
        }
    }

    private var settings: [String: OriginSettings] = [:]
    private var order: [String] = []
    /// Hosts that may have private addresses.
    private(set) var privateHosts: [String] = []
    private(set) var faults: [String] = []

    /// All but those that set nothing but a limit, which no request has to look for.
    var origins: KeyOrigins {
        let all = order.compactMap { name -> OriginSettings? in
            guard var one = settings[name], one.limit != nil else { return settings[name] }
            one.limit = nil
            return one == OriginSettings(pattern: name) ? nil : one
        }
        return KeyOrigins(all)
    }

    /// Those that set a limit.
    var limits: KeyOrigins {
        KeyOrigins(order.compactMap { settings[$0] }.filter { $0.limit != nil })
    }

    private mutating func change(_ pattern: String, _ body: (inout OriginSettings) -> Void) {
        guard let name = KeyGlob(host: pattern)?.description else {
            faults.append(
                "an origin is a host, or host:port, with * and ? for any part, not '\(pattern)'")
            return
        }
        if settings[name] == nil { order.append(name) }
        body(&settings[name, default: OriginSettings(pattern: name)])
    }

    /// Reads the values of an option for single origins.
    ///
    /// - Parameters:
    ///   - option: the option, which decides what follows the equals sign.
    ///   - texts: its values, `HOST=...` each.
    mutating func read(_ option: Option, _ texts: [String]) {
        for text in texts {
            guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
                faults.append(
                    "\(option.rawValue) is written HOST=\(option.word), not '\(text)'")
                continue
            }
            let pattern = String(text[..<equals])
            let value = String(text[text.index(after: equals)...])
            switch option {
            case .policy: setPolicy(value, pattern)
            case .rule: addRule(value, pattern)
            case .lookAhead: setLookAhead(value, pattern)
            case .keepHead: setKeepHead(value, pattern)
            case .limit: setLimit(value, pattern)
            }
        }
    }

    private mutating func setLookAhead(_ value: String, _ pattern: String) {
        guard LookaheadMode(value) != nil else {
            return faults.append(
                "the look-ahead of the origin \(pattern) is off, auto or 1 to 600 seconds, not '\(value)'"
            )
        }
        change(pattern) { $0.lookAhead = value }
    }

    private mutating func setKeepHead(_ value: String, _ pattern: String) {
        guard let count = ExternalNumber.integer(value, in: 1...1_000_000) else {
            return faults.append(
                "the keep-head of the origin \(pattern) is a number of segments, 1...1000000, not '\(value)'"
            )
        }
        change(pattern) { $0.keepHead = count }
    }

    private mutating func setLimit(_ value: String, _ pattern: String) {
        guard let count = ExternalNumber.integer(value, in: 1...256) else {
            return faults.append(
                "the limit of the origin \(pattern) is a number of transfers, 1...256, not '\(value)'"
            )
        }
        change(pattern) { $0.limit = count }
    }

    private mutating func setPolicy(_ value: String, _ pattern: String) {
        guard let policy = Policy(rawValue: value) else {
            return faults.append(
                "the policy of the origin \(pattern) is media, rfc, offline or refresh, not '\(value)'"
            )
        }
        change(pattern) { $0.policy = policy }
    }

    private mutating func addRule(_ value: String, _ pattern: String) {
        do throws(KeyRule.Fault) {
            let rule = try KeyRule(value)
            change(pattern) { $0.rules.append(rule) }
        } catch {
            faults.append("the origin \(pattern): \(error)")
        }
    }

    /// Reads the object `origins` of a configuration file.
    mutating func read(_ file: OriginsFile) {
        for (pattern, members) in file.origins.sorted(by: { $0.key < $1.key }) {
            change(pattern) { _ in }
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                read(name, value, pattern)
            }
        }
    }

    private mutating func read(_ name: String, _ value: OriginsFile.Value, _ pattern: String) {
        switch (name, value) {
        case ("policy", .text(let text)): setPolicy(text, pattern)
        case ("keys", .text(let text)):
            guard let mode = KeyMode(rawValue: text) else {
                return faults.append(
                    "the keys of the origin \(pattern) are off, standard or auto, not '\(text)'")
            }
            change(pattern) { $0.keys = mode }
        case ("rules", .texts(let rules)):
            for rule in rules { addRule(rule, pattern) }
        case ("rules", .text(let rule)): addRule(rule, pattern)
        case ("look-ahead", .text(let text)): setLookAhead(text, pattern)
        case ("keep-head", .text(let text)): setKeepHead(text, pattern)
        case ("limit", .text(let text)): setLimit(text, pattern)
        case ("allow-private", .truth(let isAllowed)):
            guard isAllowed else { return }
            // The address is checked by the requested name, not by a pattern.
            guard let host = GivenHost.ascii(pattern, mayHavePort: true) else {
                return faults.append(
                    "allow-private needs the full name of a host, not the pattern '\(pattern)'")
            }
            privateHosts.append(host)
        default:
            faults.append(
                "the origin \(pattern) may set policy, keys, rules, look-ahead, keep-head, limit and allow-private, "
                    + "and each in its own kind of value; '\(name)' is wrong")
        }
    }
}

/// The part of a configuration file with the settings of origins.
struct OriginsFile: Decodable {
    enum Value: Decodable {
        case text(String)
        case texts([String])
        case truth(Bool)
        case other

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let text = try? container.decode(String.self) {
                self = .text(text)
            } else if let texts = try? container.decode([String].self) {
                self = .texts(texts)
            } else if let truth = try? container.decode(Bool.self) {
                self = .truth(truth)
            } else if let number = try? container.decode(Int.self) {
                self = .text(String(number))
            } else {
                self = .other
            }
        }
    }

    private enum Name: CodingKey { case origins }

    var origins: [String: [String: Value]] = [:]

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        guard container.contains(.origins) else { return }
        origins = try container.decode([String: [String: Value]].self, forKey: .origins)
    }
}

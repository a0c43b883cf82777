import ArgumentParser
import HTTP
import URISyntax

/// `sluice keys`: the key rules, the daemon's findings and the vetoes.
struct KeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Show the rules of cache keys, proposals and vetoes.",
        discussion: """
            A proposal is a parameter that never changed the bytes of an origin's responses. Apply it with \
            --key-rule 'HOST=drop NAME', or let --keys auto apply all of them. One counter-example, or --refuse, vetoes it.
            """)

    @Option(
        help: ArgumentHelp(
            "Discard what was learned about an origin, vetoes included.",
            valueName: "scheme://host[:port]"))
    var forget: String?

    @Option(
        help: ArgumentHelp(
            "With --origin: reject the proposal to drop this parameter.", valueName: "name"))
    var refuse: String?

    @Option(
        help: ArgumentHelp(
            "The origin of the parameter to refuse.", valueName: "scheme://host[:port]"))
    var origin: String?

    @OptionGroup var place: StoreOptions

    @Flag(help: "Print the daemon's JSON.")
    var json = false

    func validate() throws {
        if (refuse == nil) != (origin == nil) {
            throw ValidationError("--refuse and --origin are given together")
        }
        for case let text? in [origin, forget] where (try? AbsoluteURL(text)) == nil {
            throw ValidationError("an origin is scheme://host[:port], not '\(text)'")
        }
    }

    func run() throws {
        if let refuse, let origin {
            let query = daemonQuery([("origin", origin), ("name", refuse)])
            try place.withChannel { _ = try $0.send(.post, "/api/keys/refuse?\(query)") }
            return print("refused: \(refuse) of \(origin)")
        }
        guard let forget else {
            return try place.printReport("/api/keys", asJSON: json) { (report: KeysText) in
                report.lines
            }
        }
        let query = daemonQuery([("origin", forget)])
        try place.withChannel { _ = try $0.send(.post, "/api/keys/forget?\(query)") }
        print("forgotten: what was learned about \(forget)")
    }
}

/// The rules, decoded for printing as text.
struct KeysText: Decodable {
    struct Origin: Decodable {
        let pattern: String
        let policy: String?
        let keys: String?
        let rules: [String]
    }

    struct Finding: Decodable {
        let origin: String
        let pairs: Int
        let paths: Int
        let state: String
        let rule: String
    }

    struct Veto: Decodable {
        let origin: String
        let scope: String
        let reason: String
    }

    let mode: String
    let policy: String
    let origins: [Origin]
    let findings: [Finding]
    let vetoes: [Veto]

    var lines: [String] {
        var lines = [factLine("default", "policy \(policy), keys \(mode)")]
        for origin in origins {
            var parts: [String] = []
            if let policy = origin.policy { parts.append("policy \(policy)") }
            if let keys = origin.keys { parts.append("keys \(keys)") }
            parts += origin.rules
            lines.append(
                factLine("origin", "\(origin.pattern): \(parts.joined(separator: "; "))"))
        }
        for found in findings {
            let count = "\(found.pairs) equal pairs on \(found.paths) paths"
            lines.append(factLine(found.state, "\(found.origin): \(found.rule) (\(count))"))
        }
        for veto in vetoes {
            lines.append(
                factLine("not merged", "\(veto.origin): \(veto.scope), \(veto.reason) was seen"))
        }
        return lines
    }
}

/// Returns a line of a report of facts: a name, and what is said of it from the twelfth column on.
func factLine(_ name: String, _ text: String) -> String {
    name + String(repeating: " ", count: max(1, 12 - name.count)) + text
}

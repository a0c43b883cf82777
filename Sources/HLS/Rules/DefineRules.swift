import URISyntax

/// Rules about EXT-X-DEFINE and the variables it defines (8216bis, 4.3 and 4.4.2.3).
enum DefineRules {
    static let table = [
        PlaylistRule("define-form", "4.4.2.3", checkForm),
        PlaylistRule("define-twice", "4.4.2.3", checkTwice),
        PlaylistRule("define-import", "4.4.2.3", checkImport),
        PlaylistRule("undefined-variable", "4.3", checkReferences),
    ]

    private static func name(_ use: PlaylistView.TagUse) -> String? {
        for form in ["NAME", "IMPORT", "QUERYPARAM"] {
            if let name = use.attributes.text(of: form) { return name }
        }
        return nil
    }

    private static func checkForm(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .define) {
            let list = use.attributes
            let forms = ["NAME", "IMPORT", "QUERYPARAM"].filter { list.has($0) }
            if forms.count != 1 {
                findings.add(
                    use.line, .define, "has \(forms.count) of NAME, IMPORT and QUERYPARAM")
            } else if forms == ["NAME"], !list.has("VALUE") {
                findings.add(use.line, .define, "has a NAME and no VALUE")
            }
            let isName =
                name(use)?.utf8.allSatisfy {
                    ASCII.isAlphanumeric($0) || $0 == 0x2D || $0 == 0x5F
                } ?? true
            if !isName || name(use) == "" {
                findings.add(use.line, .define, "'\(name(use) ?? "")' is no variable name")
            }
        }
    }

    private static func checkTwice(_ view: PlaylistView, _ findings: inout Findings) {
        var seen: Set<String> = []
        for use in view.uses(of: .define) {
            guard let name = name(use), !seen.insert(name).inserted else { continue }
            findings.add(use.line, .define, "defines '\(name)' a second time")
        }
    }

    private static func checkImport(_ view: PlaylistView, _ findings: inout Findings) {
        guard view.kind == .multivariant else { return }
        for use in view.uses(of: .define) where use.attributes.has("IMPORT") {
            findings.add(use.line, .define, "imports into a multivariant playlist")
        }
    }

    private static func checkReferences(_ view: PlaylistView, _ findings: inout Findings) {
        var variables = Variables()
        for line in view.lines {
            if case .tag(.define, let value) = line.kind {
                let use = PlaylistView.TagUse(
                    name: .define, line: line.number, value: value, bytes: view.bytes)
                if let name = name(use) { _ = variables.define(name, as: "") }
                continue
            }
            guard isPlaceOfVariables(line), Variables.mayOccur(in: view.bytes[line.range]),
                case .undefined(let name) = variables.expand(view.bytes[line.range])
            else { continue }
            findings.add(line.number, "playlist", "refers to '\(name)', which is not defined yet")
        }
    }

    /// True for URI lines and attribute lists; in other lines `{$` is plain text.
    private static func isPlaceOfVariables(_ line: PlaylistLine) -> Bool {
        switch line.kind {
        case .uri: true
        case .tag(let name, _): Tag.named(name).value == .attributes
        case .blank, .comment, .unknownTag: false
        }
    }
}

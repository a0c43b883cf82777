import URISyntax

/// Rules about EXT-X-KEY and EXT-X-SESSION-KEY (8216bis, 4.4.4.4 and 4.4.6.5).
enum KeyRules {
    static let table = [
        PlaylistRule("key-uri", "4.4.4.4", checkURI),
        PlaylistRule("key-none", "4.4.4.4", checkNone),
        PlaylistRule("key-iv", "4.4.4.4", checkIV),
        PlaylistRule("key-gcm-iv", "4.4.4.4", checkGCM),
        PlaylistRule("session-key-none", "4.4.6.5", checkSessionNone),
        PlaylistRule("session-key-twice", "4.4.6.5", checkSessionTwice),
    ]

    private static func keys(_ view: PlaylistView) -> [PlaylistView.TagUse] {
        view.uses(of: .key) + view.uses(of: .sessionKey)
    }

    private static func checkURI(_ view: PlaylistView, _ findings: inout Findings) {
        for use in keys(view) {
            let list = use.attributes
            if !list.isValue("NONE", of: "METHOD"), list.bytes(of: "URI")?.isEmpty ?? true {
                findings.add(use.line, use.name, "has a METHOD and no URI")
            }
        }
    }

    private static func checkNone(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .key) where use.attributes.isValue("NONE", of: "METHOD") {
            let others = ["URI", "IV", "KEYFORMAT", "KEYFORMATVERSIONS"].filter {
                use.attributes.has($0)
            }
            if !others.isEmpty {
                findings.add(use.line, .key, "METHOD=NONE stands with \(others[0])")
            }
        }
    }

    private static func checkIV(_ view: PlaylistView, _ findings: inout Findings) {
        for use in keys(view) {
            guard let attribute = use.attributes.first("IV"),
                !attribute.hasVariable(in: view.bytes)
            else { continue }
            let text = view.bytes[attribute.value]
            let isHex =
                text.starts(with: "0x".utf8) || text.starts(with: "0X".utf8)
            let digits = text.dropFirst(2)
            if !isHex || !(1...32 ~= digits.count)
                || !digits.allSatisfy(ASCII.isHexDigit)
            {
                findings.add(use.line, use.name, "IV is no hexadecimal number of 128 bits")
            }
        }
    }

    private static func checkGCM(_ view: PlaylistView, _ findings: inout Findings) {
        for use in keys(view)
        where use.attributes.isValue("AES-256-GCM", of: "METHOD")
            && use.attributes.has("IV")
        {
            findings.add(use.line, use.name, "AES-256-GCM takes its IV from the segment")
        }
    }

    private static func checkSessionNone(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .sessionKey) where use.attributes.isValue("NONE", of: "METHOD") {
            findings.add(use.line, .sessionKey, "METHOD is NONE")
        }
    }

    private static func checkSessionTwice(_ view: PlaylistView, _ findings: inout Findings) {
        var seen: Set<[String]> = []
        for use in view.uses(of: .sessionKey) {
            let values = ["METHOD", "URI", "IV", "KEYFORMAT", "KEYFORMATVERSIONS"].map {
                use.attributes.text(of: $0) ?? ""
            }
            if !seen.insert(values).inserted {
                findings.add(use.line, .sessionKey, "is the same as one before it")
            }
        }
    }
}

/// The rules of draft-pantos-hls-rfc8216bis that a playlist by itself can break, as one table.
///
/// Each row has the name that reports and tests know it by, the section and what the section says:
/// must or should. What only reloads or other playlists can show is not in the table.
package struct PlaylistRule: Sendable {
    package let name: String
    package let section: String
    package let level: Violation.Level
    let check: Check

    typealias Check = @Sendable (PlaylistView, inout Findings) -> Void

    init(_ name: String, _ section: String, _ check: @escaping Check) {
        self.init(name, section, .must, check)
    }

    init(
        _ name: String, _ section: String, _ level: Violation.Level, _ check: @escaping Check
    ) {
        self.name = name
        self.section = section
        self.level = level
        self.check = check
    }

    /// Every rule, in the order of the specification.
    package static let table: [PlaylistRule] =
        SyntaxRules.table + DefineRules.table + MediaRules.table + KeyRules.table
        + LowLatencyRules.table + DateRangeRules.table + MultivariantRules.table
        + RenditionRules.table + VersionRules.table

    /// What the rules find in a playlist that was read with its lines, by line; at most 20 of a
    /// rule.
    ///
    /// Never blocks; takes a few microseconds a line.
    package static func violations(in list: Playlist) -> [Violation] {
        let view = PlaylistView(list)
        var findings = Findings()
        for rule in table {
            findings.begin(rule)
            rule.check(view, &findings)
        }
        return findings.violations.sorted {
            ($0.line, $0.section, $0.message) < ($1.line, $1.section, $1.message)
        }
    }
}

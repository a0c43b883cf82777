/// The rules of draft-pantos-hls-rfc8216bis that a single playlist can violate, as one table.
///
/// Each row has the name used by reports and tests, the section, and whether the section says must
/// or should. Rules that only reloads or other playlists can reveal are not in the table.
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

    /// Returns the violations in a playlist that was parsed with its lines, ordered by line; at
    /// most 20 per rule.
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

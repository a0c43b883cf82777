/// A violation of a requirement or recommendation of the specification in a playlist.
package struct Violation: Hashable, Sendable {
    /// The requirement level in the specification.
    package enum Level: String, Sendable {
        case must
        case should
    }

    /// Counted from 1; the last line for a tag that is missing from the playlist.
    package let line: Int
    /// The tag's name without `#`; `URI` for a line that is a URI, `playlist` for the whole.
    package let tag: String
    /// The name of the rule in `PlaylistRule.table`.
    package let rule: String
    /// The section of draft-pantos-hls-rfc8216bis; `D.2` is in an appendix.
    package let section: String
    package let level: Level
    package let message: String
}

extension Violation: CustomStringConvertible {
    package var description: String {
        "line \(line) (\(tag)): \(message) [8216bis \(section), \(level.rawValue)]"
    }
}

/// Collects the findings of the rules, limited per rule.
struct Findings {
    /// The most findings per rule, since every segment of a long playlist may break one.
    static let maximumPerRule = 20

    private(set) var violations: [Violation] = []
    private var rule: PlaylistRule?
    private var countOfRule = 0

    mutating func begin(_ rule: PlaylistRule) {
        self.rule = rule
        countOfRule = 0
    }

    /// Records a violation of the current rule; `section` if it is not the rule's own.
    mutating func add(_ line: Int, _ tag: String, _ message: String, section: String? = nil) {
        guard let rule, countOfRule < Self.maximumPerRule else { return }
        countOfRule += 1
        violations.append(
            Violation(
                line: line, tag: tag, rule: rule.name, section: section ?? rule.section,
                level: rule.level, message: message))
    }

    mutating func add(_ line: Int, _ tag: Tag.Name, _ message: String, section: String? = nil) {
        add(line, tag.rawValue, message, section: section)
    }
}

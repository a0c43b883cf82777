/// Something in a playlist that the specification forbids or advises against.
package struct Violation: Hashable, Sendable {
    /// What the specification says of it.
    package enum Level: String, Sendable {
        case must
        case should
    }

    /// Counted from 1; the last line for what is missing from the list as a whole.
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

/// Collects what the rules find, bounded for each of them.
struct Findings {
    /// A rule broken by every segment of a long list is told this often.
    static let maximumPerRule = 20

    private(set) var violations: [Violation] = []
    private var rule: PlaylistRule?
    private var countOfRule = 0

    mutating func begin(_ rule: PlaylistRule) {
        self.rule = rule
        countOfRule = 0
    }

    /// Notes a violation of the rule at hand; `section` where it is not the rule's own.
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

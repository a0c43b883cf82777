/// An oddity in a playlist that did not prevent rewriting it.
package struct Diagnostic: Hashable, Sendable {
    /// Counted from 1.
    package let line: Int
    /// The tag's name without `#`; `URI` for a line that is a URI.
    package let tag: String
    package let message: String

    /// The most diagnostics that one playlist reports, so that a hostile playlist cannot fill a
    /// log.
    package static let maximumCount = 50
}

extension Diagnostic: CustomStringConvertible {
    package var description: String { "line \(line) (\(tag)): \(message)" }
}

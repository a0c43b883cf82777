/// Something odd in a playlist that did not keep it from being rewritten.
package struct Diagnostic: Hashable, Sendable {
    /// Counted from 1.
    package let line: Int
    /// The tag's name without `#`; `URI` for a line that is a URI.
    package let tag: String
    package let message: String

    /// No playlist reports more than this many, so that a hostile one cannot fill a log.
    package static let maximumCount = 50

    package init(line: Int, tag: String, message: String) {
        self.line = line
        self.tag = tag
        self.message = message
    }
}

extension Diagnostic: CustomStringConvertible {
    package var description: String { "line \(line) (\(tag)): \(message)" }
}

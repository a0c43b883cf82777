/// The place of a tag and its attributes.
package struct TagText: Sendable {
    /// Counted from 1.
    package let line: Int
    /// The line from its `#` in the playlist's text, without its end.
    package let source: Range<Int>
    package let attributes: AttributeList

    init(_ line: TagLine, _ attributes: AttributeList) {
        self.line = line.number
        source = line.range
        self.attributes = attributes
    }
}

/// A tag with attributes.
///
/// Properties of conforming types read their attribute on access; the first of several attributes
/// with the same name counts.
package protocol AttributeTag: Sendable {
    var text: TagText { get }
}

extension AttributeTag {
    /// Counted from 1.
    package var line: Int { text.line }
    /// The line from its `#` in the playlist's text, without its end.
    package var source: Range<Int> { text.source }
    package var attributes: AttributeList { text.attributes }
}

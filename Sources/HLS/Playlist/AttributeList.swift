import URISyntax

/// The attributes of one tag line, as ranges into the playlist (RFC 8216, 4.2).
///
/// Commas and `NAME=` inside quoted strings are part of the value. Tolerates blanks around names,
/// missing values and a quoted string that is not closed before the end of the line.
package struct AttributeList: Sequence, Sendable {
    package struct Attribute: Hashable, Sendable {
        /// The name without blanks.
        package let name: Range<Int>
        /// The value without its quotes.
        package let value: Range<Int>
        package let isQuoted: Bool
        /// False only for a quoted string without a closing quote.
        package let isTerminated: Bool
    }

    package let bytes: [UInt8]
    package let range: Range<Int>

    /// Creates the attributes in `range` of `bytes`: the text after the colon of a tag.
    package init(_ bytes: [UInt8], in range: Range<Int>) {
        self.bytes = bytes
        self.range = range
    }

    package init(_ text: String) {
        bytes = Array(text.utf8)
        range = 0..<bytes.count
    }

    package func makeIterator() -> Iterator {
        Iterator(bytes: bytes, cursor: range.lowerBound, end: range.upperBound)
    }

    /// Returns the first attribute of this name.
    package func first(_ name: String) -> Attribute? {
        first { bytes[$0.name].elementsEqual(name.utf8) }
    }

    /// True if there is an attribute of this name.
    package func has(_ name: String) -> Bool { first(name) != nil }

    /// Returns the bytes of the first value of this name, without quotes.
    package func bytes(of name: String) -> ArraySlice<UInt8>? {
        first(name).map { bytes[$0.value] }
    }

    /// Returns the text of the first value of this name, without quotes.
    package func text(of name: String) -> String? {
        bytes(of: name).map { PercentCoding.text($0) }
    }

    /// Returns the first value of this name as a decimal integer; nil if malformed or too large.
    func integer(of name: String) -> Int? { bytes(of: name).flatMap(DecimalNumber.integer) }

    /// Returns the first value of this name as a number of seconds; nil if malformed.
    func seconds(of name: String) -> Duration? { bytes(of: name).flatMap(DecimalNumber.seconds) }

    /// Returns the first value of this name as a number of seconds; nil if malformed or negative.
    func length(of name: String) -> Duration? { bytes(of: name).flatMap(DecimalNumber.length) }

    /// Returns the first value of this name as a date; nil if malformed.
    func date(of name: String) -> DateTime? { bytes(of: name).flatMap { DateTime($0) } }

    /// True if the first value of this name is `value`, quoted or not.
    package func isValue(_ value: String, of name: String) -> Bool {
        bytes(of: name)?.elementsEqual(value.utf8) ?? false
    }

    /// True if the first value of this name is `YES`.
    package func isYes(_ name: String) -> Bool { isValue("YES", of: name) }

    package struct Iterator: IteratorProtocol {
        fileprivate let bytes: [UInt8]
        fileprivate var cursor: Int
        fileprivate let end: Int

        package mutating func next() -> Attribute? {
            while cursor < end, bytes[cursor] == 0x2C || ASCII.isBlank(bytes[cursor]) {
                cursor += 1
            }
            guard cursor < end else { return nil }
            let nameStart = cursor
            while cursor < end, bytes[cursor] != 0x3D, bytes[cursor] != 0x2C { cursor += 1 }
            let name = trimmed(nameStart..<cursor)
            guard cursor < end, bytes[cursor] == 0x3D else {
                return Attribute(
                    name: name, value: cursor..<cursor, isQuoted: false, isTerminated: true)
            }
            cursor += 1
            while cursor < end, ASCII.isBlank(bytes[cursor]) { cursor += 1 }
            return cursor < end && bytes[cursor] == 0x22 ? quoted(name) : unquoted(name)
        }

        private mutating func quoted(_ name: Range<Int>) -> Attribute {
            let start = cursor + 1
            cursor = start
            while cursor < end, bytes[cursor] != 0x22 { cursor += 1 }
            let value = start..<cursor
            let isTerminated = cursor < end
            // Text between the closing quote and the next comma is ignored.
            while cursor < end, bytes[cursor] != 0x2C { cursor += 1 }
            return Attribute(name: name, value: value, isQuoted: true, isTerminated: isTerminated)
        }

        private mutating func unquoted(_ name: Range<Int>) -> Attribute {
            let start = cursor
            while cursor < end, bytes[cursor] != 0x2C { cursor += 1 }
            return Attribute(
                name: name, value: trimmed(start..<cursor), isQuoted: false, isTerminated: true)
        }

        private func trimmed(_ range: Range<Int>) -> Range<Int> {
            var upper = range.upperBound
            while upper > range.lowerBound, ASCII.isBlank(bytes[upper - 1]) { upper -= 1 }
            return range.lowerBound..<upper
        }
    }
}

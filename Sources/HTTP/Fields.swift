import URISyntax

/// The fields of a message in the order received, including duplicates (RFC 9110 section 5).
///
/// All names and values are in one byte array; a field is four offsets into it. Names compare
/// without regard to ASCII case and without allocation. Values are bytes: in their text form
/// invalid UTF-8 becomes U+FFFD, `valueBytes` returns them unchanged. Nothing is validated here:
/// `RequestParser` rejects malformed fields and `serialise` does not write any. All fields together
/// may have up to 4 GiB.
package struct Fields: Sendable {
    /// The places of a name and its value in the storage.
    struct Entry: Sendable {
        var nameStart: UInt32
        var nameEnd: UInt32
        var valueStart: UInt32
        var valueEnd: UInt32

        var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
        var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }
    }

    private(set) var storage: [UInt8]
    private(set) var entries: [Entry]
    /// One bit for each length of a name, the last for all longer ones: most look-ups are for
    /// absent fields, and end here.
    private var nameLengths: UInt64 = 0
    /// Bytes in `storage` of removed fields.
    private var unusedBytes = 0

    /// Creates empty fields.
    package init() {
        storage = []
        entries = []
    }

    /// Creates fields from the parser's offsets into bytes copied once.
    init(storage: [UInt8], entries: [Entry]) {
        self.storage = storage
        self.entries = entries
        for entry in entries { noteName(of: Int(entry.nameEnd) - Int(entry.nameStart)) }
    }

    /// The number of field lines.
    package var count: Int { entries.count }

    /// True if there are no fields.
    package var isEmpty: Bool { entries.isEmpty }

    private mutating func noteName(of length: Int) {
        nameLengths |= 1 << UInt64(Swift.min(length, 63))
    }

    /// True if a name may have this length; false is certain.
    package func mayHaveName(of length: Int) -> Bool {
        nameLengths >> UInt64(Swift.min(length, 63)) & 1 == 1
    }
}

// MARK: - Adding and removing

extension Fields {
    /// Reserves capacity for more lines, with this many bytes of names and values in all.
    package mutating func reserve(lines: Int, bytes: Int) {
        entries.reserveCapacity(entries.count + lines)
        storage.reserveCapacity(storage.count + bytes)
    }

    /// Appends a field line.
    package mutating func append(_ name: String, _ value: String) {
        append(nameBytes: name.utf8, valueBytes: value.utf8)
    }

    /// Appends a field line.
    package mutating func append(_ name: FieldName, _ value: String) {
        append(nameBytes: name.spelling.utf8, valueBytes: value.utf8)
    }

    /// Appends a field line given as bytes.
    package mutating func append(
        nameBytes: some Collection<UInt8>, valueBytes: some Collection<UInt8>
    ) {
        let nameStart = UInt32(storage.count)
        storage.append(contentsOf: nameBytes)
        let nameEnd = UInt32(storage.count)
        storage.append(contentsOf: valueBytes)
        let valueEnd = UInt32(storage.count)
        noteName(of: Int(nameEnd - nameStart))
        entries.append(
            Entry(
                nameStart: nameStart, nameEnd: nameEnd, valueStart: nameEnd, valueEnd: valueEnd))
    }

    /// Appends a raw line such as `Content-Type: video/mp2t`, with or without CRLF, as libraries
    /// deliver response fields.
    ///
    /// - Returns: False, and nothing is appended, if the line is not a well-formed field.
    package mutating func append(line: ArraySlice<UInt8>) -> Bool {
        var line = line
        if line.last == ASCII.lineFeed { line.removeLast() }
        if line.last == ASCII.carriageReturn { line.removeLast() }
        guard let colon = line.firstIndex(of: ASCII.colon), colon > line.startIndex else {
            return false
        }
        let name = line[..<colon]
        let value = line[(colon + 1)...].trimmingOWS()
        guard name.allSatisfy(ASCII.isToken), value.allSatisfy(ASCII.isFieldValue) else {
            return false
        }
        append(nameBytes: name, valueBytes: value)
        return true
    }

    /// Appends every field of `others`.
    package mutating func append(contentsOf others: Fields) {
        for entry in others.entries { append(entry, of: others.storage) }
    }

    /// Appends a line of other fields.
    mutating func append(_ entry: Entry, of bytes: [UInt8]) {
        append(nameBytes: bytes[entry.name], valueBytes: bytes[entry.value])
    }

    /// Removes every field of this name and appends one with this value.
    package mutating func set(_ name: String, _ value: String) {
        remove(name)
        append(name, value)
    }

    /// Removes every field of this name and appends one with this value.
    package mutating func set(_ name: FieldName, _ value: String) {
        remove(name)
        append(name, value)
    }

    /// Removes every field of this name.
    package mutating func remove(_ name: String) {
        guard mayHaveName(of: name.utf8.count) else { return }
        let before = self
        remove { before.matches($0, name.utf8.span) }
    }

    /// Removes every field of this name.
    package mutating func remove(_ name: FieldName) {
        guard mayHaveName(of: name.lowercased.count) else { return }
        let before = self
        remove { before.matches($0, name.lowercased.span) }
    }

    private mutating func remove(where isRemoved: (Entry) -> Bool) {
        var kept: [Entry] = []
        guard entries.contains(where: isRemoved) else { return }
        kept.reserveCapacity(entries.count)
        for entry in entries {
            if isRemoved(entry) {
                unusedBytes += entry.name.count + entry.value.count
            } else {
                kept.append(entry)
            }
        }
        entries = kept
        // Setting one field repeatedly must not grow the storage without limit.
        if unusedBytes > 1024, unusedBytes > storage.count / 2 { compact() }
    }

    private mutating func compact() {
        var packed = Fields()
        packed.append(contentsOf: self)
        self = packed
    }
}

// MARK: - Looking up

extension Fields {
    /// Returns the value of the first field of this name.
    package func first(_ name: String) -> String? {
        index(of: name.utf8.span).map { storage[entries[$0].value].text }
    }

    /// Returns the value of the first field of this name.
    package func first(_ name: FieldName) -> String? {
        index(of: name.lowercased.span).map { storage[entries[$0].value].text }
    }

    /// Returns the values of every field of this name, in order.
    package func all(_ name: String) -> [String] {
        values(of: name.utf8.span).map { storage[$0].text }
    }

    /// Returns the values of every field of this name, in order.
    package func all(_ name: FieldName) -> [String] {
        values(of: name.lowercased.span).map { storage[$0].text }
    }

    /// Returns the values of every field of this name joined by ", " (RFC 9110 section 5.2); nil
    /// without one.
    package func combined(_ name: String) -> String? {
        combinedBytes(name.utf8.span)?[...].text
    }

    /// Returns the values of every field of this name joined by ", "; nil without one.
    package func combined(_ name: FieldName) -> String? {
        combinedBytes(name.lowercased.span)?[...].text
    }

    /// Returns the joined values as bytes; nil without one.
    package func combinedBytes(_ name: FieldName) -> [UInt8]? {
        combinedBytes(name.lowercased.span)
    }

    /// True if there is a field of this name.
    package func contains(_ name: String) -> Bool {
        index(of: name.utf8.span) != nil
    }

    /// True if there is a field of this name.
    package func contains(_ name: FieldName) -> Bool {
        index(of: name.lowercased.span) != nil
    }

    /// Returns the number of field lines of this name.
    package func count(of name: FieldName) -> Int {
        guard mayHaveName(of: name.lowercased.count) else { return 0 }
        let name = name.lowercased.span
        var count = 0
        for entry in entries where matches(entry, name) { count += 1 }
        return count
    }

    /// Returns the exact bytes of the first value of this name.
    package func valueBytes(_ name: FieldName) -> ArraySlice<UInt8>? {
        index(of: name.lowercased.span).map { storage[entries[$0].value] }
    }

    /// Returns the bytes of the field line at `index`, from 0 to `count - 1`.
    package func bytes(at index: Int) -> (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>) {
        (storage[entries[index].name], storage[entries[index].value])
    }

    /// Returns the members of a comma-separated list field over all its lines, trimmed of white
    /// space and without empty members (RFC 9110 section 5.6.1).
    ///
    /// Commas in quoted strings do not split.
    package func listMembers(_ name: FieldName) -> [String] {
        combinedBytes(name.lowercased.span).map { FieldCursor.members(of: $0[...]).map(\.text) }
            ?? []
    }

    private func combinedBytes(_ name: Span<UInt8>) -> [UInt8]? {
        let ranges = values(of: name)
        guard let head = ranges.first else { return nil }
        var joined = [UInt8](storage[head])
        for range in ranges.dropFirst() {
            joined.append(ASCII.comma)
            joined.append(ASCII.space)
            joined.append(contentsOf: storage[range])
        }
        return joined
    }

    private func values(of name: Span<UInt8>) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        guard mayHaveName(of: name.count) else { return ranges }
        for entry in entries where matches(entry, name) {
            ranges.append(entry.value)
        }
        return ranges
    }

    private func index(of name: Span<UInt8>) -> Int? {
        guard mayHaveName(of: name.count) else { return nil }
        for index in entries.indices where matches(entries[index], name) {
            return index
        }
        return nil
    }

    private func matches(_ entry: Entry, _ name: Span<UInt8>) -> Bool {
        guard Int(entry.nameEnd) - Int(entry.nameStart) == name.count else { return false }
        return ASCII.equalIgnoringCase(storage.span.extracting(entry.name), name)
    }
}

// MARK: - Conformances

extension Fields: Sequence {
    /// Iterates over the field lines as text.
    package struct Iterator: IteratorProtocol {
        let fields: Fields
        var index = 0

        package mutating func next() -> (name: String, value: String)? {
            guard index < fields.count else { return nil }
            let line = fields.bytes(at: index)
            index += 1
            return (line.name.text, line.value.text)
        }
    }

    package func makeIterator() -> Iterator { Iterator(fields: self) }
}

extension Fields: Equatable {
    /// True if both have the same lines in the same order, ignoring the case of names.
    package static func == (left: Fields, right: Fields) -> Bool {
        guard left.count == right.count else { return false }
        for index in left.entries.indices {
            let (mine, other) = (left.bytes(at: index), right.bytes(at: index))
            guard mine.value == other.value,
                ASCII.equalIgnoringCase(mine.name.span, other.name.span)
            else { return false }
        }
        return true
    }
}

extension Fields: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        self.init()
        for (name, value) in elements { append(name, value) }
    }
}

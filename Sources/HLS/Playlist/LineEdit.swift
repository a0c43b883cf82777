import URISyntax

/// The writing of one tag line of which some attributes are replaced or left out.
///
/// Edits are made in the order of the line; each first writes the text between the last edit and
/// itself unchanged. The text is an argument of each, since holding it would cost every tag line
/// the counting of a reference.
struct LineEdit {
    /// The offset that a part's BYTERANGE lacks.
    struct MissingOffset {
        let offset: Int
        /// Where it belongs in the text: behind the length.
        let place: Int
    }

    private let line: Range<Int>
    /// The end of what was written or left out.
    private var edited: Int
    /// The offset that the line lacks, until it is written.
    var missing: MissingOffset?

    init(of line: Range<Int>) {
        self.line = line
        edited = line.lowerBound
    }

    /// What is left of the line.
    var rest: Range<Int> { edited..<line.upperBound }

    /// Writes the missing offset if its place is before or at `end`.
    mutating func writeOffset(
        before end: Int, _ body: [UInt8], to sink: inout some PlaylistSink
    ) {
        guard let offset = missing, offset.place <= end else { return }
        missing = nil
        let before = body[edited..<offset.place]
        sink.write {
            $0.append(contentsOf: before)
            $0.append(contentsOf: "@\(offset.offset)".utf8)
        }
        edited = offset.place
    }

    /// Writes what `map` has for a reference in place of an attribute's value, or the value if it
    /// keeps that.
    @inline(__always)
    mutating func replace(
        _ attribute: AttributeList.Attribute, by reference: ResourceReference,
        _ map: PlaylistRewriter.ReferenceMap, _ body: [UInt8], to sink: inout some PlaylistSink
    ) {
        let before = body[edited..<attribute.value.lowerBound]
        sink.write {
            $0.append(contentsOf: before)
            if !attribute.isQuoted { $0.append(0x22) }
        }
        edited = attribute.value.lowerBound
        if sink.appendMapped(reference, map) {
            edited = attribute.value.upperBound
            if !attribute.isQuoted || !attribute.isTerminated {
                sink.write { $0.append(0x22) }
            }
        } else if !attribute.isQuoted {
            sink.write { _ = $0.removeLast() }
        }
    }

    /// Writes a document in place of an attribute's value.
    mutating func replace(
        _ attribute: AttributeList.Attribute, by document: [UInt8], _ body: [UInt8],
        to sink: inout some PlaylistSink
    ) {
        let before = body[edited..<attribute.value.lowerBound]
        sink.write {
            $0.append(contentsOf: before)
            if !attribute.isQuoted { $0.append(0x22) }
            $0.append(contentsOf: document)
            if !attribute.isQuoted || !attribute.isTerminated { $0.append(0x22) }
        }
        edited = attribute.value.upperBound
    }

    /// Leaves an attribute out, together with one comma.
    mutating func remove(
        _ attribute: AttributeList.Attribute, _ body: [UInt8], to sink: inout some PlaylistSink
    ) {
        var before = edited..<attribute.name.lowerBound
        var hasComma = false
        while let last = body[before].last, last == 0x2C || ASCII.isBlank(last) {
            hasComma = hasComma || last == 0x2C
            before = before.lowerBound..<before.upperBound - 1
        }
        var end = attribute.value.upperBound
        while end < line.upperBound, body[end] != 0x2C { end += 1 }
        // The first attribute of the list takes the comma after it along.
        if !hasComma, end < line.upperBound { end += 1 }
        let kept = body[before]
        sink.write { $0.append(contentsOf: kept) }
        edited = end
    }

    /// Marks a part as missing: adds GAP=YES after its URI.
    mutating func addGap(
        after attribute: AttributeList.Attribute, _ body: [UInt8],
        to sink: inout some PlaylistSink
    ) {
        let quote = attribute.isQuoted && attribute.isTerminated ? 1 : 0
        let end = max(edited, attribute.value.upperBound + quote)
        let text = body[edited..<end]
        sink.write {
            $0.append(contentsOf: text)
            $0.append(contentsOf: ",GAP=YES".utf8)
        }
        edited = end
    }
}

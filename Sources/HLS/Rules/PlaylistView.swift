import URISyntax

/// A playlist as the rules look at it: its tags by name, its segments, its declared numbers.
struct PlaylistView {
    /// A known tag where it stands.
    struct TagUse {
        let name: Tag.Name
        let line: Int
        /// What stands behind the colon.
        let value: Range<Int>
        let bytes: [UInt8]

        var attributes: AttributeList { AttributeList(bytes, in: value) }
        var valueBytes: ArraySlice<UInt8> { bytes[value] }
        var text: String { PercentEncoding.text(valueBytes) }

        func integer(_ name: String) -> Int? {
            attributes.bytes(of: name).flatMap(DecimalNumber.integer)
        }

        func seconds(_ name: String) -> Duration? {
            attributes.bytes(of: name).flatMap(DecimalNumber.seconds)
        }
    }

    /// A URI line and the segment tags before it.
    struct Segment {
        let line: Int
        let uri: Range<Int>
        let tags: [TagUse]

        func tag(_ name: Tag.Name) -> TagUse? { tags.last { $0.name == name } }
    }

    let text: PlaylistText
    let tags: [TagUse]
    let uris: [Segment]
    private let byName: [Tag.Name: [Int]]

    var bytes: [UInt8] { text.bytes }
    var kind: PlaylistKind { text.kind }
    var lastLine: Int { max(text.lines.last?.number ?? 1, 1) }

    init(_ text: PlaylistText) {
        var tags: [TagUse] = []
        var byName: [Tag.Name: [Int]] = [:]
        var uris: [Segment] = []
        var since = 0
        for line in text.lines {
            switch line.kind {
            case .tag(let tag, let value):
                byName[tag.name, default: []].append(tags.count)
                tags.append(
                    TagUse(name: tag.name, line: line.number, value: value, bytes: text.bytes))
            case .uri:
                uris.append(
                    Segment(line: line.number, uri: line.range, tags: Array(tags[since...])))
                since = tags.count
            case .blank, .comment, .unknownTag: break
            }
        }
        self.text = text
        self.tags = tags
        self.byName = byName
        self.uris = uris
    }

    /// The first URI line behind a line; nil where there is none.
    func uri(after line: Int) -> Segment? {
        var range = uris.startIndex..<uris.endIndex
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range =
                uris[middle].line > line
                ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return range.lowerBound < uris.endIndex ? uris[range.lowerBound] : nil
    }

    func uses(of name: Tag.Name) -> [TagUse] { (byName[name] ?? []).map { tags[$0] } }

    func first(_ name: Tag.Name) -> TagUse? { byName[name]?.first.map { tags[$0] } }

    func contains(_ name: Tag.Name) -> Bool { byName[name] != nil }

    /// EXT-X-VERSION; 1 where there is none.
    var version: Int { first(.version).flatMap { DecimalNumber.integer($0.valueBytes) } ?? 1 }

    var targetDuration: Duration? {
        first(.targetDuration).flatMap { DecimalNumber.seconds($0.valueBytes) }
    }

    var partTarget: Duration? { first(.partInf)?.seconds("PART-TARGET") }

    /// The text of an attribute's value.
    func text(_ attribute: AttributeList.Attribute) -> String { text.text(attribute.value) }
}

extension AttributeList.Attribute {
    /// Whether a variable stands in the value, which then cannot be judged as written.
    func hasVariable(in bytes: [UInt8]) -> Bool { Variables.mayOccur(in: bytes[value]) }
}

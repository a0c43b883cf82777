import URISyntax

/// A playlist as the rules see it: its tags by name, its segments, its declared numbers.
struct PlaylistView {
    /// One occurrence of a known tag.
    struct TagUse {
        let name: Tag.Name
        let line: Int
        /// The text after the colon.
        let value: Range<Int>
        let bytes: [UInt8]

        var attributes: AttributeList { AttributeList(bytes, in: value) }
        var valueBytes: ArraySlice<UInt8> { bytes[value] }
        var text: String { PercentCoding.text(valueBytes) }
    }

    /// A URI line and the segment tags before it.
    struct Segment {
        let line: Int
        let uri: Range<Int>
        let tags: [TagUse]

        func tag(_ name: Tag.Name) -> TagUse? { tags.last { $0.name == name } }
    }

    let list: Playlist
    let tags: [TagUse]
    let uris: [Segment]
    private let byName: [Tag.Name: [Int]]

    var bytes: [UInt8] { list.source }
    var kind: PlaylistKind { list.kind }
    var summary: PlaylistSummary { list.summary }
    var lines: [PlaylistLine] { list.lines }
    /// The typed values for rules about values; nil in a multivariant playlist.
    var media: MediaPlaylist? { list.media }
    var lastLine: Int { max(summary.lineCount, 1) }

    /// Creates a view of a playlist that was parsed with its lines.
    init(_ list: Playlist) {
        var tags: [TagUse] = []
        var byName: [Tag.Name: [Int]] = [:]
        var uris: [Segment] = []
        var since = 0
        for line in list.lines {
            switch line.kind {
            case .tag(let name, let value):
                byName[name, default: []].append(tags.count)
                tags.append(
                    TagUse(name: name, line: line.number, value: value, bytes: list.source))
            case .uri:
                uris.append(
                    Segment(line: line.number, uri: line.range, tags: Array(tags[since...])))
                since = tags.count
            case .blank, .comment, .unknownTag: break
            }
        }
        self.list = list
        self.tags = tags
        self.byName = byName
        self.uris = uris
    }

    func uses(of name: Tag.Name) -> [TagUse] { (byName[name] ?? []).map { tags[$0] } }

    func first(_ name: Tag.Name) -> TagUse? { byName[name]?.first.map { tags[$0] } }

    func contains(_ name: Tag.Name) -> Bool { byName[name] != nil }

    /// Returns the text of an attribute's value.
    func text(_ attribute: AttributeList.Attribute) -> String { list.text(attribute.value) }

    /// Returns the text of a range of the playlist.
    func text(_ range: Range<Int>) -> String { list.text(range) }
}

extension AttributeList.Attribute {
    /// True if the value contains a variable, so that it cannot be checked as written.
    func hasVariable(in bytes: [UInt8]) -> Bool { Variables.mayOccur(in: bytes[value]) }
}

import HLS
import Testing

/// The table of tags.
@Suite struct TagTests {
    @Test func `every name is in the table once`() {
        #expect(Tag.table.map(\.name).count == Tag.Name.allCases.count)
        #expect(Set(Tag.table.map(\.name)) == Set(Tag.Name.allCases))
    }

    @Test func `only tags with attribute lists carry URI attributes`() {
        for tag in Tag.table where !tag.uris.isEmpty {
            #expect(tag.value == .attributes, "\(tag.name)")
        }
    }
}

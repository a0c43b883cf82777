import HTTP
import Testing

struct `Sets of field names` {
    private let names = FieldNameSet(["Set-Cookie", "TE", "Link"])

    @Test(arguments: ["set-cookie", "SET-COOKIE", "Te", "link"])
    func `names are found case-insensitively`(name: String) {
        #expect(names.contains(Array(name.utf8)[...]))
    }

    @Test(arguments: ["", "set-cookie2", "et", "l1nk", "strict-transport-security"])
    func `names outside of the set are not found`(name: String) {
        #expect(!names.contains(Array(name.utf8)[...]))
    }

    @Test func `the named fields are kept in order and byte for byte`() {
        var given = Fields()
        given.append("Link", "a")
        given.append(nameBytes: "X-One".utf8, valueBytes: [0xE9, 0x21])
        given.append("te", "b")
        given.append("X-Two", "c")
        let kept = given.filtered { !names.contains($0) }
        #expect(kept.count == 2)
        #expect(kept.bytes(at: 0).value.elementsEqual([0xE9, 0x21]))
        #expect(kept.first("x-two") == "c")
        #expect(!kept.isASCII)
    }
}

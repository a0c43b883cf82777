import HLS
import Testing

/// Attribute lists (RFC 8216, 4.2) as packagers write them.
@Suite struct AttributeListTests {
    static func pairs(_ text: String) -> [String] {
        let list = AttributeList(text)
        return list.map { attribute in
            String(decoding: list.bytes[attribute.name], as: UTF8.self) + "="
                + String(decoding: list.bytes[attribute.value], as: UTF8.self)
        }
    }

    @Test(arguments: [
        ("A=1,B=\"x\",C=0xFF", ["A=1", "B=x", "C=0xFF"]),
        ("A=\"x,B=2\",C=3", ["A=x,B=2", "C=3"]),
        ("A=\"URI=y\",URI=\"z\"", ["A=URI=y", "URI=z"]),
        (" A = 1 ,  B= \"x\" ,", ["A=1", "B=x"]),
        ("A,B=1", ["A=", "B=1"]), ("A=,B=1", ["A=", "B=1"]), ("A=\"\"", ["A="]),
        ("A=\"x\"junk,B=1", ["A=x", "B=1"]), ("A=\"cut, off", ["A=cut, off"]),
        ("", []), (",,,", []), ("A=1=2", ["A=1=2"]), ("A=x\"y,B=1", ["A=x\"y", "B=1"]),
    ])
    func `attributes are split at their ends`(text: String, expected: [String]) {
        #expect(Self.pairs(text) == expected)
    }

    @Test func `values are found by the exact name`() {
        let list = AttributeList("XURI=\"1\",URI=\"2\",URI=\"3\",uri=4,GAP=YES")
        #expect(list.text(of: "URI") == "2")
        #expect(list.text(of: "UR") == nil)
        #expect(list.isYes("GAP") && !list.isYes("URI"))
    }

    @Test func `quoted values differ from unquoted ones`() {
        let list = AttributeList("A=\"x\",B=y,C=\"z")
        #expect(list.map(\.isQuoted) == [true, false, true])
        #expect(list.map(\.isTerminated) == [true, true, false])
    }
}

import Testing
import URISyntax

@testable import HTTP

/// Functions that examine eight bytes at a time give the same results as byte by byte, at any
/// offset.
@Suite struct `Bytes judged in eights` {
    @Test func `field values are judged as by single bytes`() {
        for byte in UInt8.min...UInt8.max {
            for place in 0..<19 {
                var value = [UInt8](repeating: 0xC3, count: 19)
                value[place] = byte
                #expect(
                    ASCII.areFieldValue(value.span) == ASCII.isFieldValue(byte),
                    "\(byte) at \(place)")
            }
        }
    }

    @Test func `each control character is marked at its position and nothing else is`() {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                let word = [first, second, 0x20, 0x7E, 0x80, 0xFF, second, first]
                let found = ASCII.controls(in: EightBytes.load(word.span, at: 0))
                for (place, byte) in word.enumerated() {
                    let isControl = byte < 0x20 || byte == 0x7F
                    if (found >> UInt64(8 * place + 7)) & 1 == (isControl ? 1 : 0) { continue }
                    Issue.record("\(byte) at \(place) of \(word)")
                }
            }
        }
    }

    @Test func `names are compared as by single bytes`() {
        for length in [1, 4, 7, 8, 9, 15, 16, 17, 25] {
            for place in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var name = [UInt8](repeating: 0x6E, count: length)
                    name[place] = byte
                    for other in [byte, byte ^ 0x20, byte ^ 0x80, byte &+ 1] {
                        var compared = [UInt8](repeating: 0x4E, count: length)
                        compared[place] = other
                        let isEqual = ASCII.lowercased(byte) == ASCII.lowercased(other)
                        if ASCII.equalIgnoringCase(name.span, compared.span) == isEqual { continue }
                        Issue.record("\(byte) and \(other) at \(place) of \(length)")
                    }
                }
            }
        }
    }

    @Test func `text is found at any position of a target`() {
        for length in 0..<40 {
            let before = String(repeating: "/_H", count: length).prefix(length)
            for after in ["", "x", "_HLS", "=1&b=2&c=3"] {
                let head = RequestHead(method: .get, target: "\(before)_HLS_\(after)")
                #expect(head.targetContains(Array("_HLS_".utf8)))
                let other = RequestHead(method: .get, target: "\(before)_HLS-\(after)")
                #expect(!other.targetContains(Array("_HLS_".utf8)))
            }
        }
    }

    @Test(arguments: ["a", "a\tb", "0123456789abcdef", "0123456789\tabcdef0123456789"])
    func `lines are split at their ends`(_ value: String) throws {
        let lines = "X: \(value)\r\n\nLonger-Name:\(value)  \nLast: \(value)"
        let fields = try #require(Fields(lines: Array("head\n\(lines)".utf8), from: 5))
        #expect(fields.count == 3)
        for name in ["X", "Longer-Name", "Last"] { #expect(fields.first(name) == value) }
        #expect(Fields(lines: Array("X: \(value)\u{1}".utf8), from: 0) == nil)
    }

    @Test func `field names of any length are found`() {
        var fields = Fields()
        for length in 1...80 {
            let name = String(repeating: "n", count: length)
            #expect(!fields.contains(name))
            fields.append(name, "\(length)")
            #expect(fields.first(name) == "\(length)")
        }
        fields.remove(String(repeating: "n", count: 70))
        #expect(fields.count == 79 && !fields.contains(String(repeating: "n", count: 70)))
        #expect(fields.first(String(repeating: "n", count: 71)) == "71")
    }
}

@Suite struct `Strong tags` {
    @Test(arguments: [
        ("\"a1\"", "\"a1\""), ("\"\"", "\"\""), ("W/\"a1\"", nil), ("a1", nil), ("\"a b\"", nil),
        ("\"a\"b\"", nil), ("\"é\"", "\"é\""), ("\"", nil), ("\"a\\\"", "\"a\\\""),
    ])
    func `a strong entity tag is returned as written`(_ value: String, _ text: String?) {
        let fields: Fields = ["ETag": value]
        #expect(EntityTag.strongText(fields) == text)
        let tag = EntityTag.parse(fields)
        #expect((tag?.isWeak == false ? tag?.description : nil) == text)
    }

    @Test func `two entity tags count as none`() {
        #expect(EntityTag.strongText(["ETag": "\"a\"", "etag": "\"a\""]) == nil)
    }
}

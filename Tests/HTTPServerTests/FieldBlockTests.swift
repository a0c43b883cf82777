import CNGHTTP2
import HTTP
import Testing

@testable import HTTPServer

struct FieldBlockTests {
    /// The names of the fields that the table of sent fields is not to keep.
    private func notKept(of block: FieldBlock) -> [String] {
        let flags = block.withPairs { pairs in pairs.dropFirst().map(\.flags) }
        return zip(block.entries, flags).filter { $0.1 != 0 }
            .map { String(decoding: block.storage[$0.0.name], as: UTF8.self) }
    }

    @Test(arguments: ["Date", "date"])
    func `only the date is kept out of the table of sent fields`(name: String) throws {
        var head = ResponseHead(status: .ok)
        for other in ["Vary", "Data", "Update", "Last-Modified"] { head.fields.append(other, "v") }
        head.fields.append(name, "Mon, 01 Jan 2024 00:00:00 GMT")
        #expect(try notKept(of: FieldBlock(head, length: 1, dateLine: nil)) == [name])
    }

    @Test func `the server's own date is as one of an origin`() throws {
        let line = Array("Date: now\r\n".utf8)
        let block = try FieldBlock(ResponseHead(status: .ok), length: nil, dateLine: line)
        #expect(notKept(of: block) == ["Date"])
    }
}

import HTTP
import Testing

@testable import Serving

/// Several ranges in one response: its parts and their length.
@Suite struct `Several ranges` {
    private func combined(_ specs: [ByteRangeSpec]) -> [String] {
        Multipart.combined(specs, total: 100).map { "\($0.first)-\($0.last)" }
    }

    // RFC 9110 sections 14.2 and 15.3.7.2.
    @Test(
        arguments: [
            ([.bounded(0, 9), .bounded(20, 29)], ["0-9", "20-29"]),
            ([.bounded(20, 29), .bounded(0, 9)], ["20-29", "0-9"]),
            ([.bounded(0, 9), .bounded(5, 14)], ["0-14"]),
            ([.bounded(0, 9), .bounded(10, 14)], ["0-14"]),
            ([.bounded(0, 9), .bounded(20, 29), .bounded(8, 21)], ["0-29"]),
            ([.suffix(5), .from(90)], ["90-99"]),
            ([.bounded(0, 0), .bounded(200, 300)], ["0-0"]),
            ([.from(100), .suffix(0)], []),
        ] as [([ByteRangeSpec], [String])])
    func `overlapping and adjacent ranges are merged, those behind the end dropped`(
        _ specs: [ByteRangeSpec], _ expected: [String]
    ) {
        #expect(combined(specs) == expected)
    }

    @Test func `the length is that of all parts and their separators`() {
        let ranges = Multipart.combined([.bounded(0, 9), .bounded(50, 59)], total: 100)
        let multipart = Multipart(ranges, total: 100, contentType: "a/b")
        let boundary = multipart.contentType.split(separator: "=").last.map(String.init) ?? ""
        func head(_ range: String) -> String {
            "--\(boundary)\r\nContent-Type: a/b\r\nContent-Range: bytes \(range)/100\r\n\r\n"
        }
        let text =
            head("0-9") + "0123456789\r\n" + head("50-59") + "0123456789\r\n--\(boundary)--\r\n"
        #expect(multipart.length == Int64(text.utf8.count))
        #expect(multipart.contentType.hasPrefix("multipart/byteranges; boundary="))
    }
}

import AccessLogFormat
import Testing

struct AccessLineTests {
    private func line(_ text: String) -> AccessLine? {
        AccessLine(text.split(separator: " ").map(String.init))
    }

    @Test func `what was written is read`() throws {
        let text = AccessLine.text(named: "peer=192.0.2.7 url=a=b") { field in
            field == .reason ? .unknown : .text(field.name.lowercased())
        }
        #expect(text.hasSuffix("\n"))
        let read = try #require(line(String(text.dropLast())))
        for field in AccessField.allCases {
            #expect(read[field] == (field == .reason ? nil : field.name.lowercased()))
        }
        #expect(read.named == ["peer": "192.0.2.7", "url": "a=b"])
    }

    @Test func `numbers and times are written as decimals`() {
        let values: [AccessField: AccessValue] = [
            .time: .time(1_795_398_140_057), .bytes: .number(50_000), .duration: .duration(427),
            .total: AccessValue(Int64?.none), .url: AccessValue("http://cdn.example/a.ts"),
        ]
        #expect(
            AccessLine.text(named: nil) { values[$0] ?? .unknown }
                == "1795398140.057 - - 50000 0.427 - - - - - - - http://cdn.example/a.ts - - - -\n")
    }

    @Test func `flags are written as true and false`() {
        #expect([true, false].map { AccessValue.flag($0).text } == ["true", "false"])
    }

    @Test(arguments: [
        ("", [nil, nil, nil, nil], 0), (" ::1", ["::1", nil, nil, nil], 0),
        (" ::1 HTTP/2", ["::1", "HTTP/2", nil, nil], 0),
        (" ::1 HTTP/2 tries=1", ["::1", "HTTP/2", nil, nil], 1),
        (" ::1 HTTP/2 TLSv1.3 tries=1 peer=-", ["::1", "HTTP/2", "TLSv1.3", nil], 2),
        (" ::1 HTTP/2 TLSv1.3 aborted tries=1", ["::1", "HTTP/2", "TLSv1.3", "aborted"], 1),
        (" - - - -", [nil, nil, nil, nil], 0),
    ])
    func `lines of earlier versions lack the last fields`(
        _ end: String, _ last: [String?], _ named: Int
    ) throws {
        let read = try #require(
            line("17.250 GET 206 300 2.100 hit - s 2a abc 200 1000 https://cdn/a.ts?x=***" + end))
        #expect([read[.client], read[.protocol], read[.tls], read[.ending]] == last)
        #expect(read[.url] == "https://cdn/a.ts?x=***" && read.named.count == named)
    }

    @Test(arguments: [
        "", "1 GET 200", "1 GET 200 5 1 hit - s 2a ab 0 5",
        "1 GET 200 5 1 hit - s 2a ab 0 5 u c p t e one-more",
        "1 GET 200 5 1 hit - s 2a ab 0 5 u c a=b p",
    ])
    func `another line is not a line of the access log`(_ text: String) {
        #expect(line(text) == nil)
    }
}

import Console
import Model
import Testing

struct OutageHistoryTests {
    private func outage(_ start: Int64, _ end: Int64?, _ origin: String = "http://a")
        -> OutageHistory.Outage
    {
        .init(origin: origin, start: start, end: end, reason: "refused")
    }

    private func document(_ history: OutageHistory) -> [UInt8] {
        let value = JSONValue.object([.init("v", .number(1)), .init("outages", history.json())])
        return Array(value.encoded.utf8)
    }

    @Test func `outages are kept for a day, and at most 200 of them`() {
        var history = OutageHistory()
        history.add(outage(100, 200), now: 200)
        history.add(outage(300, 400), now: 400)
        #expect(history.json().encoded.contains("\"start\":100"))
        history.add(outage(86_500, 86_700), now: 86_700)
        #expect(!history.json().encoded.contains("\"start\":100"))
        #expect(history.json().encoded.contains("\"start\":300"))
        for number in 0..<500 { history.add(outage(86_700, 86_700 + Int64(number)), now: 87_200) }
        #expect(history.json().asList?.count == 200)
    }

    @Test func `what lasts is listed with no end, and is not read back`() {
        var history = OutageHistory()
        history.add(outage(10, 20), now: 20)
        let text = history.json(lasting: [outage(30, nil, "http://b")]).encoded
        #expect(text.contains(#""origin":"http://b","start":30,"end":null"#))
        #expect(OutageHistory(reading: document(history), now: 30) == history)
        #expect(OutageHistory(reading: document(history), now: 15) == OutageHistory())
    }

    private func cut(_ start: Int64, _ end: Int64) -> OutageHistory.Outage {
        .init(origin: "http://a", start: start, end: end, reason: "refused", isCut: true)
    }

    private func starts(_ json: JSONValue) -> [Double] {
        (json.asList ?? []).compactMap { $0["start"]?.asNumber }
    }

    @Test(arguments: [(100, [10.0]), (400, [10.0]), (401, [10.0, 401.0])])
    func `what a restart cuts off goes on where the same origin fails soon after it`(
        _ second: Int, _ expected: [Double]
    ) {
        let next = Int64(second)
        // The file of a run in which the outage lasted.
        var last = OutageHistory()
        last.add(cut(10, 100), now: 100)
        var history = OutageHistory(reading: document(last), now: 600)
        #expect(history == last)
        #expect(starts(history.json(lasting: [outage(next, nil)])) == expected)
        #expect(starts(history.json(lasting: [outage(next, nil, "http://b")])).count == 2)
        history.add(outage(next, 600), now: 600)
        #expect(starts(history.json()) == expected)
        // What has ended by itself is one of its own.
        history.add(outage(601, 610), now: 610)
        #expect(starts(history.json()) == expected + [601])
    }

    @Test(arguments: [
        "", "{", "[]", #"{"v":2,"outages":[]}"#, #"{"v":1}"#, #"{"v":1,"outages":7}"#,
        #"{"v":1,"outages":[7,{"origin":1},{"origin":"a","reason":"b","start":9,"end":3}]}"#,
        #"{"v":1,"outages":[{"origin":"a","reason":"b","start":-1e300,"end":1e300}]}"#,
        #"{"v":1,"outages":[{"origin":"a","reason":"b","start":3,"end":null}]}"#,
    ])
    func `a file that is not the daemon's has no outages`(_ text: String) {
        #expect(OutageHistory(reading: Array(text.utf8), now: 100) == OutageHistory())
    }
}

import HTTP
import Testing

struct `Field storage` {
    let sample = fields(
        ("Accept", "a"), ("X-Long-Name", "1"), ("accept", "b"), ("ACCEPT", "c, d"))

    @Test func `lookups are case-insensitive and keep the order`() {
        #expect(sample.first("aCCEPT") == "a")
        #expect(sample.first(.accept) == "a")
        #expect(sample.all("Accept") == ["a", "b", "c, d"])
        #expect(sample.all(.accept) == ["a", "b", "c, d"])
        #expect(sample.combined("accept") == "a, b, c, d")
        #expect(sample.combined(.accept) == "a, b, c, d")
        #expect(sample.count == 4)
        #expect(sample.count(of: .accept) == 3)
        #expect(sample.valueBytes("x-long-name") == [0x31])
    }

    @Test func `every lookup of an absent field returns nil`() {
        #expect(sample.first("accep") == nil)
        #expect(sample.all("accepts").isEmpty)
        #expect(sample.combined(.host) == nil)
        #expect(!sample.contains("host") && !sample.contains(.host))
        #expect(sample.valueBytes(.host) == nil)
        #expect(Fields().isEmpty)
    }

    @Test func `only letters are case-insensitive, so at-sign and backtick differ`() {
        let odd = fields(("X@", "1"), ("X[", "2"))
        #expect(odd.first("x`") == nil)
        #expect(odd.first("x{") == nil)
        #expect(odd.first("x[") == "2")
    }

    @Test func `setting a field replaces all fields of the name`() {
        var changed = sample
        changed.set("Accept", "z")
        #expect(changed.map(\.name) == ["X-Long-Name", "Accept"])
        changed.set(.accept, "y")
        #expect(changed.all("accept") == ["y"])
        changed.remove(.accept)
        changed.remove("x-long-name")
        changed.remove("absent")
        #expect(changed.isEmpty)
        #expect(sample.count == 4)
    }

    @Test func `iteration returns names as they were received`() {
        #expect(sample.map(\.name) == ["Accept", "X-Long-Name", "accept", "ACCEPT"])
        #expect(sample.map(\.value) == ["a", "1", "b", "c, d"])
    }

    @Test func `equality is case-sensitive for values and case-insensitive for names`() {
        #expect(fields(("A", "x")) == fields(("a", "x")))
        #expect(fields(("A", "x")) != fields(("A", "X")))
        #expect(fields(("A", "x"), ("B", "y")) != fields(("B", "y"), ("A", "x")))
        #expect(fields(("A", "x")) != Fields())
    }

    @Test func `setting a field 10,000 times keeps its value and the other fields`() {
        var fields = fields(("Keep", "me"))
        for round in 0..<10000 { fields.set(.date, "value \(round)") }
        #expect(fields.first(.date) == "value 9999")
        #expect(fields.first("keep") == "me")
        #expect(fields.count == 2)
    }

    @Test(arguments: [
        ("Content-Type: video/mp2t\r\n", "video/mp2t"), ("content-type:video/mp2t", "video/mp2t"),
        ("CONTENT-TYPE: \t video/mp2t \n", "video/mp2t"), ("Content-Type:", ""),
    ])
    func `a raw line is split into name and value`(line: String, value: String) {
        var fields = Fields()
        let isAdded = fields.append(line: Array(line.utf8)[...])
        #expect(isAdded)
        #expect(fields.first(.contentType) == value)
    }

    @Test(arguments: [
        "", "\r\n", "HTTP/1.1 200 OK\r\n", ": a", "A b: c", "A : c", "A: b\u{0}", "A: b\rc",
        " A: b",
    ])
    func `a raw line that is not a field adds nothing`(line: String) {
        var fields = Fields()
        let isAdded = fields.append(line: Array(line.utf8)[...])
        #expect(!isAdded)
        #expect(fields.isEmpty)
    }

    @Test func `list members are split at commas outside of quotes`() {
        let list = fields(("Vary", " a ,, b"), ("Vary", "\"c,\\\",d\" ,e"), ("Vary", "\"open, f"))
        #expect(list.listMembers(.vary) == ["a", "b", "\"c,\\\",d\"", "e", "\"open", "f"])
        #expect(list.listMembers(.host).isEmpty)
    }

    @Test(.timeLimit(.minutes(5)))
    func `a value full of unbalanced quotes takes linear time`() {
        let hostile = String(repeating: "\"\\", count: 40_000) + ","
        let list = fields(("Connection", String(repeating: ",\"\\", count: 40_000) + hostile))
        #expect(!list.listMembers(.connection).isEmpty)
    }

    @Test func `fields appended from other fields keep their order`() {
        var fields = fields(("A", "1"))
        fields.append(contentsOf: ["B": "2", "a": "3"])
        #expect(fields.all("a") == ["1", "3"])
        #expect(fields.bytes(at: 1).name == [0x42])
    }

    @Test func `field names are compared case-insensitively`() {
        #expect(FieldName("ETag") == .etag)
        #expect(FieldName("etag").hashValue == FieldName.etag.hashValue)
        #expect(FieldName.etag.description == "ETag")
        #expect(FieldName.etag != .te)
    }
}

struct `End-to-end fields` {
    @Test func `fields of a connection and those named by Connection are removed`() {
        let received = fields(
            ("Host", "a"), ("Connection", "close, X-Once"), ("x-once", "1"), ("Keep-Alive", "5"),
            ("TE", "trailers"), ("Trailer", "X"), ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"), ("Proxy-Connection", "x"), ("Proxy-Authorization", "secret"),
            ("Proxy-Authenticate", "x"), ("Proxy-Authentication-Info", "x"),
            ("connection", "\tx-TWICE "), ("X-Twice", "1"), ("Range", "bytes=0-"),
            ("X-Onces", "stays"))
        #expect(
            endToEndFields(received)
                == fields(("Host", "a"), ("Range", "bytes=0-"), ("X-Onces", "stays")))
    }

    @Test func `fields are unchanged without Connection`() {
        let received = fields(("A", "1"), ("B", "2"), ("A", "3"))
        #expect(endToEndFields(received) == received)
    }
}

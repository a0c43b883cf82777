import HTTP
import Testing

struct `Field storage` {
    let sample = fields(
        ("Accept", "a"), ("X-Long-Name", "1"), ("accept", "b"), ("ACCEPT", "c, d"))

    @Test func `lookups regard no case and keep order`() {
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

    @Test func `an absent field is nil everywhere`() {
        #expect(sample.first("accep") == nil)
        #expect(sample.all("accepts").isEmpty)
        #expect(sample.combined(.host) == nil)
        #expect(!sample.contains("host") && !sample.contains(.host))
        #expect(sample.valueBytes(.host) == nil)
        #expect(Fields().isEmpty)
    }

    @Test func `only letters fold, so that at-sign and backtick names differ`() {
        let odd = fields(("X@", "1"), ("X[", "2"))
        #expect(odd.first("x`") == nil)
        #expect(odd.first("x{") == nil)
        #expect(odd.first("x[") == "2")
    }

    @Test func `setting replaces every field of the name`() {
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

    @Test func `iteration gives names as they were sent`() {
        #expect(sample.map(\.name) == ["Accept", "X-Long-Name", "accept", "ACCEPT"])
        #expect(sample.map(\.value) == ["a", "1", "b", "c, d"])
    }

    @Test func `equality regards the case of values but not of names`() {
        #expect(fields(("A", "x")) == fields(("a", "x")))
        #expect(fields(("A", "x")) != fields(("A", "X")))
        #expect(fields(("A", "x"), ("B", "y")) != fields(("B", "y"), ("A", "x")))
        #expect(fields(("A", "x")) != Fields())
    }

    @Test func `a field set ten thousand times keeps its neighbours and its value`() {
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
    func `a raw line is taken apart`(line: String, value: String) {
        var fields = Fields()
        let isAdded = fields.append(line: Array(line.utf8)[...])
        #expect(isAdded)
        #expect(fields.first(.contentType) == value)
    }

    @Test(arguments: [
        "", "\r\n", "HTTP/1.1 200 OK\r\n", ": a", "A b: c", "A : c", "A: b\u{0}", "A: b\rc",
        " A: b",
    ])
    func `a raw line that is no field adds nothing`(line: String) {
        var fields = Fields()
        let isAdded = fields.append(line: Array(line.utf8)[...])
        #expect(!isAdded)
        #expect(fields.isEmpty)
    }

    @Test func `list members split at commas outside quotes`() {
        let list = fields(("Vary", " a ,, b"), ("Vary", "\"c,\\\",d\" ,e"), ("Vary", "\"open, f"))
        #expect(list.listMembers(.vary) == ["a", "b", "\"c,\\\",d\"", "e", "\"open", "f"])
        #expect(list.listMembers(.host).isEmpty)
    }

    @Test(.timeLimit(.minutes(5)))
    func `a value full of open quotes takes linear time`() {
        let hostile = String(repeating: "\"\\", count: 40_000) + ","
        let list = fields(("Connection", String(repeating: ",\"\\", count: 40_000) + hostile))
        #expect(!list.listMembers(.connection).isEmpty)
    }

    @Test func `fields added from other fields follow in order`() {
        var fields = fields(("A", "1"))
        fields.append(contentsOf: ["B": "2", "a": "3"])
        #expect(fields.all("a") == ["1", "3"])
        #expect(fields.bytes(at: 1).name == [0x42])
    }

    @Test func `field names compare without case`() {
        #expect(FieldName("ETag") == .etag)
        #expect(FieldName("etag").hashValue == FieldName.etag.hashValue)
        #expect(FieldName.etag.description == "ETag")
        #expect(FieldName.etag != .te)
    }
}

struct `End-to-end fields` {
    @Test func `fields of one connection and those that Connection names are removed`() {
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

    @Test func `fields without Connection stay as they are`() {
        let received = fields(("A", "1"), ("B", "2"), ("A", "3"))
        #expect(endToEndFields(received) == received)
    }
}

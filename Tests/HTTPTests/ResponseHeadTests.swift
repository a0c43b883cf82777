import HTTP
import Testing

struct `Response head` {
    @Test func `a head is written line by line`() throws {
        var bytes = Array("before".utf8)
        let head = ResponseHead(
            status: .partialContent,
            fields: fields(("Content-Type", "video/mp2t"), ("X-Empty", ""), ("Set-Cookie", "a")))
        try serialise(head, into: &bytes)
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == "beforeHTTP/1.1 206 Partial Content\r\nContent-Type: video/mp2t\r\n"
                + "X-Empty: \r\nSet-Cookie: a\r\n\r\n")
    }

    @Test func `the version and an unnamed status are written`() throws {
        var bytes: [UInt8] = []
        try serialise(
            ResponseHead(status: HTTPStatus(rawValue: 299), version: .http10), into: &bytes)
        #expect(bytes == Array("HTTP/1.0 299 Unknown\r\n\r\n".utf8))
    }

    @Test(arguments: ["a\r\nX: y", "a\rb", "a\nb", "a\u{0}", "\u{7F}", "a\r", "\n"])
    func `a value with a line break is rejected`(value: String) {
        var bytes: [UInt8] = [1]
        let head = ResponseHead(status: .ok, fields: ["Location": value])
        #expect(throws: ResponseHeadError.invalidValue(name: "Location")) {
            try serialise(head, into: &bytes)
        }
        #expect(bytes == [1])
    }

    @Test(arguments: ["", "a b", "a:", "a\r\nb", "é"])
    func `a name that is not a token is rejected`(name: String) {
        var bytes: [UInt8] = []
        let head = ResponseHead(status: .ok, fields: [name: "x"])
        #expect(throws: ResponseHeadError.invalidName(name)) { try serialise(head, into: &bytes) }
        #expect(bytes.isEmpty)
    }

    @Test(arguments: [0, 99, 1000, 65535] as [UInt16])
    func `a status without three digits is rejected`(code: UInt16) {
        var bytes: [UInt8] = []
        let head = ResponseHead(status: HTTPStatus(rawValue: code))
        #expect(throws: ResponseHeadError.invalidStatus(code)) {
            try serialise(head, into: &bytes)
        }
    }

    @Test func `statuses have a class and a phrase`() {
        #expect(!HTTPStatus.ok.isRedirect)
        #expect(HTTPStatus.found.isRedirect && !HTTPStatus.notModified.isRedirect)
        #expect(HTTPStatus.continue.isInformational && HTTPStatus.continue.neverHasContent)
        #expect(HTTPStatus.notModified.neverHasContent && !HTTPStatus.ok.neverHasContent)
        #expect(HTTPStatus.rangeNotSatisfiable.description == "416 Range Not Satisfiable")
        #expect(HTTPVersion.http10.description == "HTTP/1.0" && HTTPVersion.http10 < .http11)
    }

    @Test func `serialized lines precede fields, and framing fields are dropped`() throws {
        var head = ResponseHead(
            status: .ok, fields: fields(("Age", "1")),
            written: try SerializedFields(
                fields(("ETag", "\"a\""), ("Content-Length", "9"), ("Connection", "close"))))
        let text = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nAge: 1\r\n\r\n"
        var bytes: [UInt8] = []
        try serialise(head, into: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == text)
        try head.writeFields()
        #expect(head.fields.isEmpty)
        bytes = []
        try serialise(head, into: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == text)
    }

    @Test func `values with line breaks are not serialized`() {
        #expect(throws: ResponseHeadError.invalidValue(name: "ETag")) {
            try SerializedFields(fields(("ETag", "a\r\nX: y")))
        }
    }

    @Test func `lines appended one by one equal those of the fields`() throws {
        var lines = SerializedFields(reserving: 64)
        try lines.append(.contentType, "video/mp2t")
        try lines.append(.etag, "\"a\"")
        #expect(
            lines
                == (try SerializedFields(fields(("Content-Type", "video/mp2t"), ("ETag", "\"a\""))))
        )
        let before = lines
        #expect(throws: ResponseHeadError.invalidValue(name: "ETag")) {
            try lines.append(.etag, "a\r\nX: y")
        }
        #expect(lines == before)
    }
}

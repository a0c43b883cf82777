import CachePolicy
import HTTP
import Model
@testable import Origin
import Posix
import Testing
import URISyntax
import Upstream

/// What flights read from heads.
@Suite struct ResponseFactsTests {
    private static let now = WallTime(seconds: 1_700_000_000)

    private func facts(
        _ status: HTTPStatus, _ fields: Fields, followsHTTP: Bool = false, known: Fields? = nil,
        condition: String? = nil
    ) throws -> ResponseFacts {
        let head = TransferHead(
            status: status, kept: fields, finalURL: try AbsoluteURL("http://cdn.test/a"))
        let stored = known.map {
            StoredHead(
                status: .ok, fields: $0, requestTime: Self.now, responseTime: Self.now,
                finalURL: "http://cdn.test/a")
        }
        return ResponseFacts(
            of: head, followsHTTP: followsHTTP, known: stored, condition: condition, now: Self.now)
    }

    @Test func `only a 508 that names a loop of proxies is one`() throws {
        let loop: Fields = ["Proxy-Status": "sluice; error=proxy_loop_detected"]
        #expect(try facts(.loopDetected, loop).isLoop && !facts(.badGateway, loop).isLoop)
        // Shared hosting says with it that a limit of resources is reached.
        #expect(try !facts(.loopDetected, Fields()).isLoop)
    }

    @Test(
        arguments: [
            ("5", 5), ("-5", 0), ("100000", 86_400), ("Tue, 14 Nov 2023 22:13:30 GMT", 10),
            ("Tue, 14 Nov 2023 22:13:10 GMT", 0), ("soon", nil),
        ] as [(String, Int64?)])
    func `Retry-After of a failure is a time from now, at most a day in seconds`(
        text: String, seconds: Int64?
    ) throws {
        let found = try facts(.serviceUnavailable, ["Retry-After": text]).retryAfter
        #expect(found == seconds.map { Interval.seconds($0) })
        #expect(try facts(.ok, ["Retry-After": text]).retryAfter == nil)
    }

    @Test(
        arguments: [
            (["Date": "Tue, 14 Nov 2023 23:00:00 GMT"], 2),
            (["Date": "Tue, 14 Nov 2023 23:00:00 GMT", "Age": "1"], 1),
            (["Date": "Tue, 14 Nov 2023 23:00:00 GMT", "Age": "60"], 0),
            (["Date": "Tue, 14 Nov 2023 21:00:00 GMT"], 7_202),
            (["Date": "now"], 2_802), ([:], 2_802),
        ] as [(Fields, Int64)])
    func `a date in Retry-After is compared with the origin's clock if the response states it`(
        fields: Fields, seconds: Int64
    ) throws {
        var fields = fields
        fields.set(.retryAfter, "Tue, 14 Nov 2023 23:00:02 GMT")
        let found = try facts(.serviceUnavailable, fields).retryAfter
        #expect(found == Interval.seconds(seconds))
    }

    @Test(
        arguments: [
            ("\"a\"", ["ETag": "\"a\""], false), ("\"a\"", ["ETag": "\"b\""], true),
            ("\"a\"", ["ETag": "W/\"a\""], true), ("\"a\"", [:], false),
            ("\"a\"", ["Last-Modified": "Tue, 14 Nov 2023 22:13:10 GMT"], false),
            (nil, ["ETag": "\"b\""], false),
            (
                "Tue, 14 Nov 2023 22:13:10 GMT",
                ["ETag": "\"b\"", "Last-Modified": "Tue, 14 Nov 2023 22:13:10 GMT"], false
            ),
            (
                "Tue, 14 Nov 2023 22:13:10 GMT",
                ["Last-Modified": "Tue, 14 Nov 2023 22:13:30 GMT"], true
            ),
        ] as [(String?, Fields, Bool)])
    func `a whole body is of another version if its validator is not that of If-Range`(
        condition: String?, fields: Fields, isOther: Bool
    ) throws {
        let found = { (status: HTTPStatus) throws in
            try facts(status, fields, condition: condition).isOtherVersion
        }
        #expect(try found(.ok) == isOther)
        #expect(try found(.partialContent) == false)
    }

    @Test func `a part has the coding of the stored body, which names of no coding do not change`()
        throws
    {
        let part: Fields = ["Content-Range": "bytes 0-9/100", "Content-Encoding": "gzip"]
        let gzip: Fields = ["Content-Encoding": "GZIP"]
        #expect(try facts(.partialContent, part, known: gzip).isCodedAsKnown)
        #expect(try !facts(.partialContent, part, known: [:]).isCodedAsKnown)
        #expect(try !facts(.partialContent, part).isCodedAsKnown)
        let plain: Fields = ["Content-Encoding": "aws-chunked"]
        #expect(try facts(.partialContent, plain, known: [:]).isCodedAsKnown)
    }

    @Test(arguments: [("gzip", true), ("x-gzip, br", true), ("identity", false), ("utf-8", false)])
    func `a whole body is coded if its head states a coding`(field: String, isCoded: Bool) throws {
        #expect(try facts(.ok, ["Content-Encoding": field]).isCoded == isCoded)
        #expect(try !facts(.ok, [:]).isCoded)
    }

    @Test func `a part names a playlist under HTTP's rules only`() throws {
        let fields: Fields = ["Content-Type": "application/vnd.apple.mpegurl"]
        #expect(try facts(.partialContent, fields, followsHTTP: true).namesPlaylist)
        #expect(try !facts(.partialContent, fields).namesPlaylist)
    }

    @Test(arguments: [
        ("aws-chunked", true), ("utf-8", true), ("aws-chunked, gzip", false), (" br", false),
        ("identity", false), (" , ", false), ("", false),
    ])
    func `only a field whose members are no codings states none`(field: String, isNone: Bool) {
        #expect(StatedCoding.isNone(field) == isNone)
    }
}

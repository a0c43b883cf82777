import HLS
import Testing

/// Dates of playlists (8216bis, 4.4.4.6).
@Suite struct DateTimeTests {
    static func date(_ text: String) -> DateTime? { DateTime(Array(text.utf8)[...]) }

    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.5Z", 500),
        ("2000-02-29T12:00:00+02:00", 951_818_400_000),
        ("2000-02-29T12:00:00+0200", 951_818_400_000), ("1969-12-31T23:59:59.999Z", -1),
        ("2031-05-06T07:08:09.0109999", 1_935_817_689_010),
        ("2031-05-06T00:08:09-07", 1_935_817_689_000),
    ])
    func `a date is parsed to the millisecond`(text: String, milliseconds: Int) {
        #expect(Self.date(text)?.milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "2031", "2031-05-06", "2031-13-06T07:08:09Z", "2031-05-06T25:08:09Z",
        "2031-05-06T07:08:09.Z", "2031-05-06T07:08:09Zx", "2031-05-06 07:08:09",
    ])
    func `other text is not a date`(text: String) {
        #expect(Self.date(text) == nil)
    }

    @Test(arguments: [
        "2031-05-06T07:08:09.010Z", "1999-12-31T23:59:59.999Z", "2000-02-29T00:00:00.000Z",
        "1969-07-20T20:17:40.000Z", "2100-03-01T00:00:00.000Z",
    ])
    func `a date is written as it was parsed`(text: String) {
        #expect(Self.date(text)?.text == text)
    }

    @Test func `adding a duration moves a date by it`() throws {
        let date = try #require(Self.date("2031-12-31T23:59:58Z"))
        #expect((date + .milliseconds(2_500)).text == "2032-01-01T00:00:00.500Z")
    }
}

import FuzzSupport
import HTTP
import Testing

struct `HTTP dates` {
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Sun Nov 06 08:49:37 1994",
        "sun, 06 nov 1994 08:49:37 gmt", "MON, 06 NOV 1994 08:49:37 GMT",
    ])
    func `the three date formats give the same second`(text: String) {
        #expect(HTTPDate.parse(text) == 784_111_777)
    }

    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] as [(Int64, String)])
    func `known dates are written and parsed`(seconds: Int64, text: String) {
        #expect(HTTPDate.format(seconds) == text)
        #expect(HTTPDate.parse(text) == seconds)
    }

    @Test func `a written date is parsed as the same second`() {
        var random = SeededNumbers(seed: 5)
        for _ in 0..<2000 {
            let seconds = Int64.random(in: 0...HTTPDate.latest, using: &random)
            #expect(HTTPDate.parse(HTTPDate.format(seconds)) == seconds)
        }
    }

    @Test func `consecutive days of four centuries differ by one day`() {
        var previous = HTTPDate.parse("Fri, 31 Dec 1999 12:00:00 GMT") ?? 0
        for day in 0..<146_097 {
            let seconds = previous + 86400
            let read = HTTPDate.parse(HTTPDate.format(seconds))
            guard read == seconds else {
                Issue.record("day \(day) after 1999 is read as \(read ?? -1)")
                return
            }
            previous = seconds
        }
        #expect(HTTPDate.format(previous).hasPrefix("Fri, 31 Dec 2399"))
    }

    @Test(
        arguments: [
            (nil, 784_111_777), ("300", 784_112_077), ("86401", 784_111_777), ("-1", 784_111_777),
        ] as [(String?, Int64)])
    func `the origin's time is the Date of a response and its Age`(age: String?, time: Int64) {
        var fields = Fields()
        if let age { fields.append(.age, age) }
        #expect(fields.originTime == nil)
        fields.append(.date, "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(fields.originTime == time)
    }

    @Test func `seconds out of range are clamped`() {
        #expect(HTTPDate.format(-1) == HTTPDate.format(0))
        #expect(HTTPDate.format(Int64.min) == HTTPDate.format(0))
        #expect(HTTPDate.format(Int64.max) == HTTPDate.format(HTTPDate.latest))
    }

    @Test func `dates before 1970 are negative, and a leap second equals the second before it`() {
        #expect(HTTPDate.parse("Wed, 31 Dec 1969 23:59:59 GMT") == -1)
        #expect(HTTPDate.parse("Mon, 01 Jan 0001 00:00:00 GMT") == -62_135_596_800)
        #expect(
            HTTPDate.parse("Sat, 31 Dec 2016 23:59:60 GMT")
                == HTTPDate.parse("Sat, 31 Dec 2016 23:59:59 GMT"))
    }

    @Test(arguments: [
        ("94", 1994, 2026), ("26", 2026, 2026), ("76", 2076, 2026), ("77", 1977, 2026),
        ("00", 2000, 2026), ("10", 2110, 2090), ("30", 2130, 2090), ("41", 2041, 2090),
        ("40", 2140, 2090),
    ])
    func `a two-digit year is at most 50 years in the future`(
        digits: String, year: Int, nowYear: Int
    ) {
        let now = HTTPDate.parse("Mon, 01 Jun \(nowYear) 00:00:00 GMT")
        #expect(
            HTTPDate.parse("Sunday, 06-Nov-\(digits) 08:49:37 GMT", now: now)
                == HTTPDate.parse("Sun, 06 Nov \(year) 08:49:37 GMT"))
    }

    @Test(arguments: [
        "", "0", "-1", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 EST", "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 32 Jan 1994 08:49:37 GMT", "Sun, 29 Feb 2023 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 31 Apr 2023 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
        "Xyz, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 08-49-37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun Nov  6 08:49:37 94  ", "Sun Nov 6 08:49:37 1994 ", "Sun Nov  6 08:49:37 -994",
        "1994-11-06T08:49:37Z      ", "Sun, 06 Nov 1994 +8:49:37 GMT",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "ééé, ééééééééééé", "Sunday, 06-Nov-94 08:49:37 GMTX",
    ])
    func `other text is not a date`(text: String) {
        #expect(HTTPDate.parse(text) == nil)
    }

    @Test func `a date with random changes never traps`() {
        var random = SeededNumbers(seed: 6)
        let samples = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Wednesday, 09-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ]
        for sample in samples {
            for _ in 0..<2000 {
                var bytes = Array(sample.utf8)
                bytes[Int.random(in: bytes.indices, using: &random)] =
                    UInt8.random(in: 0...127, using: &random)
                bytes.removeLast(Int.random(in: 0...9, using: &random))
                _ = HTTPDate.parse(String(decoding: bytes, as: UTF8.self), now: Int64.max)
            }
        }
    }
}

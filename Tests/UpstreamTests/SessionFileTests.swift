import Testing
import URISyntax
@testable import Upstream

@Suite struct `Kept TLS sessions` {
    private static let origin = Origin(scheme: .https, host: "film.test", port: 443)
    private static let now: Int64 = 1_800_000_000

    private static func read(_ text: String, trust: String = "") -> SessionFile? {
        SessionFile(text, trust: trust, now: now)
    }

    @Test func `written sessions are parsed`() {
        var file = SessionFile(trust: "/etc/ca.pem")
        for length in 1...64 {
            let origin = Origin(scheme: .https, host: "h\(length).test", port: 8_443)
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 37 + length) }
            file.keep(bytes, of: origin, until: Self.now + 60, now: Self.now)
        }
        let text = file.text(now: Self.now)
        #expect(Self.read(text, trust: "/etc/ca.pem") == file)
        #expect(file.tickets.count == 64)
    }

    @Test func `sessions that expired, or were made with other trust, are dropped`() {
        var file = SessionFile(trust: "")
        file.keep([1, 2], of: Self.origin, until: Self.now + 60, now: Self.now)
        let text = file.text(now: Self.now)
        #expect(SessionFile(text, trust: "", now: Self.now + 60)?.tickets.isEmpty == true)
        #expect(Self.read(text, trust: "/etc/ca.pem")?.tickets.isEmpty == true)
        #expect(file.session(of: Self.origin, now: Self.now + 59) == [1, 2])
        #expect(file.session(of: Self.origin, now: Self.now + 60) == nil)
        #expect(file.text(now: Self.now + 60).split(separator: "\n").count == 2)
    }

    @Test func `no session is stored for longer than a day`() {
        var file = SessionFile(trust: "")
        file.keep([1], of: Self.origin, until: .max, now: Self.now)
        #expect(file.session(of: Self.origin, now: Self.now + 86_399) == [1])
        #expect(file.session(of: Self.origin, now: Self.now + 86_400) == nil)
        let text = "sluice TLS sessions 1\ntrust \nhttps://film.test \(Int64.max) AAAA\n"
        #expect(Self.read(text)?.tickets.isEmpty == true)
    }

    @Test func `the number of sessions and their size are limited`() {
        var file = SessionFile(trust: "")
        let long = [UInt8](repeating: 0, count: SessionFile.mostBytes + 1)
        file.keep(long, of: Self.origin, until: Self.now + 60, now: Self.now)
        #expect(file.tickets.isEmpty)
        for number in 0..<1_000 {
            let origin = Origin(scheme: .https, host: "h\(number).test", port: 443)
            file.keep([1], of: origin, until: Self.now + 60 + Int64(number), now: Self.now)
        }
        #expect(file.tickets.count == SessionFile.mostTickets)
        #expect(
            file.session(of: Origin(scheme: .https, host: "h999.test", port: 443), now: Self.now)
                != nil)
    }

    @Test(arguments: [
        "", "\n", "sluice TLS sessions 2\ntrust \n", "sluice TLS sessions 1",
        "\u{0}\u{1}\u{2}\n\n\n",
    ])
    func `a file of another format is ignored`(text: String) {
        #expect(Self.read(text)?.tickets.isEmpty ?? true)
    }

    @Test(arguments: [
        "https://film.test 1800000060", "http://film.test 1800000060 AAAA",
        "film.test 1800000060 AAAA", "https://film.test -1 AAAA", "https://film.test x AAAA",
        "https://film.test 1800000060 A\u{e9}AA", "https://film.test 1800000060 A",
        "https://film.test 99999999999999999999 AAAA", "https://film.test 1800000060 AAAA more",
    ])
    func `an invalid line is skipped`(line: String) {
        let text = "sluice TLS sessions 1\ntrust \n\(line)\nhttps://b.test 1800000060 AAAA\n"
        #expect(Self.read(text)?.tickets.keys.map(\.host) == ["b.test"])
    }
}

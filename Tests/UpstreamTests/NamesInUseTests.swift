// Names that are resolved again while they are in use, and how connections begin.
import Glibc
import HTTP
import Posix
import Synchronization
import Testing
import URISyntax
@testable import Upstream

@Suite struct `Names in use` {
    private static let origin = Origin(scheme: .http, host: "film.test", port: 80)

    private static func at(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 1_000_000_000_000 + seconds * 1_000_000_000)
    }

    private static func table() -> NamesInUse {
        var table = NamesInUse(life: .seconds(60 as Int64))
        #expect(table.use(origin, over: .shared, now: at(0)) == nil)
        return table
    }

    @Test func `a name in use is resolved again after half of its lifetime`() {
        var table = Self.table()
        #expect(table.due(now: Self.at(29)) == [])
        #expect(table.due(now: Self.at(30)) == ["film.test"])
        // Once only, until it is used again.
        #expect(table.due(now: Self.at(60)) == [])
        _ = table.use(Self.origin, over: .shared, now: Self.at(61))
        #expect(table.due(now: Self.at(62)) == ["film.test"])
    }

    @Test func `new addresses are passed once to the connections of each kind`() {
        var table = Self.table()
        table.take(["192.0.2.1", "2001:db8::1"], of: "film.test", now: Self.at(30))
        for kind in ConnectionKind.allCases {
            let first = table.use(Self.origin, over: kind, now: Self.at(31))
            #expect(first == "+film.test:80:192.0.2.1,[2001:db8::1]")
            #expect(table.use(Self.origin, over: kind, now: Self.at(32)) == nil)
        }
    }

    @Test func `former addresses are used for an hour while the resolver fails`() {
        var table = Self.table()
        table.connected(Self.origin, to: "192.0.2.7", now: Self.at(1))
        for second in stride(from: Int64(30), through: 3_600, by: 30) {
            table.take(nil, of: "film.test", now: Self.at(second))
            let handed = table.use(Self.origin, over: .shared, now: Self.at(second))
            #expect(handed == "+film.test:80:192.0.2.7")
        }
        table.take(nil, of: "film.test", now: Self.at(3_630))
        #expect(table.use(Self.origin, over: .shared, now: Self.at(3_630)) == nil)
    }

    @Test func `libcurl resolves a name that is used again after its lifetime`() {
        var table = Self.table()
        table.take(["192.0.2.1"], of: "film.test", now: Self.at(30))
        #expect(table.use(Self.origin, over: .shared, now: Self.at(91)) == nil)
        #expect(!table.areInUse(now: Self.at(152)) && table.areInUse(now: Self.at(120)))
    }

    @Test func `addresses are not names, and the table is limited`() {
        var table = NamesInUse(life: .seconds(60 as Int64))
        for host in ["192.0.2.1", "2001:db8::1"] {
            let origin = Origin(scheme: .http, host: host, port: 80)
            #expect(table.use(origin, over: .shared, now: Self.at(0)) == nil)
        }
        #expect(table.due(now: Self.at(60)) == [])
        for number in 0..<1_000 {
            let origin = Origin(scheme: .http, host: "h\(number).test", port: 80)
            _ = table.use(origin, over: .shared, now: Self.at(0))
        }
        #expect(table.due(now: Self.at(60)).count == 256)
    }

    /// Returns addresses in order, and the last one permanently.
    private final class Resolver: Sendable {
        let answers: [[String]?]
        let asked = Mutex(0)

        init(_ answers: [[String]?]) { self.answers = answers }

        func look(_ host: String) -> [String]? {
            asked.withLock { asked in
                asked += 1
                return answers[min(asked, answers.count) - 1]
            }
        }
    }

    @Test func `connections use the new address, also while the resolver fails`() throws {
        // libcurl itself resolves every such name to 127.0.0.1.
        let host = "film.localhost"
        let origin = try TestOrigin { exchange in
            exchange.respond(body: Array("x".utf8))
            return .close
        }
        defer { origin.stop() }
        let resolver = Resolver([["127.0.0.1"], ["127.0.0.2"], nil])
        let harness = try Harness {
            // libcurl counts in whole seconds.
            $0.dnsCache = .seconds(3 as Int64)
            $0.lookUp = { resolver.look($0) }
        }
        defer { harness.stop() }
        func fetch() throws -> Record { try harness.fetch(origin.url("/", host: host)) }
        #expect(try fetch().timings?.hop.address?.host == "127.0.0.1")
        // The second address has no listener: if the connection is refused, the address was used.
        var failure: UpstreamError?
        comesTrue(within: .seconds(60), pausing: .milliseconds(20)) {
            failure = (try? fetch())?.failure
            return failure != nil
        }
        #expect(failure?.kind == .connect)
        let asked = resolver.asked.withLock { $0 }
        #expect(asked >= 2)
        // The resolver fails from now on, for longer than libcurl keeps an address.
        comesTrue(within: .seconds(60), pausing: .milliseconds(20)) {
            #expect((try? fetch())?.failure?.kind == .connect)
            return resolver.asked.withLock { $0 } >= asked + 3
        }
    }
}

@Suite struct `How connections begin` {
    @Test(arguments: [false, true])
    func `TCP Fast Open is used if the setting allows it`(isOn: Bool) throws {
        let origin = try TestOrigin { exchange in
            exchange.respond(body: Array("x".utf8))
            return .keep
        }
        defer { origin.stop() }
        let harness = try Harness { $0.usesFastOpen = isOn }
        defer { harness.stop() }
        #expect(try harness.fetch(origin.url()).status == 200)
        // TCP_FASTOPEN_CONNECT of tcp(7), which Glibc does not name.
        let found = optionsOfConnections(to: origin.port, CInt(IPPROTO_TCP), 30)
        #expect(found == [isOn ? 1 : 0])
    }

    /// The traffic class of this process's connections to a port.
    private static func trafficClasses(to port: UInt16) -> [CInt] {
        optionsOfConnections(to: port, CInt(IPPROTO_IP), IP_TOS)
    }

    @Test(arguments: [false, true])
    func `packets are marked by lane, also on reused connections`(isOn: Bool) throws {
        let origin = try TestOrigin { exchange in
            exchange.respond(body: Array("x".utf8))
            return .keep
        }
        defer { origin.stop() }
        let harness = try Harness { $0.marksPackets = isOn }
        defer { harness.stop() }
        for (lane, mark) in [
            (Lane.background, CInt(0x04)), (.playback, 0x68), (.prefetch, 0), (.express, 0x68),
        ] {
            #expect(try harness.fetch(origin.url(), { $0.lane = lane }).status == 200)
            #expect(Self.trafficClasses(to: origin.port) == [isOn ? mark : 0], "\(lane)")
        }
    }

    @Test func `a transfer that a player joins is marked as playback`() throws {
        let origin = try TestOrigin { exchange in
            exchange.respond(body: Array("x".utf8))
            return .keep
        }
        defer { origin.stop() }
        let harness = try Harness { $0.marksPackets = true }
        defer { harness.stop() }
        let seen = Mutex<[[CInt]]>([])
        let port = origin.port
        let script = Script(onHead: { transfer in
            seen.withLock { $0.append(Self.trafficClasses(to: port)) }
            transfer.raise(to: .playback)
            seen.withLock { $0.append(Self.trafficClasses(to: port)) }
        })
        #expect(
            try harness.fetch(origin.url(), { $0.lane = .background }, script: script).status == 200
        )
        #expect(seen.withLock { $0 } == [[0x04], [0x68]])
    }

    @Test func `early data requires a libcurl that supports it`() {
        #expect(earlyDataOption(version: 0x075801) == 0)
        #expect(earlyDataOption(version: 0x080d00) == 64)
    }

    @Test(arguments: [
        (
            "DoH request Couldn't connect to server",
            LookupFault.server("Couldn't connect to server")
        ),
        ("DoH: Too small type A for a.test", .server("its answer is no DNS message (Too small)")),
        ("DoH: Bad RCODE type AAAA for a.test", .noAddress),
        ("DoH: No content type A for a.test", .noAddress),
        ("DoH Host name: a.test", nil), ("DoH: ", nil), ("", nil),
    ])
    func `the error of a lookup tells resolver failures from unknown names`(
        message: String, fault: LookupFault?
    ) {
        #expect(LookupFault(message: message) == fault)
    }
}

// What transfers record about themselves, against an origin on this machine.
import HTTP
import Posix
import Testing
import URISyntax
import Upstream

@Suite struct `What transfers cost` {
    @Test func `each hop counts for its own origin, with its times and connection`() throws {
        let target = try TestOrigin {
            $0.respond(200, body: [1, 2, 3]); return .keep
        }
        let place = target.url("/there")
        let origin = try TestOrigin {
            $0.respond(302, ["Location: \(place)"]); return .keep
        }
        let harness = try Harness()
        let trace = TransferTrace()
        for _ in 0..<2 {
            let record = try harness.fetch(origin.url()) { $0.trace = trace }
            #expect(record.body == [1, 2, 3])
        }
        let figures = try #require(harness.figures())
        for (port, bytes) in [(origin.port, Int64(0)), (target.port, 6)] {
            let found = figures.origins[Origin(scheme: .http, host: "127.0.0.1", port: port)]
            let row = try #require(found)
            #expect(row.requests == 2 && row.errors == 0 && row.bytes == bytes)
            #expect(row.connections.new == 1 && row.connections.reused == 1)
            #expect(row.version == .http11 && row.address?.host == "127.0.0.1")
            let counts = TransferPhase.allCases.map { row.histogram(of: $0).count }
            #expect(counts == [2, 1, 1, 0, 2, 2])
        }
        let report = try #require(trace.report)
        #expect(report.tries == 4 && report.latest.connection == .reused)
        #expect(report.latest[.firstByte] != nil && report.latest[.tls] == nil)
        #expect(figures.counts(of: .connect, in: .playback).counts.reduce(0, +) == 2)
        #expect(figures.counts(of: .connect, in: .express).counts.reduce(0, +) == 0)
        harness.stop()
        origin.stop()
        target.stop()
    }

    @Test func `a server error, an incomplete body and a refused connection are errors`() throws {
        let origin = try TestOrigin {
            switch $0.target {
            case "/503": $0.respond(503)
            case "/404": $0.respond(404)
            default:
                $0.send("HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nshort")
                return .close
            }
            return .keep
        }
        let harness = try Harness()
        for path in ["/503", "/404", "/cut"] { _ = try harness.fetch(origin.url(path)) }
        #expect(try harness.fetch("http://127.0.0.1:1/").failure?.kind == .connect)
        let origins = try #require(harness.figures()).origins
        let row = try #require(origins[Origin(scheme: .http, host: "127.0.0.1", port: origin.port)])
        #expect(row.requests == 3 && row.errors == 2)
        // An incomplete body has no end.
        #expect(row.histogram(of: .lastByte).count == 2)
        let refused = try #require(origins[Origin(scheme: .http, host: "127.0.0.1", port: 1)])
        #expect(refused.requests == 1 && refused.errors == 1 && refused.connections.new == 0)
        harness.stop()
        origin.stop()
    }

    @Test func `a held request does not count for the origin's speed`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: [1])
            return .keep
        }
        let harness = try Harness()
        let trace = TransferTrace()
        _ = try harness.fetch(origin.url()) {
            $0.isHeld = true
            $0.trace = trace
        }
        let origins = try #require(harness.figures()).origins
        let row = try #require(origins[Origin(scheme: .http, host: "127.0.0.1", port: origin.port)])
        #expect(row.requests == 1 && row.histogram(of: .firstByte).count == 0)
        #expect(trace.report?.latest[.firstByte] != nil)
        harness.stop()
        origin.stop()
    }

    @Test func `a cancelled transfer is not an error of the origin`() throws {
        let origin = try TestOrigin {
            $0.holdOpen(); return .close
        }
        let harness = try Harness()
        let probe = try harness.start(origin.url())
        #expect(comesTrue { origin.requests.count == 1 })
        probe.act { $0.cancel() }
        probe.wait()
        let origins = try #require(harness.figures()).origins
        let row = try #require(origins[Origin(scheme: .http, host: "127.0.0.1", port: origin.port)])
        #expect(row.requests == 1 && row.errors == 0 && row.connections.new == 1)
        #expect(row.histogram(of: .firstByte).count == 0)
        harness.stop()
        origin.stop()
    }

    @Test func `a request repeated on a new connection counts as two attempts`() throws {
        let origin = try TestOrigin { exchange in
            guard exchange.number == 1 else { exchange.respond(200, body: [1]); return .keep }
            return .close
        }
        let harness = try Harness()
        _ = try harness.fetch(origin.url())
        let trace = TransferTrace()
        let record = try harness.fetch(origin.url()) { $0.trace = trace }
        #expect(record.body == [1] && trace.report?.tries == 2)
        #expect(trace.report?.latest.connection == .new)
        harness.stop()
        origin.stop()
    }
}

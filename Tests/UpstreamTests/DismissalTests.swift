import Synchronization
import Testing
import URISyntax
@testable import Upstream

/// Transfers whose body is not needed once the head is known.
@Suite struct DismissalTests {
    private let dismissing = Script(onHead: { $0.dismiss() })

    @Test(arguments: [
        "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 404 X\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 503 X\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 304 X\r\n\r\n",
    ])
    func `the rest of a short body is read and its connection used again`(
        response: String
    ) throws {
        let origin = try TestOrigin {
            $0.send(response); return .keep
        }
        let harness = try Harness()
        for _ in 0..<3 {
            let record = try harness.fetch(origin.url("/"), script: dismissing)
            #expect(record.failure == nil && record.heads.count == 1 && record.body.isEmpty)
        }
        #expect(origin.requests.count == 3 && origin.connections == 1)
        #expect(harness.statistics()?.slotsInUse == 0)
        harness.stop()
        origin.stop()
    }

    @Test func `its bytes count as bytes of the origin`() throws {
        let origin = try TestOrigin {
            $0.respond(404, body: [1, 2, 3]); return .keep
        }
        let harness = try Harness()
        let url = try AbsoluteURL(origin.url("/"))
        _ = try harness.fetch(url.text, script: dismissing)
        #expect(harness.figures()?.origins[url.origin]?.bytes == 3)
        harness.stop()
        origin.stop()
    }

    @Test(arguments: [
        "HTTP/1.1 404 X\r\nContent-Length: 70000\r\n\r\nabc",
        "HTTP/1.1 404 X\r\nConnection: close\r\nContent-Length: 9\r\n\r\nabc",
        "HTTP/1.1 404 X\r\n\r\nabc",
    ])
    func `a body whose end is far, or ends the connection, is not read`(response: String) throws {
        let origin = try TestOrigin {
            $0.send(response)
            $0.holdOpen()
            return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/"), script: dismissing)
        #expect(record.failure?.kind == .cancelled && record.body.isEmpty)
        #expect(harness.statistics()?.openHandles == 0)
        harness.stop()
        origin.stop()
    }

    @Test func `a body of unknown length is read up to a limit`() throws {
        let origin = try TestOrigin {
            $0.send("HTTP/1.1 404 X\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n")
            $0.send([UInt8](repeating: 1, count: 200_000))
            $0.holdOpen()
            return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/"), script: dismissing)
        #expect(record.failure?.kind == .cancelled && record.body.isEmpty)
        harness.stop()
        origin.stop()
    }

    @Test func `a body that trickles is not read to its end`() throws {
        let hasEnded = Atomic(false)
        let origin = try TestOrigin { exchange in
            // No byte is late, and all of them are fewer than are read for the connection.
            exchange.send("HTTP/1.1 404 X\r\nContent-Length: 60000\r\n\r\n")
            comesTrue {
                exchange.send([1])
                return hasEnded.load(ordering: .acquiring)
            }
            return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/"), script: dismissing)
        #expect(record.failure?.kind == .cancelled)
        hasEnded.store(true, ordering: .releasing)
        harness.stop()
        origin.stop()
    }

    /// An account with one connection may count an idle one, too.
    @Test(arguments: [(403, true), (404, false)])
    func `the connection of a possible refusal beside another transfer is closed`(
        status: Int, isClosed: Bool
    ) throws {
        let origin = try TestOrigin {
            if $0.target == "/long" {
                $0.send("HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nabc")
                $0.holdOpen()
                return .close
            }
            $0.respond(status)
            return .keep
        }
        let harness = try Harness()
        let long = try harness.start(origin.url("/long"))
        long.wait("its bytes") { $0.body.count == 3 }
        let record = try harness.fetch(origin.url("/refused"), script: dismissing)
        #expect((record.failure?.kind == .cancelled) == isClosed)
        harness.stop()
        origin.stop()
    }

    @Test func `a refused transfer is not repeated because of a dismissed one`() throws {
        let origin = try TestOrigin {
            let status = $0.target == "/rest" ? 404 : 403
            $0.send("HTTP/1.1 \(status) X\r\nContent-Length: 9\r\n\r\nabc")
            $0.holdOpen()
            return .close
        }
        let hasTrial = Atomic(false)
        let harness = try Harness()
        let rest = try harness.start(origin.url("/rest"), lane: .prefetch, dismissing)
        rest.wait("its head") { !$0.heads.isEmpty }
        let script = Script(onHead: { transfer in
            let host = transfer.client?.beginTrial(transfer, lingering: [])
            hasTrial.store(host != nil, ordering: .releasing)
            transfer.cancel()
        })
        let record = try harness.fetch(origin.url("/refused"), script: script)
        let wasTried = hasTrial.load(ordering: .acquiring)
        #expect(record.status == 403 && !wasTried)
        harness.stop()
        origin.stop()
    }

    @Test func `a transfer that is dismissed before its head is cancelled`() throws {
        let origin = try TestOrigin {
            $0.holdOpen(); return .close
        }
        let harness = try Harness()
        let probe = try harness.start(origin.url("/"))
        #expect(comesTrue { !origin.requests.isEmpty })
        probe.act { $0.dismiss() }
        #expect(probe.wait().failure?.kind == .cancelled)
        harness.stop()
        origin.stop()
    }
}

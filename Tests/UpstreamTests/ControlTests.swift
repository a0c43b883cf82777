import Glibc
import HTTP
import Posix
import Synchronization
import Testing
import URISyntax
import Upstream

/// Cancelling, pausing and sharing of transfers.
@Suite struct ControlTests {
    /// An origin that sends a head and three bytes of ten, and then waits.
    private func hanging() throws -> TestOrigin {
        try TestOrigin {
            if $0.target.hasPrefix("/quick") {
                $0.respond(200, body: [1])
                return .keep
            }
            if !$0.target.hasPrefix("/silent") {
                $0.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            }
            $0.holdOpen()
            return .close
        }
    }

    enum Moment: CaseIterable { case start, silent, head, bytes, afterBytes }

    @Test(arguments: Moment.allCases)
    func `a cancelled transfer ends once, in any state`(moment: Moment) throws {
        let origin = try hanging()
        let harness = try Harness()
        let script = Script(
            onStart: { if moment == .start { $0.cancel() } },
            onHead: { if moment == .head { $0.cancel() } },
            onBytes: { transfer, _ in
                if moment == .bytes { transfer.cancel() }
            })
        let probe = try harness.start(origin.url(moment == .silent ? "/silent" : "/"), script)
        if moment == .silent {
            #expect(comesTrue { !origin.requests.isEmpty })
            probe.act { $0.cancel() }
        }
        if moment == .afterBytes {
            probe.wait("bytes") { $0.body.count == 3 }
            probe.act { transfer in
                transfer.cancel()
                transfer.cancel()
            }
        }
        let record = probe.wait()
        #expect(record.failure?.kind == .cancelled && record.results.count == 1)
        #expect(harness.statistics()?.slotsInUse == 0 && harness.statistics()?.openHandles == 0)
        #expect(try harness.fetch(origin.url("/quick")).body == [1])
        harness.stop()
        origin.stop()
    }

    @Test(arguments: [(503, 1), (404, 0)])
    func `a response of 5xx counts as an error of its origin, also if it is cancelled at its head`(
        status: Int, errors: Int
    ) throws {
        let origin = try TestOrigin {
            $0.respond(status, body: [1]); return .keep
        }
        let harness = try Harness()
        let url = try AbsoluteURL(origin.url("/"))
        let probe = harness.start(
            TransferRequest(url: url), Script(onHead: { $0.cancel() }))
        #expect(probe.wait().failure?.kind == .cancelled)
        let row = try #require(harness.figures()?.origins[url.origin])
        #expect(row.requests == 1 && row.errors == errors)
        harness.stop()
        origin.stop()
    }

    @Test func `a queued transfer that is cancelled never reaches the origin`() throws {
        let origin = try hanging()
        let harness = try Harness { $0.slots = 1 }
        let first = try harness.start(origin.url("/one"))
        first.wait("its bytes") { $0.body.count == 3 }
        let second = try harness.start(origin.url("/two"))
        second.act { $0.cancel() }
        let record = second.wait()
        #expect(record.failure?.kind == .cancelled && record.starts == 0)
        #expect(origin.requests.count == 1)
        harness.stop()
        origin.stop()
    }

    @Test func `a transfer paused after accepting bytes continues where it stopped`() throws {
        let sent = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        let origin = try TestOrigin {
            $0.respond(200, body: sent); return .keep
        }
        let harness = try Harness()
        var request = TransferRequest(url: try AbsoluteURL(origin.url("/")))
        request.timeouts.stall = .milliseconds(200)
        let probe = harness.start(
            request,
            Script(onBytes: { transfer, offer in
                if offer == 1 { transfer.pause() }
            }))
        probe.wait("the pause") { $0.offers == 1 }
        usleep(500_000)  // longer than the stall limit, which a pause suspends
        #expect(probe.record.withLock { $0.offers == 1 && $0.results.isEmpty })
        probe.act { $0.resume() }
        let record = probe.wait()
        #expect(record.body == sent && record.failure == nil)
        harness.stop()
        origin.stop()
    }

    @Test func `a thousand transfers in a row share one connection`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: [1, 2]); return .keep
        }
        let harness = try Harness()
        for _ in 0..<1000 { #expect(try harness.fetch(origin.url("/")).body == [1, 2]) }
        #expect(origin.connections == 1)
        #expect(harness.figures()?.connections.new == 1)
        harness.stop()
        origin.stop()
    }

    @Test func `a connection that the origin closed while idle causes no failure`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: [1]); return .close
        }
        let harness = try Harness()
        for _ in 0..<5 {
            #expect(try harness.fetch(origin.url("/")).body == [1])
            // No figure tells that the close has arrived.
            usleep(20_000)
        }
        #expect(origin.connections == 5)
        harness.stop()
        origin.stop()
    }

    @Test func `a connection closed as the next request goes out is retried once`() throws {
        let origin = try TestOrigin {
            // The second request is read and not answered: the origin has already closed the
            // connection.
            if $0.number == 1 { return .close }
            $0.respond(200, body: [1])
            return .keep
        }
        let harness = try Harness()
        _ = try harness.fetch(origin.url("/"))
        #expect(try harness.fetch(origin.url("/")).body == [1])
        #expect(origin.requests.count == 3 && origin.connections == 2)
        harness.stop()
        origin.stop()
    }

    @Test func `no more transfers than slots run, and the rest follow`() throws {
        let running = Mutex((now: 0, most: 0))
        let origin = try TestOrigin {
            running.withLock { state in
                state.now += 1
                state.most = max(state.most, state.now)
            }
            $0.pause(milliseconds: 30)
            running.withLock { $0.now -= 1 }
            $0.respond(200, body: [1])
            return .keep
        }
        let harness = try Harness { $0.slots = 8 }
        let probes = try (0..<40).map { try harness.start(origin.url("/\($0)")) }
        for probe in probes { #expect(probe.wait().body == [1]) }
        #expect(running.withLock { $0.most } <= 8)
        harness.stop()
        origin.stop()
    }

    @Test func `an express transfer starts immediately while all slots are taken`() throws {
        let origin = try hanging()
        let harness = try Harness { $0.slots = 4 }
        let busy = try (0..<8).map { try harness.start(origin.url("/\($0)")) }
        for probe in busy.prefix(4) { probe.wait("bytes") { $0.body.count == 3 } }
        // The four transfers that have a slot never end.
        var request = TransferRequest(url: try AbsoluteURL(origin.url("/quick")))
        request.lane = .express
        #expect(harness.start(request).wait().body == [1])
        harness.stop()
        origin.stop()
    }

    @Test func `a stream of events that runs holds no slot`() throws {
        let origin = try TestOrigin {
            if $0.target == "/quick" {
                $0.respond(200, body: [1])
                return .keep
            }
            $0.send(
                """
                HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n
                """)
            $0.holdOpen()
            return .close
        }
        let harness = try Harness { $0.slots = 1 }
        var request = TransferRequest(url: try AbsoluteURL(origin.url("/events")))
        request.isTransparent = true
        let events = harness.start(request)
        events.wait("bytes") { $0.body.count == 3 }
        #expect(try harness.fetch(origin.url("/quick")).body == [1])
        #expect(events.record.withLock { $0.results.isEmpty })
        #expect(comesTrue { harness.statistics()?.slotsInUse == 0 })
        harness.stop()
        origin.stop()
    }

    @Test func `playback preempts a prefetch`() throws {
        let origin = try hanging()
        let harness = try Harness { $0.slots = 2 }
        let prefetch = try (0..<2).map { try harness.start(origin.url("/\($0)"), lane: .prefetch) }
        for probe in prefetch { probe.wait("bytes") { $0.body.count == 3 } }
        #expect(try harness.fetch(origin.url("/quick")).body == [1])
        let record = prefetch[1].wait()
        #expect(record.failure?.kind == .preempted && record.failure?.bytesReceived == 3)
        #expect(prefetch[0].record.withLock { $0.results.isEmpty })
        harness.stop()
        origin.stop()
    }

    @Test func `a prefetch promoted to playback keeps its slot`() throws {
        let origin = try hanging()
        let harness = try Harness { $0.slots = 1 }
        let prefetch = try harness.start(origin.url("/1"), lane: .prefetch)
        prefetch.wait("bytes") { $0.body.count == 3 }
        prefetch.act { $0.raise(to: .playback) }
        let playback = try harness.start(origin.url("/quick"))
        #expect(comesTrue { harness.statistics()?.waiting.reduce(0, +) == 1 })
        #expect(playback.record.withLock { $0.starts } == 0)
        prefetch.act { $0.cancel() }
        #expect(prefetch.wait().failure?.kind == .cancelled)
        #expect(playback.wait().body == [1])
        harness.stop()
        origin.stop()
    }

    @Test func `a waiting prefetch that goes first overtakes those that came before it`() throws {
        let origin = try hanging()
        let harness = try Harness { $0.slots = 1 }
        let busy = try harness.start(origin.url("/1"), lane: .prefetch)
        busy.wait("bytes") { $0.body.count == 3 }
        let waiting = try (0..<3).map {
            try harness.start(origin.url("/quick\($0)"), lane: .prefetch)
        }
        waiting[2].act { $0.goFirst() }
        busy.act { $0.cancel() }
        for probe in waiting { #expect(probe.wait().body == [1]) }
        let targets = origin.requests.compactMap { $0.first?.split(separator: " ")[1] }
        #expect(targets == ["/1", "/quick2", "/quick0", "/quick1"])
        harness.stop()
        origin.stop()
    }

    @Test func `a request that is sent again overtakes those that had no slot yet`() throws {
        let origin = try hanging()
        let harness = try Harness { $0.slots = 1 }
        let busy = try harness.start(origin.url("/1"))
        busy.wait("bytes") { $0.body.count == 3 }
        let first = try harness.start(origin.url("/quick0"))
        var again = TransferRequest(url: try AbsoluteURL(origin.url("/quick1")))
        again.isReturning = true
        let second = harness.start(again)
        #expect(comesTrue { harness.statistics()?.waiting.reduce(0, +) == 2 })
        busy.act { $0.cancel() }
        for probe in [first, second] { #expect(probe.wait().body == [1]) }
        let targets = origin.requests.compactMap { $0.first?.split(separator: " ")[1] }
        #expect(targets == ["/1", "/quick1", "/quick0"])
        harness.stop()
        origin.stop()
    }

    @Test func `a redirect to a host at its limit waits for it`() throws {
        let origin = try TestOrigin { exchange in
            switch exchange.target {
            case "/start":
                let port = exchange.field("X-Port") ?? ""
                exchange.respond(302, ["Location: http://localhost:\(port)/end"])
            case "/end": exchange.respond(200, body: [1])
            default:
                exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
                exchange.holdOpen()
                return .close
            }
            return .keep
        }
        let harness = try Harness { $0.perHostLimit = 1 }
        let busy = try harness.start(origin.url("/", host: "localhost"))
        busy.wait("bytes") { $0.body.count == 3 }
        var request = TransferRequest(url: try AbsoluteURL(origin.url("/start")))
        request.fields = ["X-Port": "\(origin.port)"]
        let redirected = harness.start(request)
        redirected.wait("the redirect") { !$0.redirects.isEmpty }
        // It has given its slot back, and not gone on.
        #expect(comesTrue { harness.statistics()?.slotsInUse == 1 })
        #expect(origin.requests.count == 2)
        busy.act { $0.cancel() }
        let record = redirected.wait()
        #expect(record.body == [1] && record.starts == 1)
        harness.stop()
        origin.stop()
    }

    @Test func `waiting for a slot is limited in time, for playback only`() throws {
        let origin = try hanging()
        let harness = try Harness {
            $0.slots = 1
            $0.slotWait = .milliseconds(200)
        }
        let first = try harness.start(origin.url("/1"))
        first.wait("bytes") { $0.body.count == 3 }
        var request = TransferRequest(url: try AbsoluteURL(origin.url("/2")))
        request.lane = .background
        let ahead = harness.start(request)
        let error = try harness.start(origin.url("/3")).wait().failure
        #expect(error?.kind == .slotTimeout && error?.isRetryable == false)
        #expect(error?.message.contains("all 1 transfers") == true)
        // A prefetch keeps waiting, until a player waits for it.
        #expect(harness.statistics()?.waiting[Lane.background.rawValue] == 1)
        ahead.act { $0.raise(to: .playback) }
        #expect(ahead.wait().failure?.kind == .slotTimeout)
        harness.stop()
        origin.stop()
    }

    @Test func `waiting for an express place is limited in time, and names its option`() throws {
        let origin = try hanging()
        let harness = try Harness {
            $0.slots = 1
            $0.expressCap = 1
            $0.slotWait = .milliseconds(200)
        }
        // The second one takes the slot.
        for path in ["/1", "/2"] {
            let holding = try harness.start(origin.url(path), lane: .express)
            holding.wait("bytes") { $0.body.count == 3 }
        }
        let error = try harness.start(origin.url("/3"), lane: .express).wait().failure
        #expect(error?.kind == .slotTimeout)
        #expect(error?.message.contains("all 1 transfers") == true)
        #expect(error?.message.contains("raise --express-slots") == true)
        harness.stop()
        origin.stop()
    }

    @Test func `a full queue rejects immediately`() throws {
        let origin = try hanging()
        let harness = try Harness {
            $0.slots = 1
            $0.queueLimit = 1
        }
        let first = try harness.start(origin.url("/1"))
        first.wait("bytes") { $0.body.count == 3 }
        _ = try harness.start(origin.url("/2"))
        #expect(try harness.start(origin.url("/3")).wait().failure?.kind == .queueFull)
        harness.stop()
        origin.stop()
    }

    @Test func `a shutdown ends every transfer and rejects new ones`() throws {
        let origin = try hanging()
        let harness = try Harness { $0.slots = 2 }
        let probes = try (0..<5).map { try harness.start(origin.url("/\($0)")) }
        probes[0].wait("bytes") { $0.body.count == 3 }
        harness.shutDown()
        for probe in probes { #expect(probe.wait().failure?.kind == .cancelled) }
        #expect(try harness.start(origin.url("/quick")).wait().failure?.kind == .cancelled)
        harness.stop()
        origin.stop()
    }
}

// What a client of HTTP/2 must not do to the server (RFC 9113 section 10.5).
import Glibc
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

@Suite(.timeLimit(.minutes(10)))
struct HTTP2LimitTests {
    /// Expects that the connection ends because of the client's conduct, and that the server serves
    /// others.
    private func expectsCalm(_ client: FrameClient, _ server: TestServer) {
        #expect(client.read { $0.goAway != nil })
        #expect(client.goAway?.code == .enhanceYourCalm)
        let other = server.frameClient()
        #expect(other.open())
        other.get(1, "/other")
        #expect(other.response(1).text == "/other")
        client.transport.close()
        #expect(eventually { server.server.connectionCount == 1 })
    }

    @Test func `streams that are reset immediately after opening end the connection`() throws {
        let record = Record()
        let server = try TestServer { request, _, exchange in
            guard request.path == "/held" else { return echoPath(request, [], exchange) }
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: nil))
        }
        let client = server.frameClient()
        #expect(client.open())
        for index in 0..<5_000 {
            let stream = UInt32(index * 2 + 1)
            client.get(stream, "/held")
            client.write(.reset(stream))
        }
        expectsCalm(client, server)
    }

    /// What follows the head of a POST of one byte and makes the server reset the stream.
    enum Breach: CaseIterable {
        case trailers, length

        func frame(_ stream: UInt32) -> Frame {
            switch self {
            case .trailers: .headers(stream, HeaderBlock.literal([(":path", "/")]))
            case .length: .data(stream, [1, 2], endStream: true)
            }
        }
    }

    @Test(arguments: Breach.allCases)
    func `streams that the client breaks end the connection, and reach no handler`(
        _ breach: Breach
    ) throws {
        let record = Record()
        let server = try TestServer(handler: {
            BareHandler { request, _, exchange in
                record.note(request.path)
                exchange.respond(ok(), body: .bytes(Array(request.path.utf8)))
            }
        })
        let client = server.frameClient()
        #expect(client.open())
        let fields = FrameClient.fields("POST", path: "/broken") + [("content-length", "1")]
        let head = { Frame.headers($0, HeaderBlock.literal(fields), endStream: false) }
        client.write(head(1), breach.frame(1))
        #expect(client.response(1).reset == .protocolError)
        client.get(3, "/whole")
        #expect(client.response(3).text == "/whole")
        #expect(record.all == ["/whole"])
        // As many at a time as may be open.
        for batch in 1..<100 where client.goAway == nil {
            client.write(
                (0..<50).flatMap { index -> [UInt8] in
                    let stream = UInt32((batch * 50 + index) * 2 + 1)
                    return head(stream).bytes() + breach.frame(stream).bytes()
                })
            _ = client.roundTrip()
        }
        expectsCalm(client, server)
    }

    @Test func `a malformed request does not end the responses of others at the head's deadline`()
        throws
    {
        let record = Record(), clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(limits: limits, clock: clock) { request, _, exchange in
            guard request.path == "/held" else { return echoPath(request, [], exchange) }
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: nil))
        }
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/held")
        client.get(3, "/", [("connection", "close")])
        #expect(client.response(3).reset == .protocolError)
        clock.advance(by: limits.headTimeout)
        client.get(5, "/next")
        #expect(client.response(5).text == "/next")
        #expect(record.outcomes.isEmpty && client.end == nil)
    }

    @Test(arguments: [
        Frame.ping(), Frame.settings([(Frame.Setting.initialWindowSize, 70_000)]),
        Frame.windowUpdate(0, 1), Frame.priority(1, dependsOn: 0),
        Frame.priorityUpdate(1, "u=1"), Frame(type: 0x77, payload: [1]),
    ])
    func `a flood of frames without effect ends the connection`(_ frame: Frame) throws {
        let server = try TestServer(echoPath)
        let client = server.frameClient()
        #expect(client.open())
        let flood = Array(repeating: frame.bytes(), count: 20_000).flatMap { $0 }
        // An unknown frame is ignored: it costs its sender more than the server.
        guard frame.type != 0x77 else {
            client.write(flood)
            return #expect(client.roundTrip())
        }
        client.write(flood)
        expectsCalm(client, server)
    }

    @Test func `a flood of empty content ends the connection`() throws {
        let server = try TestServer(echoPath)
        let client = server.frameClient()
        #expect(client.open())
        client.request(1, FrameClient.fields("POST"), endStream: false)
        client.write(Array(repeating: Frame.data(1, []).bytes(), count: 5_000).flatMap { $0 })
        expectsCalm(client, server)
    }

    @Test func `an endless block of fields ends the connection`() throws {
        let server = try TestServer(echoPath)
        let client = server.frameClient()
        #expect(client.open())
        client.write(.headers(1, HeaderBlock.literal(FrameClient.fields()), endHeaders: false))
        for _ in 0..<1_000 {
            client.write(.continuation(1, HeaderBlock.literal([("x", "y")]), endHeaders: false))
        }
        #expect(client.readToEnd())
    }

    @Test func `fields that expand to megabytes are answered with 431 and not stored`() throws {
        let server = try TestServer(echoPath)
        let client = server.frameClient()
        #expect(client.open())
        // One long field in the dynamic table, then a byte for each reference to it.
        let name = HeaderBlock.indexing("x-bomb", String(repeating: "b", count: 3_900))
        let bomb = Array(repeating: HeaderBlock.indexed(62), count: 10_000).flatMap { $0 }
        client.sendBlock(1, HeaderBlock.literal(FrameClient.fields()) + name + bomb)
        #expect(client.response(1).status == 431)
        client.get(3, "/fine")
        #expect(client.response(3).text == "/fine")
    }

    @Test(arguments: [true, false])
    func `blocks that expand to megabytes again and again end the connection`(
        areHeads: Bool
    ) throws {
        let server = try TestServer(echoPath)
        let client = server.frameClient()
        #expect(client.open())
        let name = HeaderBlock.indexing("x-bomb", String(repeating: "b", count: 3_900))
        let bomb = name + Array(repeating: HeaderBlock.indexed(62), count: 10_000).flatMap { $0 }
        for index in 0..<20 {
            let stream = UInt32(index * 2 + 1)
            if areHeads {
                client.sendBlock(stream, HeaderBlock.literal(FrameClient.fields()) + bomb)
            } else {
                client.request(stream, FrameClient.fields("POST"), endStream: false)
                client.sendBlock(stream, bomb)
            }
        }
        expectsCalm(client, server)
    }

    @Test func `a client that exceeds its number of streams ends its connection`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: nil))
        }
        let client = server.frameClient()
        #expect(client.open())
        let granted = try #require(client.serverSettings[Frame.Setting.maxConcurrentStreams])
        for index in 0..<granted { client.get(index * 2 + 1) }
        #expect(client.read { $0.streams.count == Int(granted) })
        client.get(granted * 2 + 1)
        #expect(client.read { $0.goAway != nil })
        #expect(client.goAway?.code == .protocolError)
        #expect(client.readToEnd())
        #expect(eventually { record.outcomes.count == Int(granted) })
    }

    @Test func `a stream whose window stays closed is reset`() throws {
        let record = Record(), clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(limits: limits, clock: clock) { request, _, exchange in
            record.note("asked")
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .bytes(pattern(1000)))
        }
        let client = server.frameClient()
        client.open([(Frame.Setting.initialWindowSize, 0)])
        client.get(1)
        #expect(eventually { record.count("asked") == 1 })
        // Checked twice: what was sent in between counts.
        for _ in 0..<2 { clock.advance(by: limits.writeTimeout) }
        #expect(client.response(1).reset == .cancel)
        #expect(eventually { record.outcomes.first?.ending == .aborted })
    }

    @Test
    func `a stream that waits for its turn is reset only when the whole connection stands still`()
        throws
    {
        let clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(limits: limits, clock: clock) { _, _, exchange in
            exchange.respond(ok(), body: .bytes(pattern(100_000)))
        }
        let client = server.frameClient()
        client.acknowledgesData = false
        // The connection's window stays at 65,535 bytes, which the more urgent response takes.
        client.open([(Frame.Setting.initialWindowSize, 1 << 20)])
        client.get(1, "/", [("priority", "u=0")])
        client.get(3, "/", [("priority", "u=7")])
        #expect(client.read { $0.streams[3] != nil && $0.streams[1]?.body.count == 65_535 })
        for round in 1...3 {
            clock.advance(by: limits.writeTimeout)
            client.write(.windowUpdate(0, 1_000))
            #expect(client.read { $0.streams[1]?.body.count == 65_535 + round * 1_000 })
        }
        #expect(client.roundTrip() && client.streams[3]?.reset == nil)
        for _ in 0..<2 { clock.advance(by: limits.writeTimeout) }
        #expect(client.response(1).reset == .cancel && client.response(3).reset == .cancel)
    }

    @Test func `content that does not arrive is answered with 408`() throws {
        let clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(limits: limits, clock: clock, echoPath)
        let client = server.frameClient()
        #expect(client.open())
        client.request(1, FrameClient.fields("POST"), endStream: false)
        client.write(.data(1, [1, 2, 3]))
        #expect(client.roundTrip())
        clock.advance(by: limits.bodyTimeout)
        #expect(client.response(1).status == 408)
    }

    @Test func `content that the handler waits for outside a turn is answered with 408`() throws {
        let record = Record(), clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(
            limits: limits, clock: clock,
            handler: {
                BareHandler { _, body, exchange in
                    exchange.loop.atRoundEnd { _ in
                        guard body?.next() == .wait else { return }
                        body?.wake = { _ in record.note("woken") }
                        record.note("waits")
                    }
                }
            })
        let client = server.frameClient()
        // All at once: the connection has no timer that was set for something else.
        client.write(FrameClient.preface + Frame.settings().bytes() + postFrame().bytes())
        #expect(eventually { record.count("waits") == 1 })
        clock.advance(by: limits.bodyTimeout)
        #expect(client.response(1).status == 408)
    }

    @Test
    func `a preface without settings, a block without an end and idleness end the connection`()
        throws
    {
        let clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(limits: limits, clock: clock, echoPath)
        let silent = server.frameClient()
        silent.write(FrameClient.preface)
        let slow = server.frameClient()
        #expect(slow.open())
        slow.write(.headers(1, HeaderBlock.literal(FrameClient.fields()), endHeaders: false))
        #expect(eventually { server.server.connectionCount == 2 })
        clock.advance(by: limits.headTimeout)
        #expect(silent.readToEnd())
        #expect(slow.readToEnd())
        let idle = server.frameClient()
        #expect(idle.open())
        idle.get(1, "/a")
        #expect(idle.response(1).text == "/a")
        clock.advance(by: limits.idleTimeout)
        #expect(idle.readToEnd())
        #expect(idle.goAway?.code == .noError)
        silent.transport.close()
        slow.transport.close()
        idle.transport.close()
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a client that reads nothing is disconnected`() throws {
        let record = Record(), clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(limits: limits, clock: clock) { _, _, exchange in
            record.note("asked")
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = server.frameClient(receiveBuffer: 4096)
        client.open([(Frame.Setting.initialWindowSize, 1 << 30)])
        client.write(.windowUpdate(0, 1 << 30))
        client.get(1)
        #expect(eventually { record.count("asked") == 1 })
        #expect(
            eventually {
                clock.advance(by: limits.writeTimeout)
                return record.outcomes.count == 1
            })
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `unread refusals end the connection before they fill memory`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: nil))
        }
        let client = server.frameClient()
        // Without an acknowledgement of the server's settings, streams beyond them are refused one
        // by one (RFC 9113 section 5.1.2), and every refusal is a frame that waits for the client.
        client.write(FrameClient.preface)
        client.write(.settings())
        let requests = (0..<5_000).flatMap { getFrame(UInt32($0 * 2 + 1)).bytes() }
        client.write(requests)
        client.acknowledgesControl = false
        #expect(client.read { $0.goAway != nil })
        #expect(client.goAway?.code == .enhanceYourCalm)
        #expect(client.readToEnd())
        #expect(eventually { server.server.connectionCount == 0 })
        #expect(record.outcomes.count == Int(client.serverSettings[3] ?? 0))
    }

    @Test func `a draining connection with unsent frames leaves the loop idle`() throws {
        let record = Record()
        var limits = ServerLimits()
        // A turn that ends because the socket is full, not because of the budget, leaves frames
        // unsent.
        limits.roundBytes = 64 << 20
        let server = try TestServer(limits: limits) { request, _, exchange in
            guard request.path == "/endless" else { return echoPath(request, [], exchange) }
            record.note("asked")
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = server.frameClient(receiveBuffer: 4096)
        client.open([(Frame.Setting.initialWindowSize, 1 << 30)])
        client.write(.windowUpdate(0, 1 << 30))
        client.get(1, "/endless")
        #expect(eventually { record.count("asked") == 1 })
        // The loop has nothing to do as soon as the socket is full.
        let isQuiet = {
            let before = server.loopTime().nanoseconds
            usleep(20_000)
            return server.loopTime().nanoseconds - before < 1_000_000
        }
        #expect(eventually(isQuiet))
        client.write(.reset(1))
        #expect(eventually { record.outcomes.count == 1 })
        server.server.drain(within: .seconds(10 as Int64), then: {})
        let before = server.loopTime().nanoseconds, start = ContinuousClock.now
        // The time in which the loop's own time is measured.
        usleep(300_000)
        let used = Duration.nanoseconds(server.loopTime().nanoseconds - before)
        #expect(used * 2 < ContinuousClock.now - start, "the loop spins while it drains")
        client.transport.close()
        #expect(eventually { server.server.connectionCount == 0 })
    }
}

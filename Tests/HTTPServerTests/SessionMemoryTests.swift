// The memory that idle HTTP/2 connections give back.
import CNGHTTP2
import Glibc
import HTTP
import Posix
import Reactor
import Testing

@testable import HTTPServer

struct SessionMemoryTests {
    @Test func `packed memory leaves no page resident, and comes back as it was`() throws {
        let memory = SessionMemory()
        let state = try #require(memory.allocate(2_928))
        let buffer = try #require(memory.allocate(16_394))
        memory.seal()
        state.storeBytes(of: 0x0102_0304_0506_0708, as: UInt64.self)
        (state + 2_920).storeBytes(of: UInt64.max, as: UInt64.self)
        (buffer + 16_393).storeBytes(of: 7, as: UInt8.self)
        #expect(memory.residentBytes > 0)

        memory.pack(isFrameSent: false)
        #expect(memory.isPacked)
        #expect(memory.residentBytes == 0)

        memory.unpack()
        #expect(!memory.isPacked)
        #expect(state.load(as: UInt64.self) == 0x0102_0304_0506_0708)
        #expect((state + 8).load(as: UInt64.self) == 0)
        #expect((state + 2_920).load(as: UInt64.self) == .max)
        #expect((buffer + 16_393).load(as: UInt8.self) == 7)
    }

    @Test func `memory full of other bytes than zero stays where it is`() throws {
        let memory = SessionMemory()
        let buffer = try #require(memory.allocate(16_394))
        memset(buffer, 1, 16_394)
        memory.pack(isFrameSent: false)
        #expect(!memory.isPacked)
        #expect(buffer.load(as: UInt8.self) == 1)
    }

    @Test func `a frame that was sent keeps no memory from being given back`() throws {
        let memory = SessionMemory()
        let state = try #require(memory.allocate(2_928))
        let frame = try #require(memory.allocate(16_394))
        memory.seal()
        state.storeBytes(of: 5, as: UInt64.self)
        memset(frame, 1, 16_394)
        memory.pack(isFrameSent: true)
        #expect(memory.isPacked && memory.residentBytes == 0)
        memory.unpack()
        #expect(state.load(as: UInt64.self) == 5)
        #expect(frame.load(as: UInt8.self) == 0)
    }

    @Test func `a block of the same length that others follow is kept`() throws {
        let memory = SessionMemory()
        let first = try #require(memory.allocate(16_394))
        let last = try #require(memory.allocate(64))
        memory.seal()
        first.storeBytes(of: 3, as: UInt8.self)
        last.storeBytes(of: 4, as: UInt8.self)
        memory.pack(isFrameSent: true)
        memory.unpack()
        #expect(first.load(as: UInt8.self) == 3 && last.load(as: UInt8.self) == 4)
    }

    @Test func `nghttp2 writes its next frame where the last one is gone`() throws {
        let memory = SessionMemory()
        var callbacks: OpaquePointer?
        #expect(nghttp2_session_callbacks_new(&callbacks) == 0)
        defer { nghttp2_session_callbacks_del(callbacks) }
        var made: OpaquePointer?
        var functions = memory.functions
        #expect(nghttp2_session_server_new3(&made, callbacks, nil, nil, &functions) == 0)
        memory.seal()
        let session = try #require(made)
        defer { withExtendedLifetime(memory) { nghttp2_session_del(session) } }

        var frame: UnsafePointer<UInt8>?
        #expect(nghttp2_submit_settings(session, 0, nil, 0) == 0)
        #expect(nghttp2_session_mem_send(session, &frame) == 9)
        let settings = try #require(frame)
        #expect(UInt32(settings[3]) == NGHTTP2_SETTINGS.rawValue)
        #expect(nghttp2_session_mem_send(session, &frame) == 0)
        #expect(nghttp2_session_want_write(session) == 0)

        memory.pack(isFrameSent: true)
        #expect(memory.isPacked)
        memory.unpack()
        #expect(settings[3] == 0)
        #expect(nghttp2_submit_ping(session, 0, nil) == 0)
        #expect(nghttp2_session_mem_send(session, &frame) == 17)
        #expect(frame.map { UInt32($0[3]) } == NGHTTP2_PING.rawValue)
    }

    @Test func `blocks move out of the pages with what they hold`() throws {
        let memory = SessionMemory()
        let first = try #require(memory.allocate(64))
        first.storeBytes(of: 42, as: UInt64.self)
        memory.seal()
        let moved = try #require(memory.resize(first, to: 100_000))
        #expect(moved.load(as: UInt64.self) == 42)
        let later = try #require(memory.resize(nil, to: 8))
        let grown = try #require(memory.resize(later, to: 80))
        memory.free(first)
        memory.free(moved)
        memory.free(grown)
        memory.free(nil)
    }

    @Test(arguments: [0, 8, 64, 4_096, 28_672], [1, 2, 3, 4, 9, 200, 40_000])
    func `packed bytes are the same bytes`(_ count: Int, _ gap: Int) {
        var random = SystemRandomNumberGenerator()
        // Zeros are a third of what stands between two gaps, and at times the end.
        var words = [UInt64](repeating: 0, count: count / 8)
        words.withUnsafeMutableBytes { bytes in
            var place = Int.random(in: 0..<gap, using: &random)
            while place < bytes.count {
                for index in place..<min(place + gap, bytes.count) {
                    bytes[index] = UInt8(max(0, Int.random(in: -128...255, using: &random)))
                }
                place += 2 * gap
            }
        }
        let packed = words.withUnsafeBytes { PackedBytes.pack($0) }
        // malloc(3) may give somewhat more than was asked for.
        #expect(packed.capacity <= packed.count * 5 / 4 + 64)
        var restored = [UInt64](repeating: 0, count: count / 8)
        restored.withUnsafeMutableBytes { PackedBytes.unpack(packed, into: $0) }
        #expect(restored == words)
    }

    @Test func `what a zero run, a pointer and a counter take`() {
        var words = [UInt64](repeating: 0, count: 3_000)
        words[2_000] = 0x0000_7F12_3456_7890
        words[2_001] = 5
        let packed = words.withUnsafeBytes { PackedBytes.pack($0) }
        #expect(
            packed == [
                0x80, 0x7D, 9, 0x90, 0x78, 0x56, 0x34, 0x12, 0x7F, 0, 0, 5,
            ])
    }

    @Test func `an idle connection rests, again after a ping, and answers as before`() throws {
        let clock = ManualClock()
        let server = try TestServer(limits: distinctLimits(), clock: clock, echoPath)
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/one", [("x-a", "field")])
        #expect(client.response(1).text == "/one")
        let delay = HTTP2ConnectionState.restDelay
        clock.advance(by: delay)
        #expect(eventually { server.server.restCount == 1 })

        #expect(client.roundTrip())
        clock.advance(by: delay)
        #expect(eventually { server.server.restCount == 2 })

        // Both tables of HPACK are as they were: the client's decoder would find other fields.
        client.get(3, "/two", [("x-a", "field")])
        #expect(client.response(3).text == "/two")
        let names = client.response(1).head.map(\.name)
        #expect(client.response(3).head.map(\.name) == names)
        #expect(client.faults.isEmpty)
        clock.advance(by: delay)
        #expect(eventually { server.server.restCount == 3 })
        client.transport.close()
        #expect(eventually { server.server.connectionCount == 0 })
    }

    /// Each response has a field of its own, as segments have dates; the last client allows a table
    /// as large as that of Chromium.
    @Test(arguments: [UInt32(4_096), 65_536])
    func `fields of many responses do not pile up in the encoder's table`(allowed: UInt32) throws {
        let server = try TestServer { request, _, exchange in
            exchange.respond(ok(("x-segment", request.path)), body: .bytes([1]))
        }
        let client = server.frameClient()
        #expect(client.open([(Frame.Setting.headerTableSize, allowed)]))
        for turn in 0..<60 {
            let stream = UInt32(2 * turn + 1)
            client.get(stream, "/segment-\(turn).m4s")
            #expect(client.response(stream).field("x-segment") == "/segment-\(turn).m4s")
            #expect(client.tableSize > 0 && client.tableSize <= 1_024)
        }
        #expect(client.faults.isEmpty)
    }

    @Test func `a resting connection is closed after the idle time with GOAWAY`() throws {
        let clock = ManualClock()
        let limits = distinctLimits()
        let server = try TestServer(limits: limits, clock: clock, echoPath)
        let client = server.frameClient()
        #expect(client.open())
        #expect(client.roundTrip())
        clock.advance(by: HTTP2ConnectionState.restDelay)
        #expect(eventually { server.server.restCount == 1 })
        clock.advance(by: limits.idleTimeout)
        #expect(client.read { $0.goAway != nil })
        #expect(client.goAway?.code == .noError)
    }

    @Test func `a connection with a held response does not rest`() {
        var state = HTTP2ConnectionState(now: .init(nanoseconds: 0), limits: ServerLimits())
        let limits = ServerLimits()
        state.enter(.idle, now: .init(nanoseconds: 0), limits: limits)
        state.beginBlock(of: 1, now: .init(nanoseconds: 1), limits: limits)
        state.endBlock(of: 1)
        let rests = state.takeRest(now: .init(nanoseconds: 60_000_000_000))
        #expect(!rests)
    }
}

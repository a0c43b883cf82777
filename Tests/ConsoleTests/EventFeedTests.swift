import HTTPServer
import Model
import Posix
import Reactor
import Testing

@testable import Console

/// The feed without a network: waiting and lost events, admission of listeners.
struct EventFeedTests {
    /// Runs `body` on a loop's thread and waits for it.
    private func onLoop(_ body: @escaping @Sendable (EventLoop) -> Void) throws {
        let thread = try LoopThread(name: "listener") { _ in }
        let done = try ThreadSemaphore()
        thread.handle.enqueue { loop in
            body(loop)
            done.signal()
        }
        #expect(done.wait(atMost: .seconds(20 as Int64)))
        thread.stopAndJoin()
    }

    private static func text(_ stream: EventStream) -> String {
        var bytes: [UInt8] = []
        while case .bytes(let part) = stream.next(limit: 1_000) {
            bytes += part
            stream.advance(by: part.count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let datum = JSONValue.object([.init("n", .number(7))])

    @Test func `an event has its name and the version`() throws {
        try onLoop { loop in
            let feed = EventFeed(isLogged: false)
            guard let stream = feed.join(on: loop) else {
                Issue.record("refused")
                return
            }
            feed.publish("request", Self.datum)
            #expect(Self.text(stream) == "event: request\ndata: {\"v\":1,\"n\":7}\n\n")
            stream.cancel()
        }
    }

    @Test func `external text cannot end an event`() {
        let text = JSONValue.object([.init("name", .text("a\n\nevent: fake\r\ndata: {}"))])
        let frame = String(decoding: EventFeed.frame("request", text), as: UTF8.self)
        #expect(frame.split(separator: "\n").count == 2)
    }

    @Test func `a slow listener loses events and learns how many`() throws {
        try onLoop { loop in
            let feed = EventFeed(isLogged: false)
            guard let stream = feed.join(on: loop) else {
                Issue.record("refused")
                return
            }
            let long = JSONValue.object([.init("t", .text(String(repeating: "x", count: 1_000)))])
            for _ in 0..<1_000 { feed.publish("request", long) }
            let text = Self.text(stream)
            #expect(text.utf8.count <= EventFeed.mostWaiting + 100)
            let received = text.components(of: "event: request")
            #expect(
                text.hasSuffix("event: lost\ndata: {\"v\":1,\"events\":\(1_000 - received)}\n\n"))
            feed.publish("request", Self.datum)
            #expect(!Self.text(stream).contains("lost"))
            stream.cancel()
        }
    }

    @Test func `an event above the limit is received, but nothing is pending beside it`() throws {
        try onLoop { loop in
            let feed = EventFeed(isLogged: false)
            guard let stream = feed.join(on: loop) else {
                Issue.record("refused")
                return
            }
            let text = String(repeating: "x", count: EventFeed.mostWaiting)
            let long = JSONValue.object([.init("t", .text(text))])
            for _ in 0..<2 { feed.publish("downloads", long) }
            feed.publish("request", Self.datum)
            let received = Self.text(stream)
            #expect(received.components(of: "event: downloads") == 1)
            #expect(received.hasSuffix("event: lost\ndata: {\"v\":1,\"events\":2}\n\n"))
            feed.publish("downloads", long)
            #expect(Self.text(stream).components(of: "event: downloads") == 1)
            stream.cancel()
        }
    }

    @Test func `at most eight listeners are admitted, and one that leaves makes room`() throws {
        try onLoop { loop in
            let feed = EventFeed(isLogged: false)
            let streams = (0..<EventFeed.mostListeners).compactMap { _ in feed.join(on: loop) }
            #expect(streams.count == EventFeed.mostListeners && feed.join(on: loop) == nil)
            streams[0].cancel()
            let next = feed.join(on: loop)
            #expect(next != nil)
            next?.cancel()
            for stream in streams.dropFirst() { stream.cancel() }
            #expect(!feed.hasListeners)
        }
    }

    @Test func `requests are recorded only while there are listeners`() throws {
        try onLoop { loop in
            let feed = EventFeed(isLogged: false)
            #expect(!feed.isRecording)
            let stream = feed.join(on: loop)
            #expect(feed.isRecording && feed.hasListeners)
            stream?.cancel()
            #expect(!feed.isRecording)
            #expect(EventFeed(isLogged: true).isRecording)
        }
    }

    @Test func `a daemon that stops ends the streams and admits no listener`() throws {
        try onLoop { loop in
            let feed = EventFeed(isLogged: false)
            guard let stream = feed.join(on: loop) else {
                Issue.record("refused")
                return
            }
            feed.close()
            guard case .end = stream.next(limit: 10) else {
                Issue.record("goes on")
                return
            }
            stream.cancel()
            #expect(feed.join(on: loop) == nil)
        }
    }
}

extension String {
    fileprivate func components(of part: String) -> Int { ranges(of: part).count }
}

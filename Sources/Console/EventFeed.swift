// The daemon's events for listeners: server-sent events (HTML standard, section 9.2).
//
// Any thread can send events, listeners read them on their own loops. A slow listener loses events
// and receives their number; no thread ever waits for it.
package import HTTPServer
package import Model
package import Reactor
import Synchronization

/// The listeners, and the pending events of each.
package final class EventFeed: Sendable {
    /// The most listeners, one for each open page; further ones get a 503.
    package static let mostListeners = 8
    /// The most bytes pending for one listener, about a minute of figures; a longer event is
    /// pending alone.
    package static let mostWaiting = 256 << 10
    /// The version of the events, the member `v` of each; it changes when members change their
    /// meaning.
    package static let version: Int64 = 1

    fileprivate struct Listener {
        var waiting: [UInt8] = []
        var lost = 0
        /// True if its loop has been notified of pending events.
        var isNotified = false
        let wake: @Sendable () -> Void
    }

    private struct State {
        var listeners: [Int: Listener] = [:]
        var lastID = 0
        var isClosed = false
    }

    /// The result of reading pending events.
    enum Take {
        case bytes([UInt8])
        case nothing
        case closed
    }

    private let state = Mutex(State())
    private let recording: Atomic<Bool>
    private let heard = Atomic<Bool>(false)
    private let isLogged: Bool

    /// - Parameter isLogged: true if requests are recorded even without listeners.
    package init(isLogged: Bool) {
        self.isLogged = isLogged
        recording = Atomic(isLogged)
    }

    /// True if a record is to be made of each request; costs one atomic load.
    @inline(__always)
    package var isRecording: Bool { recording.load(ordering: .relaxed) }

    /// True if there are listeners.
    package var hasListeners: Bool { heard.load(ordering: .relaxed) }

    // MARK: Sending

    /// Sends an event to all listeners.
    package func publish(_ event: String, _ data: JSONValue) {
        guard hasListeners else { return }
        deliver(Self.frame(event, data), only: nil)
    }

    /// Returns the bytes of one event; `data` is an object and gets the version as its first
    /// member.
    package static func frame(_ event: String, _ data: JSONValue) -> [UInt8] {
        var members = [JSONValue.Member("v", .number(version))]
        if case .object(let given) = data { members += given }
        return Array("event: \(event)\ndata: \(JSONValue.object(members).encoded)\n\n".utf8)
    }

    fileprivate func deliver(_ frame: [UInt8], only id: Int?) {
        let wakes = state.withLock { state -> [@Sendable () -> Void] in
            let ids = id.map { [$0] } ?? Array(state.listeners.keys)
            return ids.compactMap { state.listeners[$0]?.take(frame) }
        }
        for wake in wakes { wake() }
    }

    // MARK: Listening

    /// Adds a listener; nil if there are too many, or the daemon is stopping.
    package func join(on loop: EventLoop) -> EventStream? {
        let stream = EventStream(self)
        let bound = LoopBound(stream, to: loop)
        let wake: @Sendable () -> Void = { bound.enqueue { stream, loop in stream.goOn(loop) } }
        let id = state.withLock { state -> Int? in
            guard !state.isClosed, state.listeners.count < Self.mostListeners else { return nil }
            state.lastID += 1
            state.listeners[state.lastID] = Listener(wake: wake)
            note(state)
            return state.lastID
        }
        guard let id else { return nil }
        stream.id = id
        return stream
    }

    fileprivate func leave(_ id: Int) {
        state.withLock { state in
            state.listeners[id] = nil
            note(state)
        }
    }

    private func note(_ state: borrowing State) {
        heard.store(!state.listeners.isEmpty, ordering: .relaxed)
        recording.store(isLogged || !state.listeners.isEmpty, ordering: .relaxed)
    }

    /// Returns the pending events of a listener, with the number of lost ones.
    func take(_ id: Int) -> Take {
        state.withLock { state in
            guard var listener = state.listeners[id] else { return .closed }
            listener.isNotified = false
            defer { state.listeners[id] = listener }
            if listener.lost > 0, !listener.waiting.isEmpty {
                let lost = JSONValue.object([.init("events", .number(Int64(listener.lost)))])
                listener.waiting += Self.frame("lost", lost)
                listener.lost = 0
            }
            var taken: [UInt8] = []
            swap(&taken, &listener.waiting)
            if !taken.isEmpty { return .bytes(taken) }
            return state.isClosed ? .closed : .nothing
        }
    }

    /// Ends all streams when the daemon stops.
    package func close() {
        let wakes = state.withLock { state in
            state.isClosed = true
            return state.listeners.values.map(\.wake)
        }
        for wake in wakes { wake() }
    }
}

extension EventFeed.Listener {
    /// Appends an event, or counts it as lost.
    ///
    /// - Returns: the notification of the listener; nil if it is already notified or the event is
    ///   lost.
    fileprivate mutating func take(_ frame: [UInt8]) -> (@Sendable () -> Void)? {
        // Sent again it would be as long, and lost for ever.
        guard waiting.isEmpty || waiting.count + frame.count <= EventFeed.mostWaiting else {
            lost += 1
            return nil
        }
        waiting += frame
        if isNotified { return nil }
        isNotified = true
        return wake
    }
}

/// The events of one listener; confined to its loop.
package final class EventStream: BodySource {
    private let feed: EventFeed
    fileprivate(set) var id = 0
    private var bytes: ArraySlice<UInt8> = []
    /// True once the listener has disconnected.
    package private(set) var isOver = false
    package var wake: ((EventLoop) -> Void)?

    fileprivate init(_ feed: EventFeed) { self.feed = feed }

    /// Sends an event to this listener only.
    package func send(_ event: String, _ data: JSONValue) {
        feed.deliver(EventFeed.frame(event, data), only: id)
    }

    fileprivate func goOn(_ loop: EventLoop) {
        guard !isOver, let wake else { return }
        self.wake = nil
        wake(loop)
    }

    package func next(limit: Int) -> BodyStep {
        if bytes.isEmpty {
            switch feed.take(id) {
            case .bytes(let taken): bytes = taken[...]
            case .nothing: return .wait
            case .closed: return .end
            }
        }
        return .bytes(bytes.prefix(limit))
    }

    package func advance(by count: Int) { bytes = bytes.dropFirst(count) }

    package func cancel() {
        isOver = true
        wake = nil
        feed.leave(id)
    }
}

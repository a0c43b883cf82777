import Glibc
import Synchronization

/// The sample CDN: an origin server whose faults are chosen and whose every byte is counted.
///
/// It serves the files of a folder, resources put into memory, synthetic bytes of any size under
/// `/bytes/<name>/<size>`, and sliding live windows. Paths under `/__` are for scripts:
/// `/__log` (one JSON object a line), `/__count[?path=P]`, `/__reset`, `/__set?path=P&<behaviour>`,
/// `/__live?path=P&from=Q&window=N`, `/__lowlatency?path=P&from=Q&part=S&ranges=1`, `/__advance?path=P&by=N`, `/__end?path=P`.
///
/// Every connection has a thread; all methods may be called from any thread and none blocks, except
/// `stop()`, which waits for the connections to end.
package final class FixtureCDN: Sendable {
    struct State {
        var behaviours: [String: Behaviour] = [:]
        var faultsUsed: [String: Int] = [:]
        var resources: [String: Resource] = [:]
        var windows: [String: LiveWindow] = [:]
        /// By path prefix.
        var streams: [String: LowLatencyStream] = [:]
        var endless: [String: EndlessStream] = [:]
        var held: [String: Int] = [:]
        /// By path, the field without which a request is held.
        var heldWithout: [String: String] = [:]
        /// How often each path was requested whose responses rotate.
        var turns: [String: Int] = [:]
    }

    let folder: String?
    let state = Mutex(State())
    private let listening: ListeningPort
    let log = RequestLog()
    let shaper = Shaper()

    /// A CDN that is not listening yet; port 0 takes a free one at the first `start()` and keeps it.
    package init(folder: String? = nil, address: String = "127.0.0.1", port: UInt16 = 0) {
        self.folder = folder
        listening = ListeningPort(address: address, port: port)
    }

    /// Starts listening; after `stop()`, on the same port again.
    ///
    /// Throws `CDNError`.
    package func start() throws {
        try listening.start { Connection(cdn: self, descriptor: $0, number: $1).run() }
    }

    /// Closes the listener and every connection, and waits until they are closed.
    package func stop() { listening.stop() }

    package var address: String { listening.address }

    /// The port; 0 before the first `start()` if any free one was requested.
    package var port: UInt16 { listening.port }

    /// `http://127.0.0.1:8080`, without a slash at the end.
    package var baseURL: String { "http://\(address):\(port)" }

    /// The URL of a path that starts with a slash.
    package func url(_ path: String) -> String {
        baseURL + (path.hasPrefix("/") ? path : "/" + path)
    }

    /// Connections open at this moment.
    package var openConnections: Int { listening.openConnections }

    /// Connections accepted since the beginning.
    package var acceptedConnections: Int { listening.acceptedConnections }
}

// MARK: Content

extension FixtureCDN {
    /// Stores bytes under a path; they take precedence over a file.
    ///
    /// The type is guessed from the path by default.
    package func put(
        _ path: String, _ bytes: [UInt8], contentType: String? = nil,
        extraHeaders: [(name: String, value: String)] = []
    ) {
        var resource = Resource(bytes, contentType: contentType ?? MediaType.of(path))
        resource.extraFields = extraHeaders
        state.withLock { $0.resources[path] = resource }
    }

    /// Stores text under a path.
    package func put(_ path: String, text: String, contentType: String? = nil) {
        put(path, Array(text.utf8), contentType: contentType)
    }

    /// Removes what `put` or `live` stored under a path.
    package func remove(_ path: String) {
        state.withLock {
            $0.resources[path] = nil
            $0.windows[path] = nil
        }
    }

    /// The bytes `/bytes/<name>/<size>` has at `range`, whatever the size.
    package static func syntheticBytes(_ name: String, _ range: Range<Int>) -> [UInt8] {
        Synthetic.bytes(name, range)
    }

    /// Serves a sliding live playlist under a path; returns the window, to be stepped or ended.
    package func live(_ path: String, _ window: LiveWindow) -> LiveWindow {
        state.withLock { $0.windows[path] = window }
        return window
    }

    /// Serves a low-latency stream under a path without a trailing slash.
    package func lowLatency(_ path: String, _ stream: LowLatencyStream) -> LowLatencyStream {
        state.withLock { $0.streams[path] = stream }
        return stream
    }

    /// The stream that a path belongs to, and the rest of the path after the stream's prefix.
    func lowLatency(at path: String) -> (LowLatencyStream, String)? {
        state.withLock { state in
            for (prefix, stream) in state.streams where path.hasPrefix(prefix + "/") {
                return (stream, String(path.dropFirst(prefix.count + 1)))
            }
            return nil
        }
    }

    /// A low-latency stream of the segments that a VOD playlist of the served folder names; nil
    /// if the playlist or one of its segments does not exist, or its segments are not files of a
    /// transport stream without encryption: only such can be cut into parts at frames.
    package func lowLatencyStream(
        of playlist: String, settings: LowLatencyStream.Settings
    ) -> LowLatencyStream? {
        guard let folder, !playlist.contains(".."),
            let source = Resource(file: folder + playlist, type: "")
        else { return nil }
        let bytes = ContentReader(source.content).read(0..<source.content.length)
        let prefix = folder + playlist[...(playlist.lastIndex(of: "/") ?? playlist.startIndex)]
        var segments: [Content] = []
        let unfit = ["#EXT-X-KEY:", "#EXT-X-BYTERANGE:"]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            guard !unfit.contains(where: { line.hasPrefix($0) }) else { return nil }
            guard !line.hasPrefix("#") else { continue }
            guard line.hasSuffix(".ts"), let segment = Resource(file: prefix + line, type: "")
            else { return nil }
            segments.append(segment.content)
        }
        guard !segments.isEmpty else { return nil }
        return LowLatencyStream(segments, settings: settings, cutsAtFrames: true)
    }

    /// The resource under a path.
    func resource(at path: String) -> Resource? {
        let (stored, window) = state.withLock { ($0.resources[path], $0.windows[path]) }
        if let stored { return stored }
        if let window {
            let playlist = window.playlist(at: Sockets.now())
            return Resource(Array(playlist.utf8), contentType: MediaType.of("a.m3u8"))
        }
        if let synthetic = Resource(syntheticPath: path) { return synthetic }
        guard let folder, !path.split(separator: "/").contains("..") else { return nil }
        return Resource(file: folder + path, type: MediaType.of(path))
    }
}

// MARK: Behaviour

extension FixtureCDN {
    /// Sets the behaviour of a path; nil resets it.
    ///
    /// A path ending in `*` matches every path with that prefix.
    package func setBehaviour(_ behaviour: Behaviour?, for path: String) {
        state.withLock {
            $0.behaviours[path] = behaviour
            $0.faultsUsed[path] = nil
        }
    }

    /// The behaviour set for a path: for exactly this path, or for its longest matching prefix.
    private static func behaviour(for path: String, in state: State) -> (
        behaviour: Behaviour, key: String
    ) {
        if let exact = state.behaviours[path] { return (exact, path) }
        let fitting = state.behaviours.keys.filter {
            $0.last == "*" && path.hasPrefix($0.dropLast())
        }
        guard let key = fitting.max(by: { $0.count < $1.count }), let found = state.behaviours[key]
        else { return (Behaviour(), path) }
        return (found, key)
    }

    /// The behaviour applied to one request; consumes one of its `fails`.
    func effectiveBehaviour(for request: WireRequest) -> Behaviour {
        state.withLock {
            var (behaviour, key) = Self.behaviour(for: request.path, in: $0)
            behaviour.apply(request.query)
            if behaviour.rotation != nil || !behaviour.edges.isEmpty {
                behaviour.turn = $0.turns[request.path, default: 0]
                $0.turns[request.path] = behaviour.turn + 1
                if !behaviour.edges.isEmpty {
                    let edge = behaviour.edges[behaviour.turn % behaviour.edges.count]
                    behaviour.location = edge + request.target
                }
            }
            if request.query["fails"] != nil { key = request.target }
            guard let limit = behaviour.fails else { return behaviour }
            let used = $0.faultsUsed[key, default: 0]
            $0.faultsUsed[key] = used + 1
            return used < limit ? behaviour : behaviour.withoutFaults
        }
    }

    /// Holds responses of a path until `release`: before the head, or after `afterBytes` body
    /// bytes.
    package func hold(_ path: String, afterBytes: Int? = nil) {
        state.withLock { $0.held[path] = afterBytes ?? -1 }
    }

    /// Holds responses of a path, before the head, to requests without a field, until `release`.
    package func hold(_ path: String, without field: String) {
        state.withLock { $0.heldWithout[path] = field }
    }

    /// Continues the held responses of a path.
    package func release(_ path: String) {
        state.withLock {
            $0.held[path] = nil
            $0.heldWithout[path] = nil
        }
    }

    func isHeld(_ path: String, sent: Int) -> Bool { state.withLock { $0.held[path] == sent } }

    /// Whether a request is held before its response's head.
    func isHeld(_ request: WireRequest) -> Bool {
        let (sent, field) = state.withLock { ($0.held[request.path], $0.heldWithout[request.path]) }
        return sent == -1
            || field.map { name in !request.fields.contains { sameName($0.name, name) } } ?? false
    }

    func holdOffset(_ path: String) -> Int? { state.withLock { $0.held[path] } }
}

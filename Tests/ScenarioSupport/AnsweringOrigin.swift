// An origin whose answers a function decides, with its own HTTP code.
import CLinux
import FixtureCDN
import Glibc
import Synchronization

package final class AnsweringOrigin: Sendable {
    /// What is sent for a request.
    package enum Answer: Sendable {
        /// A response; it gets a `Content-Length` unless it has no content or the fields frame it.
        case response(Int, [WireHead.Field], [UInt8])
        /// The end of the connection.
        case nothing
    }

    package typealias Handler = @Sendable (WireHead, [UInt8]) -> Answer

    private struct State {
        var listener: Int32 = -1
        var active = 0
        var open: Set<Int32> = []
    }

    package let port: UInt16
    private let handler: Handler
    private let state = Mutex(State())

    /// Listens on a free port of 127.0.0.1; `handler` is called on the threads of connections.
    package init(_ handler: @escaping Handler) throws {
        self.handler = handler
        let listening = try ScriptedOrigin.listen()
        port = listening.1
        state.withLock { $0.listener = listening.0 }
        guard startDetachedThread({ self.accept(listening.0) }) else {
            throw ScenarioFailure("no thread could be made")
        }
    }

    package var baseURL: String { "http://127.0.0.1:\(port)" }

    /// Closes the listener and all connections.
    package func stop() {
        state.withLock {
            if $0.listener >= 0 { shutdown($0.listener, Int32(SHUT_RDWR)) }
            for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        _ = eventually { state.withLock { $0.listener < 0 && $0.active == 0 } }
    }

    /// Closes the listener; may be called while a request is answered.
    package func stopListening() {
        state.withLock {
            if $0.listener >= 0 { shutdown($0.listener, Int32(SHUT_RDWR)) }
        }
        _ = eventually { state.withLock { $0.listener < 0 } }
    }

    private func accept(_ listener: Int32) {
        while true {
            let descriptor = clinux_accept(listener, nil, nil)
            if descriptor < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            state.withLock {
                $0.active += 1
                $0.open.insert(descriptor)
            }
            let started = startDetachedThread {
                try? self.serve(descriptor)
                self.state.withLock {
                    $0.open.remove(descriptor)
                    Glibc.close(descriptor)
                    $0.active -= 1
                }
            }
            precondition(started, "no thread could be made")
        }
        Glibc.close(listener)
        state.withLock { $0.listener = -1 }
    }

    /// Answers the requests of one connection.
    private func serve(_ descriptor: Int32) throws {
        // A descriptor of its own, since `stop()` may shut down the other until it is closed.
        let socket = WireSocket(
            descriptor: dup(descriptor), name: "origin", transcript: nil, limit: .seconds(60))
        let bodies = BodyBox()
        let run = OriginRun(socket: socket) { bodies.last = $1 }
        defer { run.finish() }
        while let head = try run.nextRequest() {
            switch handler(head, bodies.last) {
            case .nothing: return
            case .response(let status, let fields, let body):
                try run.play([.respond(status, fields, body)])
            }
            if run.isOver || !head.keepsAlive { return }
        }
    }
}

/// The content of the request that was read last.
private final class BodyBox {
    var last: [UInt8] = []
}

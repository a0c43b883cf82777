// An origin whose answers a function decides, with its own HTTP code.
package final class AnsweringOrigin: Sendable {
    /// What is sent for a request.
    package enum Answer: Sendable {
        /// A response; it gets a `Content-Length` unless it has no content or the fields frame it.
        case response(Int, [WireHead.Field], [UInt8])
        /// The end of the connection.
        case nothing
    }

    package typealias Handler = @Sendable (WireHead, [UInt8]) -> Answer

    private let handler: Handler
    private let listener: WireListener

    /// Listens on a free port of 127.0.0.1; `handler` is called on the threads of connections.
    package init(_ handler: @escaping Handler) throws {
        self.handler = handler
        listener = try WireListener()
        try listener.start { self.serve($0) }
    }

    package var port: UInt16 { listener.port }
    package var baseURL: String { "http://127.0.0.1:\(port)" }

    /// Closes the listener and all connections.
    package func stop() { listener.stop() }

    /// Closes the listener; may be called while a request is answered.
    package func stopListening() { listener.stopListening() }

    private func serve(_ descriptor: Int32) -> WireListener.Closing {
        let socket = WireSocket(
            descriptor: descriptor, name: "origin", transcript: nil, limit: .seconds(60))
        let bodies = BodyBox()
        let run = OriginRun(socket: socket) { bodies.last = $1 }
        try? answer(run, bodies)
        return { run.finish() }
    }

    /// Answers the requests of one connection.
    private func answer(_ run: OriginRun, _ bodies: BodyBox) throws {
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

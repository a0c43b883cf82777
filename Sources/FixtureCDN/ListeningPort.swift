import Glibc
import Synchronization

/// A port that stays the same over stops, each of whose connections is served on a thread of its
/// own.
final class ListeningPort: Sendable {
    private struct State {
        var listener: Int32?
        /// Keeps the port while stopped.
        var placeholder: Int32?
        var port: UInt16
        var isStopping = false
        var acceptors = 0
        var open: Set<Int32> = []
        var accepted = 0
    }

    let address: String
    private let state: Mutex<State>

    /// A port that is not listened on yet; 0 takes a free one at the first `start` and keeps it.
    init(address: String = "127.0.0.1", port: UInt16 = 0) {
        self.address = address
        state = Mutex(State(port: port))
    }

    deinit { state.withLock { _ = $0.placeholder.map { close($0) } } }

    /// The port; 0 before the first `start` if any free one was requested.
    var port: UInt16 { state.withLock { $0.port } }

    /// Connections open at this moment.
    var openConnections: Int { state.withLock { $0.open.count } }

    /// Connections accepted since the beginning.
    var acceptedConnections: Int { state.withLock { $0.accepted } }

    /// Starts listening; after `stop`, on the same port again.
    ///
    /// `serve` gets the descriptor of a connection, which is closed once it has returned, and the
    /// number of the connection, from 1. Throws `CDNError`.
    func start(
        serve: @escaping @Sendable (_ descriptor: Int32, _ number: Int) -> Void
    ) throws {
        let listening = try Sockets.listen(address: address, port: port)
        state.withLock {
            $0.listener = listening.descriptor
            $0.port = listening.port
            $0.isStopping = false
            $0.acceptors += 1
            if let placeholder = $0.placeholder { close(placeholder) }
            $0.placeholder = nil
        }
        guard startDetachedThread({ self.accept(listening.descriptor, serve) }) else {
            state.withLock {
                close(listening.descriptor)
                $0.listener = nil
                $0.acceptors -= 1
            }
            throw CDNError(call: "pthread_create", code: EAGAIN)
        }
    }

    /// Closes the listener and every connection, and waits until they are closed.
    func stop() {
        state.withLock {
            $0.isStopping = true
            // Shutting down wakes a thread blocked in accept, recv, send or poll; it then closes.
            if let listener = $0.listener { shutdown(listener, Int32(SHUT_RDWR)) }
            if $0.listener != nil {
                $0.placeholder = try? Sockets.bind(address: address, port: $0.port).descriptor
            }
            $0.listener = nil
            for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        let end = Sockets.now() + 5_000_000_000
        while Sockets.now() < end {
            if state.withLock({ $0.acceptors == 0 && $0.open.isEmpty }) { return }
            usleep(500)
        }
    }

    private func accept(_ listener: Int32, _ serve: @escaping @Sendable (Int32, Int) -> Void) {
        while let descriptor = Sockets.accept(listener) {
            let number: Int? = state.withLock {
                guard !$0.isStopping else { return nil }
                $0.accepted += 1
                $0.open.insert(descriptor)
                return $0.accepted
            }
            guard let number else {
                close(descriptor)
                continue
            }
            let started = startDetachedThread {
                serve(descriptor, number)
                self.end(descriptor)
            }
            if !started { end(descriptor) }
        }
        close(listener)
        state.withLock { $0.acceptors -= 1 }
    }

    /// Closes under the lock, so that `stop` can never shut down a reused descriptor.
    private func end(_ descriptor: Int32) {
        state.withLock {
            $0.open.remove(descriptor)
            close(descriptor)
        }
    }
}

// CLinux includes <sys/socket.h> too; which of the two modules the compiler takes SOCK_STREAM from
// depends on which it loads first.
import CLinux
import FixtureCDN
import Glibc
import Synchronization

/// A port of 127.0.0.1, each of whose connections is served on a thread of its own.
final class WireListener: Sendable {
    /// Closes the descriptor of a connection that was served.
    typealias Closing = () -> Void

    private struct State {
        var listener: Int32
        var isStopped = false
        /// The descriptors of connections; each is removed before it is closed.
        var open: Set<Int32> = []
        /// Connections whose threads have not ended.
        var active = 0
    }

    let port: UInt16
    private let state: Mutex<State>

    /// Listens on a free port; clients wait until `start`.
    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = try HostPort(host: "127.0.0.1", port: 0).socketAddress()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let failed = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) != 0 || Glibc.listen(descriptor, 256) != 0
                    || getsockname(descriptor, $0, &size) != 0
            }
        }
        port = UInt16(bigEndian: name.sin_port)
        state = Mutex(State(listener: descriptor))
        guard !failed else { throw ScenarioFailure("cannot listen on 127.0.0.1") }
    }

    deinit {
        state.withLock { if $0.listener >= 0 { Glibc.close($0.listener) } }
    }

    /// Accepts connections; both closures are held until `stop` or `stopListening`.
    ///
    /// - Parameters:
    ///   - plan: called for each connection in the order in which they were accepted.
    ///   - serve: called on the thread of a connection, whose descriptor it owns but must not close
    ///     before it returns.
    /// - Throws: `ScenarioFailure` without a thread.
    func start<Plan: Sendable>(
        planning plan: @escaping @Sendable () -> Plan,
        serve: @escaping @Sendable (Int32, Plan) -> Closing
    ) throws {
        guard startDetachedThread({ self.accept(plan, serve) }) else {
            throw ScenarioFailure("no thread could be made")
        }
    }

    /// Accepts connections that are all served alike.
    func start(serve: @escaping @Sendable (Int32) -> Closing) throws {
        try start(planning: {}, serve: { descriptor, _ in serve(descriptor) })
    }

    /// Closes the listener and all connections, and waits until they are closed.
    func stop() {
        state.withLock {
            $0.isStopped = true
            if $0.listener >= 0 { shutdown($0.listener, Int32(SHUT_RDWR)) }
            for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        _ = eventually { state.withLock { $0.listener < 0 && $0.active == 0 } }
    }

    /// Closes the listener only; may be called while a connection is served.
    func stopListening() {
        state.withLock {
            if $0.listener >= 0 { shutdown($0.listener, Int32(SHUT_RDWR)) }
        }
        _ = eventually { state.withLock { $0.listener < 0 } }
    }

    /// Calls `body` with the descriptor of each open connection.
    func forEachConnection(_ body: (Int32) -> Void) {
        state.withLock { for descriptor in $0.open { body(descriptor) } }
    }

    private func accept<Plan: Sendable>(
        _ plan: @Sendable () -> Plan, _ serve: @escaping @Sendable (Int32, Plan) -> Closing
    ) {
        let listener = state.withLock { $0.listener }
        while true {
            let descriptor = clinux_accept(listener, nil, nil)
            if descriptor < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            let isTaken = state.withLock {
                // Accepted just before the end, it would not be shut down.
                guard !$0.isStopped else { return false }
                $0.open.insert(descriptor)
                $0.active += 1
                return true
            }
            guard isTaken else {
                Glibc.close(descriptor)
                continue
            }
            let planned = plan()
            let started = startDetachedThread {
                self.end(descriptor, serve(descriptor, planned))
            }
            if !started { end(descriptor) { Glibc.close(descriptor) } }
        }
        state.withLock {
            Glibc.close(listener)
            $0.listener = -1
        }
    }

    private func end(_ descriptor: Int32, _ close: Closing) {
        // Removed before it is closed, so that `stop` cannot meet the reused number.
        state.withLock { _ = $0.open.remove(descriptor) }
        close()
        state.withLock { $0.active -= 1 }
    }
}

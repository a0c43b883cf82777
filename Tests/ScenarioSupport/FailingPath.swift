import CLinux
import FixtureCDN
import Glibc
import Synchronization

/// A way to a port of 127.0.0.1 over which connections can fail.
package final class FailingPath: Sendable {
    private struct State {
        var listener: Int32 = -1
        /// The descriptors of the sides that clients connected to.
        var open: Set<Int32> = []
        var delaysEnd = false
        var delayed = 0
    }

    private let target: UInt16
    private let state = Mutex(State())
    package let port: UInt16

    /// Listens on a free port of 127.0.0.1.
    package init(to target: UInt16) throws {
        self.target = target
        let (listener, port) = try ScriptedOrigin.listen()
        self.port = port
        state.withLock { $0.listener = listener }
        guard startDetachedThread({ self.accept(listener) }) else {
            throw ScenarioFailure("no thread could be made")
        }
    }

    package func stop() { state.withLock { _ = shutdown($0.listener, Int32(SHUT_RDWR)) } }

    /// Loses every packet that a client sends on a present connection from now on, without a word.
    package func losePackets() {
        // A filter that accepts no byte of any packet (socket(7), SO_ATTACH_FILTER): BPF_RET 0.
        var reject: (UInt16, UInt8, UInt8, UInt32) = (0x06, 0, 0, 0)
        withUnsafeMutablePointer(to: &reject) { filter in
            var program = (UInt16(1), UnsafeMutableRawPointer(filter))
            state.withLock { state in
                for number in state.open {
                    setsockopt(
                        number, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                        socklen_t(MemoryLayout.size(ofValue: program)))
                }
            }
        }
    }

    /// Holds what a server sends from now on until it has ended its connection and the client has sent
    /// something more on it.
    package func delayNextEnd() { state.withLock { $0.delaysEnd = true } }

    /// The connections that their server has ended before their client was told.
    package var delayedEnds: Int { state.withLock { $0.delayed } }

    private func accept(_ listener: Int32) {
        while true {
            let number = clinux_accept(listener, nil, nil)
            if number < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            state.withLock { _ = $0.open.insert(number) }
            _ = startDetachedThread {
                let client = Wire(number)
                if let server = Wire.connect(port: self.target) {
                    self.relay(client, server)
                    server.end()
                }
                self.state.withLock { _ = $0.open.remove(number) }
                client.end()
            }
        }
        close(listener)
    }

    /// Copies bytes both ways until one side ends.
    private func relay(_ client: Wire, _ server: Wire) {
        var held: [UInt8] = []
        var hasServerEnded = false
        while true {
            var waits = [
                pollfd(fd: client.number, events: Int16(POLLIN), revents: 0),
                pollfd(fd: hasServerEnded ? -1 : server.number, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waits, 2, 60_000) > 0 else { return }
            if waits[0].revents != 0 {
                guard let bytes = client.some() else { return }
                guard !hasServerEnded else { return client.send(held) }
                server.send(bytes)
            }
            if waits[1].revents != 0 {
                let bytes = server.some()
                guard state.withLock({ $0.delaysEnd }) else {
                    guard let bytes else { return }
                    client.send(bytes)
                    continue
                }
                held += bytes ?? []
                guard bytes == nil else { continue }
                hasServerEnded = true
                state.withLock {
                    $0.delaysEnd = false
                    $0.delayed += 1
                }
            }
        }
    }
}

import CLinux
import Glibc
import Synchronization

/// A way to a port of 127.0.0.1 over which connections can fail.
package final class FailingPath: Sendable {
    private struct State {
        var delaysEnd = false
        var delayed = 0
    }

    private let target: UInt16
    private let state = Mutex(State())
    private let listener: WireListener

    /// Listens on a free port of 127.0.0.1.
    package init(to target: UInt16) throws {
        self.target = target
        listener = try WireListener()
        try listener.start { self.serve($0) }
    }

    package var port: UInt16 { listener.port }

    package func stop() { listener.stop() }

    /// Loses every packet that a client sends on a present connection from now on, without a word.
    package func losePackets() {
        // A filter that accepts no byte of any packet (socket(7), SO_ATTACH_FILTER): BPF_RET 0.
        var reject: (UInt16, UInt8, UInt8, UInt32) = (0x06, 0, 0, 0)
        withUnsafeMutablePointer(to: &reject) { filter in
            var program = (UInt16(1), UnsafeMutableRawPointer(filter))
            let size = socklen_t(MemoryLayout.size(ofValue: program))
            listener.forEachConnection { client in
                setsockopt(client, SOL_SOCKET, SO_ATTACH_FILTER, &program, size)
            }
        }
    }

    /// Holds what a server sends from now on until it has ended its connection and the client has sent
    /// something more on it.
    package func delayNextEnd() { state.withLock { $0.delaysEnd = true } }

    /// The connections that their server has ended before their client was told.
    package var delayedEnds: Int { state.withLock { $0.delayed } }

    private func serve(_ descriptor: Int32) -> WireListener.Closing {
        let client = Wire(descriptor)
        if let server = Wire.connect(port: target) {
            relay(client, server)
            server.end()
        }
        return { client.end() }
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

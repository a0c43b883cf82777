// The world's end of one TCP connection, with the delay and rate of its line.
import CSimulation
import Glibc

/// A connection; writes leave in order, reads are delivered as they arrive.
final class Stream: StreamEnd {
    private let world: World
    private let descriptor: CInt
    /// Called with received bytes.
    var received: (ArraySlice<UInt8>) -> Void = { _ in }
    /// Called once when the peer has finished sending or the connection is broken.
    var ended: () -> Void = {}
    private var output: [UInt8] = []
    private var sent = 0
    private var isClosing = false
    private(set) var isOpen = true
    /// Bytes read per second; nil for no limit.
    var readRate: Int?

    private static let piece = 64 << 10

    init(_ world: World, _ descriptor: CInt) {
        self.world = world
        self.descriptor = descriptor
        csim_keep(descriptor)
        world.watch(descriptor, self)
    }

    /// Sends as many bytes as the socket takes; the rest follows.
    func send(_ bytes: [UInt8]) {
        guard isOpen, !isClosing else { return }
        output += bytes
        flush()
    }

    /// Closes the connection after everything queued has been sent.
    func finish() {
        guard isOpen else { return }
        isClosing = true
        flush()
    }

    /// Resets the connection: bytes that the peer has not read may be lost.
    func reset() {
        guard isOpen else { return }
        close()
    }

    private func flush() {
        guard isOpen else { return }
        while sent < output.count {
            let count = output.withUnsafeBytes { bytes in
                Glibc.send(
                    descriptor, bytes.baseAddress.map { $0 + sent }, bytes.count - sent,
                    CInt(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EAGAIN { return world.rewatch(descriptor, reads: true, writes: true) }
                // What the peer has sent can still be read, and then its end.
                output = []
                sent = 0
                if isClosing { return close() }
                return world.rewatch(descriptor, reads: true, writes: false)
            }
            sent += count
        }
        output = []
        sent = 0
        if isClosing { return close() }
        world.rewatch(descriptor, reads: true, writes: false)
    }

    private func close() {
        isOpen = false
        world.drop(descriptor)
    }

    func isWritable() { flush() }

    func isReadable() {
        guard isOpen else { return }
        let most = readRate.map { max(1, min(Self.piece, $0 / 20)) } ?? Self.piece
        var bytes = Array(repeating: UInt8(0), count: most)
        let count = recv(descriptor, &bytes, most, 0)
        if count < 0, errno == EAGAIN { return }
        guard count > 0 else {
            close()
            return ended()
        }
        if let readRate {
            world.rewatch(descriptor, reads: false, writes: sent < output.count)
            world.after(Int64(count) * World.second / Int64(max(1, readRate))) { [weak self] in
                guard let self, isOpen else { return }
                world.rewatch(descriptor, reads: true, writes: sent < output.count)
            }
        }
        received(bytes[..<count])
    }
}

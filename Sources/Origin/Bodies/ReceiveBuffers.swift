import Posix
import Reactor
import Store

/// The buffers that flights collect a round's bytes in; lives on the upstream loop.
///
/// A flight holds one only while it has bytes.
final class ReceiveBuffers {
    /// Writes large pieces and keeps spare buffers; nil if the system had no resources for another
    /// thread.
    let writer = try? BodyWriter()
    private let loop: EventLoop
    /// True if one was taken since the timer was set.
    private var wereUsed = false
    private var timer: TimerID?

    init(loop: EventLoop) { self.loop = loop }

    /// Returns a buffer to collect a round's bytes in.
    func take() -> [UInt8] {
        let capacity = ReceivedBody.pieceLength + (16 << 10)
        wereUsed = true
        watch()
        if let writer { return writer.takeBuffer(capacity: capacity) }
        var made: [UInt8] = []
        made.reserveCapacity(capacity)
        return made
    }

    /// Empties a buffer and takes it back; a few are kept, if they can hold a whole piece.
    func giveBack(_ buffer: inout [UInt8]) {
        guard let writer, buffer.capacity >= ReceivedBody.pieceLength else { return buffer = [] }
        writer.giveBack(&buffer)
    }

    /// Frees the spare buffers once none has been taken for 200 ms.
    private func watch() {
        guard timer == nil else { return }
        timer = loop.schedule(after: .milliseconds(200)) { [weak self] _ in
            guard let self else { return }
            timer = nil
            guard wereUsed else { return writer?.dropBuffers() ?? () }
            wereUsed = false
            watch()
        }
    }
}

import Endless
import HTTPServer
import Model
import Origin
import Posix
import Reactor

/// Reading of a body that may have no end.
extension Reader {
    /// Reads a body that may have no end.
    ///
    /// - Parameters:
    ///   - body: what is kept of it.
    ///   - entry: where it is entered; nil for its first byte.
    func watch(_ body: EndlessBody, from entry: EdgeEntry?) {
        endless = body
        prefix = entry?.prefix[...] ?? []
        body.viewerEntered()
    }

    /// True if what is kept begins behind the next byte to send.
    var isBehind: Bool { endless?.entry(after: offset, now: loop.now) != nil }

    /// Returns the bytes that precede those of the body; nil if the body is next.
    ///
    /// A reader that has fallen behind goes on at the edge. To end it would make most players stop;
    /// a jump over packets looks to them like a loss on the air, which their demuxers handle.
    func edgeStep(of body: EndlessBody, limit: Int) -> BodyStep? {
        if prefix.isEmpty, let entry = body.entry(after: offset, now: loop.now) {
            core.counters.add(.liveMoved)
            prefix = entry.prefix[...]
            offset = entry.offset
            firstOffset = offset
            reportOffset()
        }
        return prefix.isEmpty ? nil : .bytes(prefix.prefix(limit))
    }

    /// Counts sent bytes that precede those of the body.
    ///
    /// - Returns: true if they were bytes of the body.
    func advances(by count: Int, in body: EndlessBody) -> Bool {
        guard prefix.isEmpty else {
            prefix = prefix.dropFirst(count)
            return false
        }
        // They may have been freed between their offer and their way into the socket.
        if body.isGone(offset) {
            isBroken = true
            return false
        }
        return true
    }
}

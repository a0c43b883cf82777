// Sets the bounds of connections that `YieldingReads` has decided.
import Posix

extension YieldingReads {
    /// Gives a connection with a body its share, or less while that body ends.
    func bound(_ member: Member, to bytes: Int, isBound: Bool) {
        let isEnding = isBound && readings[member.connection]?.isEnding == true
        bound(
            member.connection, member.number, to: isEnding ? BodyBound.edge(of: bytes) : bytes)
        guard !isEnding, let transfer = member.transfer else { return }
        transfer.endBegins =
            isBound ? BodyBound.endBegins(length: transfer.bodyLength, share: bytes) : .max
    }

    func share(of window: Double, among count: Int) -> Int {
        Int(max(QueueWindow.leastWindow, window / Double(count)))
    }

    func bound(_ connection: UpstreamClient.Connection, to bytes: Int?) {
        guard let number = client?.sockets.descriptor(localPort: connection.localPort) else {
            readings[connection] = nil
            return
        }
        bound(connection, number, to: bytes)
    }

    /// Sets a bound unless it is set already, lasts, and is still there.
    private func bound(
        _ connection: UpstreamClient.Connection, _ number: CInt, to bytes: Int?
    ) {
        let former = readings[connection]
        if former?.bound == bytes {
            guard let bytes else { return }
            // The kernel may have replaced it without a word.
            if former?.isLasting == true, keepsReceiveBound(bytes, of: number) { return }
        }
        let result = boundReceiveWindow(of: number, to: bytes)
        readings[connection, default: Reading()].bound = result == .none ? nil : bytes
        readings[connection]?.isLasting = result == .lasting
    }
}

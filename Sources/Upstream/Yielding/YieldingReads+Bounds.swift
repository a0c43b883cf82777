// Sets the bounds of connections that `YieldingReads` has decided.
import Posix

extension YieldingReads {
    /// Gives a connection with a body its share of a window that limits it: in steps, and less
    /// while that body ends.
    ///
    /// - Parameters:
    ///   - member: the connection.
    ///   - bytes: its share.
    ///   - step: by how much its bound may rise; nil without a limit.
    func bound(_ member: Member, to bytes: Int, step: Int?) {
        let reading = readings[member.connection]
        if reading?.isEnding == true {
            return bound(member.connection, member.number, to: BodyBound.edge(of: bytes))
        }
        let length = member.transfer?.bodyLength
        let isLong = BodyBound.isLong(length, share: bytes)
        let next =
            isLong ? BodyBound.next(after: reading?.bound, share: bytes, step: step) : bytes
        bound(member.connection, member.number, to: next)
        readings[member.connection]?.opensSlowly = isLong
        member.transfer?.endBegins =
            isLong ? BodyBound.endBegins(length: length, share: next) : .max
    }

    /// Gives a connection with a body its share of a window that does not limit it.
    func bound(_ member: Member, toUnlimited bytes: Int) {
        bound(member.connection, member.number, to: bytes)
        member.transfer?.endBegins = .max
    }

    /// True if the bound of a connection with a body is to rise in steps.
    func rises(_ member: Member, to bytes: Int) -> Bool {
        guard let reading = readings[member.connection], !reading.isEnding else { return false }
        let length = member.transfer?.bodyLength
        return BodyBound.rises(after: reading.bound, share: bytes, length: length)
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

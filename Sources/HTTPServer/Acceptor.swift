// Accepts the connections of one listener on one loop.
import Glibc
import Posix
import Reactor

/// Watches a listener and passes its connections to the loop's server.
final class Acceptor: ReadinessHandler {
    private let listener: Listener
    private let server: ServerLoop
    private var registration: Registration?
    private var retry: TimerID?
    /// A descriptor to free when none are left, so that one more connection can be accepted and
    /// rejected.
    private var spare: OwnedDescriptor?

    /// The maximum number of connections accepted per event, so that a flood leaves time for
    /// existing ones.
    private static let batch = 64
    /// The pause when descriptors run out; the queue keeps the listener ready meanwhile, so
    /// continuing immediately would spin.
    private static let backOff = Interval.milliseconds(100)

    init(_ listener: Listener, on server: ServerLoop) throws(SystemError) {
        self.listener = listener
        self.server = server
        spare = try duplicate(listener.socket.number)
        registration = try watch()
    }

    /// Starts watching the listener; an inherited one is a single socket that all loops watch.
    private func watch() throws(SystemError) -> Registration {
        try server.loop.watch(
            listener.socket.number, for: listener.isInherited ? .readableByOne : .readable,
            handler: self)
    }

    func ready(_ readiness: Readiness, on loop: EventLoop) {
        acceptWaiting(atMost: Self.batch)
    }

    private func acceptWaiting(atMost count: Int) {
        for _ in 0..<count {
            do throws(SystemError) {
                guard let accepted = try Posix.accept(from: listener.socket.number) else { return }
                let peer = accepted.peer
                server.adopt(accepted.takeDescriptor(), peer: peer, isSecure: listener.isSecure)
            } catch {
                switch error.code {
                case EMFILE, ENFILE:
                    switch turnAwayOne() {
                    case .turnedAway: continue
                    case .noneWaits: return
                    case .noSpare: pause()
                    }
                case ENOBUFS, ENOMEM: pause()
                // Other errors concern the network of a single connection (accept(2)).
                default: break
                }
                return
            }
        }
    }

    /// Accepts one connection with the spare descriptor and answers 503, so that a client for which
    /// there is no room learns it immediately instead of waiting in the queue.
    ///
    /// accept4(2) reports EMFILE before it looks at the queue, which may therefore be empty.
    private func turnAwayOne() -> TurnAway {
        guard spare != nil else { return .noSpare }
        spare = nil
        defer { spare = try? duplicate(listener.socket.number) }
        do throws(SystemError) {
            guard let accepted = try Posix.accept(from: listener.socket.number) else {
                return .noneWaits
            }
            server.turnAway(accepted.takeDescriptor(), isSecure: listener.isSecure)
            return .turnedAway
        } catch {
            // Another thread took the freed descriptor meanwhile.
            return .noSpare
        }
    }

    private enum TurnAway {
        case turnedAway, noneWaits, noSpare
    }

    private func pause() {
        guard retry == nil, let registration else { return }
        server.loop.cancel(registration)
        self.registration = nil
        resumeLater()
    }

    private func resumeLater() {
        retry = server.loop.schedule(after: Self.backOff) { _ in
            self.retry = nil
            if self.spare == nil { self.spare = try? duplicate(self.listener.socket.number) }
            do throws(SystemError) {
                self.registration = try self.watch()
            } catch {
                self.resumeLater()
            }
        }
    }

    /// Accepts the queued connections, since closing a listener resets them, then stops; the
    /// listener is closed with its last owner.
    func close() {
        if !listener.isInherited { acceptWaiting(atMost: 4096) }
        if let retry { server.loop.cancel(retry) }
        retry = nil
        if let registration { server.loop.cancel(registration) }
        registration = nil
        spare = nil
    }
}

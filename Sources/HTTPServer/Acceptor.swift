// Accepts the connections of one listener on one loop.
import Glibc
import Posix
import Reactor

/// Watches a listener and hands its connections to the loop's server.
final class Acceptor: ReadinessHandler {
    private let listener: SharedDescriptor
    private let isSecure: Bool
    private let isInherited: Bool
    private let server: ServerLoop
    private var registration: Registration?
    private var retry: TimerID?
    /// Given up to accept one more connection, so that it can be told that there is no room.
    private var spare: OwnedDescriptor?

    /// Connections taken in one event, so that a flood leaves time for those already there.
    private static let batch = 64
    /// How long to wait when descriptors run out; the queue keeps the listener ready meanwhile, so
    /// that going on at once would spin.
    private static let backOff = Interval.milliseconds(100)

    init(_ listener: Listener, on server: ServerLoop) throws(SystemError) {
        self.listener = listener.socket
        isSecure = listener.isSecure
        isInherited = listener.isInherited
        self.server = server
        spare = try duplicate(self.listener.number)
        registration = try watch()
    }

    /// All loops watch an inherited socket, which is one.
    private func watch() throws(SystemError) -> Registration {
        try server.loop.watch(
            listener.number, for: isInherited ? .readableByOne : .readable, handler: self)
    }

    func ready(_ readiness: Readiness, on loop: EventLoop) {
        acceptWaiting(atMost: Self.batch)
    }

    private func acceptWaiting(atMost count: Int) {
        for _ in 0..<count {
            do throws(SystemError) {
                guard let accepted = try Posix.accept(from: listener.number) else { return }
                let peer = accepted.peer
                server.adopt(accepted.takeDescriptor(), peer: peer, isSecure: isSecure)
            } catch {
                switch error.code {
                case EMFILE, ENFILE:
                    switch turnAwayOne() {
                    case .turnedAway: continue
                    case .noneWaits: return
                    case .noSpare: pause()
                    }
                case ENOBUFS, ENOMEM: pause()
                // The rest are troubles of one connection's network (accept(2)).
                default: break
                }
                return
            }
        }
    }

    /// Accepts one connection with the spare descriptor and answers 503, so that a client without
    /// a place learns so at once instead of waiting in the queue.
    ///
    /// accept4(2) reports EMFILE before it looks at the queue, which may therefore be empty.
    private func turnAwayOne() -> TurnAway {
        guard spare != nil else { return .noSpare }
        spare = nil
        defer { spare = try? duplicate(listener.number) }
        do throws(SystemError) {
            guard let accepted = try Posix.accept(from: listener.number) else { return .noneWaits }
            server.turnAway(accepted.takeDescriptor(), isSecure: isSecure)
            return .turnedAway
        } catch {
            // Another thread took the number meanwhile.
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
            if self.spare == nil { self.spare = try? duplicate(self.listener.number) }
            do throws(SystemError) {
                self.registration = try self.watch()
            } catch {
                self.resumeLater()
            }
        }
    }

    /// Takes what waits, since closing a listener resets it, then stops; the listener closes with its
    /// last owner.
    func close() {
        if !isInherited { acceptWaiting(atMost: 4096) }
        if let retry { server.loop.cancel(retry) }
        retry = nil
        if let registration { server.loop.cancel(registration) }
        registration = nil
        spare = nil
    }
}

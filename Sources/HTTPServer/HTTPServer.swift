// The HTTP server: several loop threads, each with its own listeners on the same ports.
package import Posix
package import Reactor
package import TLS
import Glibc
import Synchronization

/// The addresses and certificates of TLS listeners.
package struct SecureListening: Sendable {
    package var addresses: [SocketAddress]
    package var inherited: [InheritedListener]
    package var certificates: TLSCertificates

    package init(
        addresses: [SocketAddress], inherited: [InheritedListener] = [],
        certificates: TLSCertificates
    ) {
        self.addresses = addresses
        self.inherited = inherited
        self.certificates = certificates
    }
}

/// A running server of HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113), without and with TLS; HTTP/1.0
/// clients are served as well.
///
/// Each loop thread has its own listener (SO_REUSEPORT) and owns the connections that the kernel
/// gives it, from accept to close. Loops share only counters. The server runs until `stop`, even if
/// it is no longer referenced.
package final class HTTPServer: Sendable {
    /// The addresses listened on, in the order given; port 0 is replaced by the port chosen.
    package let boundAddresses: [SocketAddress]
    /// The TLS addresses among them, in the order given.
    package let boundSecureAddresses: [SocketAddress]

    private let ticketKeys: TicketKeys
    private let seats: [Seat]
    private let threads: [LoopThread]
    private let counter: ConnectionCounter
    private let handshakeCounter: HandshakeCounter

    /// The server part of one loop, accessible to jobs of that loop.
    private final class Seat: Sendable {
        let server = Mutex<LoopBound<ServerLoop>?>(nil)

        func value(on loop: EventLoop) -> ServerLoop? {
            server.withLock { $0 }?.value(on: loop)
        }
    }

    /// The result of the loops' first jobs.
    private final class Opening: Sendable {
        private let semaphore: ThreadSemaphore
        private let failure = Mutex<SystemError?>(nil)

        init() throws(SystemError) { semaphore = try ThreadSemaphore() }

        func succeed() { semaphore.signal() }

        func fail(_ error: SystemError) {
            failure.withLock { $0 = error }
            semaphore.signal()
        }

        /// Waits for this number of loops; blocks as long as they take.
        func wait(for loops: Int) throws(SystemError) {
            for _ in 0..<loops { while !semaphore.wait(atMost: .seconds(60 as Int64)) {} }
            if let error = failure.withLock({ $0 }) { throw error }
        }
    }

    /// Opens the ports and starts the threads.
    ///
    /// - Parameters:
    ///   - addresses: Where to listen in the clear; port 0 takes one free port for all loops.
    ///   - inherited: Sockets that listen in the clear already, which all loops share.
    ///   - secure: Where to listen for TLS; nil for nowhere. There has to be one address in all.
    ///   - isMultipath: Whether clients may use several paths (MPTCP), where the kernel has them;
    ///     inherited sockets stay what they are.
    ///   - loops: Threads, at least 1.
    ///   - limits: Brought into their ranges.
    ///   - clock: What the limits' times are measured by.
    ///   - onHold: Told of work that held one of the loops for too long.
    ///   - onCrowd: Told when connections begin to be closed or refused because all places are
    ///     taken, and when that is over.
    ///   - makeHandler: Called once on each loop.
    /// - Throws: `SystemError`, with EADDRINUSE where a port is taken, by whomsoever.
    package init(
        addresses: [SocketAddress], inherited: [InheritedListener] = [],
        secure: SecureListening? = nil, isMultipath: Bool = false, loops: Int,
        limits: ServerLimits, clock: LoopClock = .system, onHold: LoopHold.Observer? = nil,
        onCrowd: CrowdReport.Observer? = nil,
        makeHandler: @Sendable @escaping (EventLoop) -> any RequestHandler
    ) throws(SystemError) {
        let limits = limits.clamped()
        let counter = ConnectionCounter()
        let handshakes = HandshakeCounter()
        let crowd = CrowdWatch(onCrowd)
        let ticketKeys = TicketKeys()
        self.ticketKeys = ticketKeys
        let plain = try Self.open(
            addresses, inherited, isSecure: false, isMultipath: isMultipath, loops: loops)
        let encrypted = try Self.open(
            secure?.addresses ?? [], secure?.inherited ?? [], isSecure: true,
            isMultipath: isMultipath, loops: loops)
        precondition(
            plain.count + encrypted.count > 0 && loops > 0, "a server needs an address and a loop")
        var seats: [Seat] = []
        var threads: [LoopThread] = []
        let opening = try Opening()
        do throws(SystemError) {
            for index in 0..<loops {
                let seat = Seat()
                let own = plain.map { $0.listeners[index] } + encrypted.map { $0.listeners[index] }
                let thread = try LoopThread(
                    name: "http-\(index)", clock: clock, onHold: onHold
                ) { loop in
                    let server = ServerLoop(
                        on: loop, limits: limits, counter: counter, handshakes: handshakes,
                        crowd: crowd, handler: makeHandler(loop))
                    seat.server.withLock { $0 = LoopBound(server, to: loop) }
                    do throws(SystemError) {
                        if let secure {
                            // They were validated when they were read.
                            guard
                                let context = try? TLSContext(
                                    secure.certificates, keys: ticketKeys)
                            else { throw SystemError("SSL_CTX_new", code: ENOMEM) }
                            server.use(context)
                        }
                        try server.open(own)
                        opening.succeed()
                    } catch {
                        opening.fail(error)
                    }
                }
                seats.append(seat)
                threads.append(thread)
            }
            try opening.wait(for: loops)
        } catch {
            for thread in threads { thread.stopAndJoin() }
            throw error
        }
        boundAddresses = plain.map(\.address) + encrypted.map(\.address)
        boundSecureAddresses = encrypted.map(\.address)
        self.counter = counter
        handshakeCounter = handshakes
        self.seats = seats
        self.threads = threads
    }

    private static func open(
        _ addresses: [SocketAddress], _ inherited: [InheritedListener], isSecure: Bool,
        isMultipath: Bool, loops: Int
    ) throws(SystemError) -> [OpenListeners] {
        var all: [OpenListeners] = []
        for address in addresses {
            all.append(
                try OpenListeners(
                    on: address, isSecure: isSecure, isMultipath: isMultipath, loops: loops))
        }
        return all + inherited.map { OpenListeners($0, isSecure: isSecure, loops: loops) }
    }

    /// Replaces the certificates for new connections; existing ones keep theirs.
    package func use(_ certificates: TLSCertificates) {
        forEachLoop { [ticketKeys] server in
            // Certificates were validated when read; if memory is short, the old ones stay.
            if let context = try? TLSContext(certificates, keys: ticketKeys) { server.use(context) }
        }
    }

    /// The handles of the loops.
    package var loopHandles: [LoopHandle] { threads.map(\.handle) }

    /// The number of open connections over all loops.
    package var connectionCount: Int { counter.count }

    /// How often an idle HTTP/2 connection has given back memory, over all loops.
    package var restCount: Int { counter.restCount }

    /// The number of TLS handshakes since the start, over all loops.
    package var handshakes: HandshakeFigures { handshakeCounter.figures }

    /// Stops accepting, closes idle connections and lets requests in progress be answered.
    ///
    /// Responses close their connections from now on; connections left after `time` are cut. The
    /// call does not wait: `then` is called once, on one of the loops, when no connection is left,
    /// or immediately on the calling thread if the server has been stopped.
    package func drain(within time: Interval, then: @Sendable @escaping () -> Void) {
        let left = Countdown(from: threads.count, then: then)
        for (seat, thread) in zip(seats, threads) {
            let accepted = thread.handle.enqueue { loop in
                guard let server = seat.value(on: loop) else { return left.step() }
                server.drain(within: time) { left.step() }
            }
            if !accepted { left.step() }
        }
    }

    /// Ends everything: listeners, connections, threads.
    ///
    /// Blocks until the threads have ended; must not be called on one of them. A second call
    /// returns immediately.
    package func stop() {
        forEachLoop {
            $0.stopAccepting()
            $0.cutConnections()
        }
        for thread in threads { thread.stopAndJoin() }
        // Releases what the loops owned, including connections that hold references to themselves.
        for seat in seats { seat.server.withLock { $0 = nil } }
    }

    private func forEachLoop(_ body: @Sendable @escaping (ServerLoop) -> Void) {
        for (seat, thread) in zip(seats, threads) {
            thread.handle.enqueue { loop in
                if let server = seat.value(on: loop) { body(server) }
            }
        }
    }
}

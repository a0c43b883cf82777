import Glibc
import Posix
import Testing

/// Addresses and sockets.
struct SocketTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1:80", true), ("::1", "[::1]:80", true), ("[::1]", "[::1]:80", true),
        ("10.0.0.1", "10.0.0.1:80", false), ("::ffff:127.0.0.1", "[::ffff:127.0.0.1]:80", true),
        ("fe80::1", "[fe80::1]:80", false),
    ])
    func `numeric addresses are parsed and written`(text: String, written: String, loops: Bool) {
        let address = SocketAddress(host: text, port: 80)
        #expect(address?.description == written)
        #expect(address?.isLoopback == loops)
    }

    @Test(arguments: ["localhost", "", "1.2.3", "256.0.0.1", "[::1", "1.2.3.4:80"])
    func `names and malformed addresses are rejected`(text: String) {
        #expect(SocketAddress(host: text, port: 80) == nil)
    }

    private let loopback = SocketAddress(bytes: [127, 0, 0, 1], port: 0)

    @Test func `an exclusive port is denied to all others`() throws {
        let first = try listen(on: loopback, sharingPort: false)
        let taken = try localAddress(of: first.number)
        #expect(throws: SystemError.self) { _ = try listen(on: taken, sharingPort: false) }
        #expect(throws: SystemError.self) { _ = try listen(on: taken, sharingPort: true) }
        #expect(throws: SystemError.self) { _ = try listenFirst(on: taken) }
    }

    @Test func `a first listener admits sharers, but no second first listener`() throws {
        let first = try listenFirst(on: loopback)
        let taken = try localAddress(of: first.number)
        let second = try listen(on: taken, sharingPort: true)
        #expect(try localAddress(of: second.number) == taken)
        let error = #expect(throws: SystemError.self) { _ = try listenFirst(on: taken) }
        #expect(error?.code == EADDRINUSE)
    }

    /// The protocol of a socket (socket(7), SO_PROTOCOL).
    private func protocolNumber(of number: CInt) -> CInt {
        var value: CInt = -1
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(number, SOL_SOCKET, SO_PROTOCOL, &value, &length)
        return value
    }

    @Test(.enabled(if: hasMultipath(), "this kernel has no MPTCP"))
    func `Multipath TCP listeners share a port and accept plain TCP as such`() throws {
        let first = try listenFirst(on: loopback, isMultipath: true)
        #expect(protocolNumber(of: first.number) == CInt(IPPROTO_MPTCP))
        let address = try localAddress(of: first.number)
        let second = try listen(on: address, sharingPort: true, isMultipath: true)
        #expect(throws: SystemError.self) { _ = try listenFirst(on: address) }
        let kind = CInt(SOCK_STREAM.rawValue)
        let client = OwnedDescriptor(
            taking: openStream(family: AF_INET, kind: kind, isMultipath: false))
        let status = address.withRaw {
            connect(client.number, $0.assumingMemoryBound(to: sockaddr.self), $1)
        }
        #expect(status == 0)
        for listener in [first.number, second.number] {
            guard let accepted = try accept(from: listener) else { continue }
            let descriptor = accepted.takeDescriptor()
            #expect(protocolNumber(of: descriptor.number) == CInt(IPPROTO_TCP))
            return
        }
        Issue.record("the connection waits at neither listener")
    }

    @Test(arguments: [
        (MultipathUse.off, "10.0.0.1", false), (.off, "127.0.0.1", false),
        (.auto, "10.0.0.1", true), (.auto, "127.0.0.1", false), (.auto, "::1", false),
        (.on, "127.0.0.1", true), (.on, "2001:db8::1", true),
    ])
    func `Multipath TCP is requested where it can be used`(
        use: MultipathUse, peer: String, isWanted: Bool
    ) throws {
        let address = try #require(SocketAddress(host: peer, port: 80))
        #expect(use.connects(to: address) == isWanted)
        #expect(use.listens == (use != .off))
    }

    @Test(arguments: [
        EPIPE, ECONNRESET, ECONNABORTED, ECONNREFUSED, ENOTCONN, ETIMEDOUT, EHOSTUNREACH,
        EHOSTDOWN, ENETUNREACH, ENETDOWN, EPROTO,
    ])
    func `an error of the network ends sendfile as a closed socket, not as a file's fault`(
        code: CInt
    ) {
        #expect(SendFileOutcome(errno: code) == .closed)
    }

    @Test(arguments: [EIO, ESTALE, EBADF, EINVAL, ENOMEM, EOVERFLOW])
    func `an error of the disk ends sendfile as a file's fault`(code: CInt) {
        #expect(SendFileOutcome(errno: code) == .fileFailed(errno: code))
        #expect(SendFileOutcome(errno: EAGAIN) == .wouldBlock)
    }

    @Test func `there is a route to loopback, and none to the broadcast address`() throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 1))
        #expect(hasRoute(to: loopback))
        // Refused without the permission to broadcast (connect(2), EACCES).
        let broadcast = try #require(SocketAddress(host: "255.255.255.255", port: 1))
        #expect(!hasRoute(to: broadcast))
    }

    @Test func `accepting from an empty queue returns nil`() throws {
        let listener = try listenFirst(on: loopback)
        let accepted = try accept(from: listener.number)
        switch accepted {
        case .none: break
        case .some: Issue.record("a connection came from nowhere")
        }
    }
}

struct ClockTests {
    @Test func `wall seconds are rounded down, also before the epoch`() {
        #expect(WallTime(nanoseconds: 1_999_999_999).seconds == 1)
        #expect(WallTime(nanoseconds: -1).seconds == -1)
        #expect(WallTime(nanoseconds: -1_000_000_000).seconds == -1)
        #expect(WallTime(seconds: .max).nanoseconds == .max)
    }

    @Test func `monotonic time does not run backwards`() {
        var last = Monotonic.now()
        for _ in 0..<1000 {
            let next = Monotonic.now()
            #expect(next >= last)
            last = next
        }
    }
}

struct InterfaceTests {
    @Test func `the addresses of the interfaces include loopback, each once`() throws {
        let found = try interfaceAddresses()
        #expect(found.contains(SocketAddress(bytes: [127, 0, 0, 1], port: 0)))
        #expect(Set(found).count == found.count)
        #expect(!machineName().isEmpty)
    }
}

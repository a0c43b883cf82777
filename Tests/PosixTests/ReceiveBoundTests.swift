import Glibc
import Posix
import Testing

struct ReceiveBoundTests {
    /// SO_BUF_LOCK.
    private static let lockOfBuffers: CInt = 72

    @Test func `a bound is kept until another value is set from outside`() throws {
        let number = openStream(
            family: AF_INET, kind: CInt(SOCK_STREAM.rawValue), isMultipath: false)
        try #require(number >= 0)
        defer { close(number) }
        _ = boundReceiveWindow(of: number, to: 20_000)
        #expect(receiveBound(of: number) == 20_000)
        #expect(keepsReceiveBound(20_000, of: number))
        try setOption(number, CInt(IPPROTO_TCP), TCP_WINDOW_CLAMP, 117_248)
        #expect(!keepsReceiveBound(20_000, of: number))
        #expect(receiveBound(of: -1) == nil)
    }

    /// Its peer need not have Multipath TCP: the socket remains the one that was opened.
    @Test(.enabled(if: hasMultipath(), "this kernel has no MPTCP"))
    func `a buffer that could never grow again is left to the kernel`() throws {
        let listener = try listen(
            on: SocketAddress(bytes: [127, 0, 0, 1], port: 0), sharingPort: false,
            isMultipath: false)
        let number = openStream(
            family: AF_INET, kind: CInt(SOCK_STREAM.rawValue), isMultipath: true)
        try #require(number >= 0)
        defer { close(number) }
        let isConnected = try localAddress(of: listener.number).withRaw {
            connect(number, $0.assumingMemoryBound(to: sockaddr.self), $1) == 0
        }
        // The listener lives until here.
        let isListening = listener.number >= 0
        try #require(isConnected && isListening)
        let canUnlock = (try? setOption(number, SOL_SOCKET, Self.lockOfBuffers, 0)) != nil
        let before = option(number, SO_RCVBUF)
        let result = boundReceiveWindow(of: number, to: Int(before))
        #expect(result == (canUnlock ? .lasting : .untilGrowth))
        #expect((option(number, SO_RCVBUF) == before) == !canUnlock)
        #expect(receiveBound(of: number) == Int(before))
    }

    @Test func `a buffer is enlarged for a bound, and locked until the bound is lifted`() throws {
        let number = openStream(
            family: AF_INET, kind: CInt(SOCK_STREAM.rawValue), isMultipath: false)
        try #require(number >= 0)
        defer { close(number) }
        #expect(boundReceiveWindow(of: number, to: 100_000) == .lasting)
        #expect(option(number, SO_RCVBUF) >= 200_000)
        #expect(option(number, Self.lockOfBuffers) == 2)
        _ = boundReceiveWindow(of: number, to: nil)
        #expect(option(number, Self.lockOfBuffers) == 0)
        // More than any machine allows.
        #expect(boundReceiveWindow(of: number, to: 1 << 29) == .untilGrowth)
        #expect(option(number, Self.lockOfBuffers) == 0)
    }

    private func option(_ number: CInt, _ name: CInt) -> CInt {
        var (value, size) = (CInt(-1), socklen_t(MemoryLayout<CInt>.size))
        getsockopt(number, SOL_SOCKET, name, &value, &size)
        return value
    }
}

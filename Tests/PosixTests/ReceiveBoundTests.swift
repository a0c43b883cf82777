import Glibc
import Posix
import Testing

struct ReceiveBoundTests {
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
}

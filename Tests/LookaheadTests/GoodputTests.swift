import Lookahead
import Testing

/// The mean of measured rates.
@Suite struct GoodputTests {
    @Test func `goodput is unknown before the first sample`() {
        var goodput = Goodput()
        goodput.add(bytes: 1_000, seconds: 0)
        #expect(goodput.bytesPerSecond == nil)
    }

    @Test func `many short samples give the same mean as one long one`() throws {
        var long = Goodput()
        long.add(bytes: 4_000, seconds: 4)
        var short = Goodput()
        for _ in 0..<400 { short.add(bytes: 10, seconds: 0.01) }
        #expect(long.bytesPerSecond == 1_000)
        #expect(abs(try #require(short.bytesPerSecond) - 1_000) < 1)
    }

    @Test func `the mean follows a change`() throws {
        var goodput = Goodput(halfLife: 2)
        for _ in 0..<10 { goodput.add(bytes: 1_000, seconds: 1) }
        for _ in 0..<10 { goodput.add(bytes: 100, seconds: 1) }
        #expect(try #require(goodput.bytesPerSecond) < 150)
    }
}

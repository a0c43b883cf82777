import Posix
import Testing

@testable import Ahead

/// How long downloads wait after failures.
@Suite struct RetryPauseTests {
    private var pause = RetryPause()

    @Test mutating func `pauses double up to half a minute, and start anew after a success`() {
        let pauses = (0..<100).map { _ in pause.next().inSeconds }
        #expect(pauses.prefix(7) == [1, 2, 4, 8, 16, 30, 30] && pauses.last == 30)
        pause.reset()
        let anew = (0..<2).map { _ in pause.next().inSeconds }
        #expect(anew == [1, 2])
    }
}

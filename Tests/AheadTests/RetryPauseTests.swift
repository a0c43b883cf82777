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

    @Test mutating func `an origin's Retry-After makes a pause longer, up to five minutes`() {
        let pauses = [10, 1, nil, 86_400, -1].map { pause.next(asked: $0).inSeconds }
        #expect(pauses == [10, 2, 4, 300, 16])
    }

    @Test mutating func `pauses after pages are limited, and start anew after a success`() {
        for page in [RetryPause.Page.playlist, .part] {
            while pause.mayFollow(page) {}
            let more = pause.mayFollow(page)
            pause.reset()
            let anew = pause.mayFollow(page)
            #expect(!more && anew)
        }
    }

    @Test mutating func `pages in place of parts leave their hour to those of lists`() {
        for _ in 0..<RetryPause.Page.playlist.rawValue { _ = pause.mayFollow(.part) }
        let mayFollow = pause.mayFollow(.playlist)
        #expect(mayFollow)
    }

    @Test mutating func `pages instead of lists are waited out for an hour, of parts for eight`() {
        for (page, hours) in [(RetryPause.Page.playlist, 1), (RetryPause.Page.part, 8)] {
            pause.reset()
            var waited = 0.0
            while pause.mayFollow(page) { waited += pause.next().inSeconds }
            #expect((3_400...3_600).contains(waited / Double(hours)))
        }
    }
}

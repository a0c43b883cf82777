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
        for mayFollow in [Self.ofPlaylist, Self.ofPart] {
            while mayFollow(&pause) {}
            let more = mayFollow(&pause)
            pause.reset()
            let anew = mayFollow(&pause)
            #expect(!more && anew)
        }
    }

    @Test mutating func `pages in place of parts leave their hour to those of lists`() {
        for _ in 0..<RetryPause.mostForPlaylists { _ = pause.mayFollowPartPage() }
        let mayFollow = pause.mayFollowPlaylistPage()
        #expect(mayFollow)
    }

    private static func ofPlaylist(_ pause: inout RetryPause) -> Bool {
        pause.mayFollowPlaylistPage()
    }

    private static func ofPart(_ pause: inout RetryPause) -> Bool { pause.mayFollowPartPage() }

    @Test mutating func `pages instead of lists are waited out for an hour, of parts for eight`() {
        for (mayFollow, hours) in [(Self.ofPlaylist, 1), (Self.ofPart, 8)] {
            pause.reset()
            var waited = 0.0
            while mayFollow(&pause) { waited += pause.next().inSeconds }
            #expect((3_400...3_600).contains(waited / Double(hours)))
        }
    }
}

import CachePolicy
import Posix
import Testing

/// How long a playlist is reused before its origin is asked.
@Suite struct PlaylistReuseTests {
    @Test(arguments: Policy.allCases)
    func `a live list is reused for half a target duration under every policy`(_ policy: Policy) {
        let list = PlaylistFacts(isLive: true, targetDuration: .seconds(6 as Int64))
        #expect(list.longestReuse(by: policy) == .seconds(3 as Int64))
    }

    @Test func `a list that may be replaced is asked for by playlist semantics only`() {
        let ended = PlaylistFacts(
            isLive: false, targetDuration: .seconds(6 as Int64), hasEnded: true)
        let channel = PlaylistFacts(isLive: false, namesLive: true)
        for list in [ended, channel] {
            #expect(list.longestReuse(by: .media) == .seconds(18 as Int64))
            #expect(list.longestReuse(by: .rfc) == nil)
        }
        #expect(PlaylistFacts(isLive: false).longestReuse(by: .media) == nil)
    }
}

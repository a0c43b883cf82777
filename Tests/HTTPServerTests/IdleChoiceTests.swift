@testable import HTTPServer
import Posix
import Testing

/// Which connection gives way to a new one, and how that is summed up.
struct IdleChoiceTests {
    private let start = Monotonic(nanoseconds: 1_000_000_000_000)

    /// The connections of a loop, of which some do not give way.
    private final class Crowd {
        var idle: [Int: (Idleness, Monotonic)] = [:]
        var stuck: Set<Int> = []
        private(set) var passes = 0
        private var choice = IdleChoice<Int>()

        /// Closes the connection that gives way next, unless it is stuck; returns its key.
        func next(_ now: Monotonic) -> Int? {
            let next = choice.next(now: now) { pass in
                passes += 1
                for (key, idleSince) in idle { pass.consider(key, idleSince) }
            }
            guard let next else { return nil }
            if !stuck.contains(next.key) { idle[next.key] = nil }
            return next.key
        }
    }

    private func after(_ milliseconds: Int) -> Monotonic {
        start + .milliseconds(Int64(milliseconds))
    }

    @Test func `the longest idle connection comes first, and a pass keeps 64 of them`() {
        let crowd = Crowd()
        for key in 0..<200 { crowd.idle[key] = (.served, after(key * 7 % 200)) }
        var times: [Monotonic] = []
        for count in 1...200 {
            let before = crowd.idle
            guard let key = crowd.next(after(1000)), let (_, since) = before[key] else {
                Issue.record("the connections are used up after \(count - 1)")
                return
            }
            times.append(since)
            #expect(crowd.passes == (count + 63) / 64)
        }
        #expect(times == (0..<200).map { after($0) })
        #expect(crowd.next(after(1000)) == nil)
    }

    @Test func `connections before their first request come last, and after a second only`() {
        let crowd = Crowd()
        crowd.idle = [1: (.unused, start), 2: (.served, after(900)), 3: (.unused, after(1))]
        #expect(crowd.next(after(999)) == 2)
        #expect(crowd.next(after(999)) == nil)
        #expect(crowd.next(after(1100)) == 1)
        // One that has got its response since the pass precedes, as soon as a pass may be made.
        crowd.idle[4] = (.served, after(1150))
        #expect(crowd.next(after(1200)) == 4)
        #expect(crowd.next(after(1200)) == 3)
    }

    @Test func `after a pass that found no connection none is made for a tenth of a second`() {
        let crowd = Crowd()
        #expect(crowd.next(start) == nil && crowd.passes == 1)
        crowd.idle[1] = (.served, start)
        #expect(crowd.next(after(99)) == nil && crowd.passes == 1)
        #expect(crowd.next(after(100)) == 1 && crowd.passes == 2)
        // That pass found one: the next comes at once.
        crowd.idle[2] = (.served, after(101))
        #expect(crowd.next(after(101)) == 2 && crowd.passes == 3)
    }

    @Test func `connections that do not give way hide no others, and come again after them`() {
        let crowd = Crowd()
        for key in 0..<100 { crowd.idle[key] = (.served, after(key)) }
        crowd.stuck = Set(0..<64)
        for key in 0..<64 { #expect(crowd.next(after(1000)) == key) }
        for key in 64..<100 { #expect(crowd.next(after(1000)) == key) }
        #expect(crowd.passes == 2)
        // The second pass had room for some of the others.
        for key in 0..<28 { #expect(crowd.next(after(1000)) == key) }
        crowd.idle[100] = (.served, after(1001))
        #expect(crowd.next(after(1001)) == 100 && crowd.passes == 3)
    }

    @Test func `one that does not give way costs one more pass in a tenth of a second`() {
        let crowd = Crowd()
        crowd.idle[1] = (.served, start)
        crowd.stuck = [1]
        var keys = (0..<5).map { _ in crowd.next(after(10)) }
        #expect(keys == [1, 1, nil, nil, nil] && crowd.passes == 2)
        keys = (0..<3).map { _ in crowd.next(after(110)) }
        #expect(keys == [1, nil, nil] && crowd.passes == 3)
    }

    @Test func `a connection that was used since the pass, or another one, is no candidate`() {
        var choice = IdleChoice<Int>()
        let candidate = choice.next(now: start) { $0.consider(1, (.served, start)) }
        #expect(candidate?.isUnchanged((.served, start)) == true)
        let others: [(Idleness, Monotonic)?] = [nil, (.served, after(1)), (.unused, start)]
        for other in others { #expect(candidate?.isUnchanged(other) == false) }
    }

    @Test func `an episode is told once, and summed up after a time without news`() {
        var episode = CrowdEpisode()
        var begins = [episode.note(.refused), episode.note(.closed)]
        var ends = [episode.look()]
        begins.append(episode.note(.closed))
        ends += [episode.look(), episode.look(), episode.look()]
        begins.append(episode.note(.closed))
        #expect(begins == [true, false, false, true])
        #expect(ends == [nil, nil, CrowdCounts(closed: 2, refused: 1), nil])
    }
}

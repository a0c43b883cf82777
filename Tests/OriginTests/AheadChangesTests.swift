import Testing
import Upstream

@testable import Origin

/// What the end of a round looks at.
@Suite struct AheadChangesTests {
    private final class Fetch {}
    private final class Flight {
        let fetches: [Fetch]

        init(_ fetches: [Fetch]) { self.fetches = fetches }
    }

    private typealias Changes = AheadChanges<Fetch, Flight>

    private func names(_ fetches: [Fetch]) -> Set<ObjectIdentifier> {
        Set(fetches.map { ObjectIdentifier($0) })
    }

    @Test func `a round looks at all fetches only when other lanes are held back`() {
        let all = (0..<1_000).map { _ in Fetch() }
        var changes = Changes()
        var counts: [Int] = []
        let rounds: [[Lane]] = [
            [], [.prefetch], [.prefetch], [.prefetch, .background], [.prefetch], [], [],
        ]
        for held in rounds {
            counts.append(changes.take(held: held, all: { all }, sharing: { $0.fetches }).count)
        }
        #expect(counts == [0, 1_000, 0, 1_000, 1_000, 1_000, 0])
    }

    @Test func `a round looks once at all fetches of changed flights, and at those that wait`() {
        let fetches = (0..<4).map { _ in Fetch() }
        let shared = Flight([fetches[0], fetches[1]])
        var changes = Changes()
        changes.note(shared)
        changes.note(shared)
        changes.note(waiting: fetches[1])
        changes.note(waiting: fetches[2])
        let first = changes.take(held: [], all: { [] }, sharing: { $0.fetches })
        let second = changes.take(held: [], all: { fetches }, sharing: { $0.fetches })
        #expect(first.count == 3 && names(first) == names(Array(fetches[0..<3])))
        #expect(second.isEmpty)
    }
}

import Testing

@testable import Ahead

/// Which downloads begin, go on or wait.
@Suite struct DownloadRoundTests {
    private var states: [Download.State] = []
    /// Those that wait, and may not try again yet.
    private var resting: Set<Int> = []

    /// Looks at all downloads, and carries out the steps.
    private mutating func look(_ obstacle: String? = nil) -> [DownloadRound.Step] {
        var round = DownloadRound(obstacle: obstacle)
        var steps: [DownloadRound.Step] = []
        for index in states.indices {
            let state = states[index]
            let step = round.step(state, isDue: !resting.contains(index))
            switch step {
            case .nothing, .pump: break
            case .suspend(let reason), .wait(let reason): states[index] = .waiting(reason)
            case .start, .goOn: states[index] = .running
            }
            round.note(states[index])
            steps.append(step)
        }
        return steps
    }

    @Test mutating func `four downloads run, and the next begins when one ends`() {
        states = Array(repeating: .queued, count: 6)
        let first = look()
        #expect(first == [.start, .start, .start, .start, .nothing, .nothing])
        let second = look()
        #expect(second == [.pump, .pump, .pump, .pump, .nothing, .nothing])
        states[1] = .complete
        let third = look()
        #expect(third == [.pump, .nothing, .pump, .pump, .start, .nothing])
    }

    @Test mutating func `a download that is checked takes a place, one that waits does not`() {
        states = [.checking, .waiting("the origin is down")]
        states += Array(repeating: Download.State.queued, count: 4)
        resting = [1]
        let steps = look()
        #expect(steps == [.nothing, .nothing, .start, .start, .start, .nothing])
    }

    @Test mutating func `a download that waits goes on in its turn when it is due`() {
        states = [.waiting("the origin is down"), .running]
        resting = [0]
        let before = look()
        #expect(before == [.nothing, .pump])
        resting = []
        let after = look()
        #expect(after == [.goOn, .pump] && states[0] == .running)
    }

    @Test mutating func `a download that waited has its turn before those ordered later`() {
        states = [.waiting("the origin is down")]
        states += Array(repeating: Download.State.running, count: 4)
        states += [.queued]
        let steps = look()
        #expect(steps == [.goOn, .pump, .pump, .pump, .pump, .nothing])
    }

    @Test mutating func `of forty downloads that waited for their origin the first go on`() {
        states = Array(repeating: .waiting("the origin is down"), count: 40)
        // The last ones are due first.
        for due in states.indices.reversed() {
            resting = Set(0..<due)
            _ = look()
            #expect(states.count(where: { $0.isRunning }) <= 8)
            #expect(states[due] == .running)
        }
        #expect(states.prefix(8).allSatisfy { $0 == .running })
        // Those that have no place do not wait for an origin any more.
        #expect(states.dropFirst(8).allSatisfy { $0 == .waiting(DownloadRound.turn) })
        for index in 0..<8 { states[index] = .complete }
        let next = look()
        #expect(next[8..<13] == [.goOn, .goOn, .goOn, .goOn, .nothing])
    }

    @Test mutating func `an obstacle suspends fetching downloads until it is gone`() {
        states = [
            .running, .checking, .queued, .paused(), .complete, .failed("x"), .waiting("y"),
            .planning,
        ]
        let suspended = DownloadRound.Step.suspend("quiet hours")
        let begins = look("quiet hours")
        #expect(
            begins == [
                suspended, .nothing, suspended, .nothing, .nothing, .nothing, suspended, suspended,
            ])
        let lasts = look("quiet hours")
        #expect(lasts.allSatisfy { $0 == .nothing })
        // The reason that is shown is the present one.
        let changes = look("the day's budget")
        #expect(changes[0] == .suspend("the day's budget") && changes[1] == .nothing)
        let ends = look()
        #expect(
            ends == [
                .goOn, .nothing, .goOn, .nothing, .nothing, .nothing, .goOn,
                .wait(DownloadRound.turn),
            ])
    }
}

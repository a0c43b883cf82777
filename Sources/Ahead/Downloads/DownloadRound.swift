/// One look at all downloads, in the order of their orders: which of them begin, go on or wait.
struct DownloadRound {
    /// The most downloads that run in parallel; others are queued, or wait with their plan.
    ///
    /// Those that wait do not count, since an origin may never come back.
    static let mostRunning = 4
    /// The number of earlier running downloads from which a running one is suspended.
    ///
    /// It exceeds `mostRunning`, so that downloads that return after a short outage need not
    /// displace those that began meanwhile.
    static let mostWithReturned = 8

    /// The reason shown for a download that has been planned and waits for a place.
    static let turn = "downloads that were ordered before it run"

    /// What to do with a download.
    enum Step: Equatable {
        case nothing
        /// Ends its fetches; it waits for this reason.
        case suspend(String)
        /// Goes on waiting, for this reason.
        case wait(String)
        /// Plans its pieces.
        case start
        /// Goes on after a wait.
        case goOn
        /// Fills its window.
        case pump
    }

    /// The reason that stops all downloads; nil without one.
    let obstacle: String?
    /// The running downloads that were ordered before the next one.
    private var runningBefore = 0

    init(obstacle: String?) { self.obstacle = obstacle }

    /// Returns what to do with the next download.
    ///
    /// - Parameters:
    ///   - state: its state.
    ///   - isDue: false before the time of its next retry.
    /// - Returns: the step.
    func step(_ state: Download.State, isDue: Bool) -> Step {
        // One that is being checked fetches nothing.
        if let obstacle, state.isActive, state != .checking {
            return state == .waiting(obstacle) ? .nothing : .suspend(obstacle)
        }
        let hasPlace = runningBefore < Self.mostRunning
        return switch state {
        case .queued where hasPlace: .start
        case .waiting where isDue && hasPlace: .goOn
        case .waiting where isDue && state != .waiting(Self.turn): .wait(Self.turn)
        case .running, .planning:
            runningBefore < Self.mostWithReturned ? .pump : .suspend(Self.turn)
        default: .nothing
        }
    }

    /// Counts a download in the state that its step has led to.
    mutating func note(_ state: Download.State) {
        if state.isRunning { runningBefore += 1 }
    }
}

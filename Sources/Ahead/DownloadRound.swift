/// One look at all downloads, in the order of their orders: which of them begin, go on or wait.
struct DownloadRound {
    /// The most downloads that run in parallel; others are queued.
    ///
    /// Those that wait do not count, since an origin may never come back.
    static let mostRunning = 4

    /// What to do with a download.
    enum Step: Equatable {
        case nothing
        /// Ends its fetches; it waits for this reason.
        case suspend(String)
        /// Plans its pieces.
        case start
        /// Goes on after a wait.
        case goOn
        /// Fills its window.
        case pump
    }

    /// The reason that stops all downloads; nil without one.
    let obstacle: String?
    private var running = 0

    init(obstacle: String?) { self.obstacle = obstacle }

    /// Returns what to do with the next download.
    ///
    /// - Parameters:
    ///   - state: its state.
    ///   - isDue: false while it waits before it tries again.
    /// - Returns: the step.
    func step(_ state: Download.State, isDue: Bool) -> Step {
        // One that is being checked fetches nothing.
        if let obstacle, state.isActive, state != .checking {
            return state == .waiting(obstacle) ? .nothing : .suspend(obstacle)
        }
        return switch state {
        case .queued where running < Self.mostRunning: .start
        case .waiting where running < Self.mostRunning && isDue: .goOn
        case .running: .pump
        default: .nothing
        }
    }

    /// Counts a download in the state that its step has led to.
    mutating func note(_ state: Download.State) {
        if state.isRunning { running += 1 }
    }
}

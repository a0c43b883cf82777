/// One look at all downloads, in the order of their orders: which of them begin, go on or wait.
struct DownloadRound {
    /// The most downloads that run in parallel; others are queued.
    ///
    /// Those that wait do not count, since an origin may never come back.
    static let mostRunning = 4
    /// The most when downloads go on that were ordered before some that run: a short failure does not
    /// cost them their turn.
    static let mostWithReturned = 8

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
    /// All downloads that run.
    private var running: Int
    /// Of these, the ones ordered before the next one.
    private var runningBefore = 0

    /// - Parameters:
    ///   - obstacle: the reason that stops all downloads; nil without one.
    ///   - running: the downloads that run at the start of the look.
    init(obstacle: String?, running: Int) {
        self.obstacle = obstacle
        self.running = running
    }

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
        let hasPlace = runningBefore < Self.mostRunning && running < Self.mostWithReturned
        return switch state {
        case .queued where hasPlace: .start
        case .waiting where hasPlace && isDue: .goOn
        case .running: .pump
        default: .nothing
        }
    }

    /// Counts a download whose step has led from one state to another.
    mutating func note(from former: Download.State, to state: Download.State) {
        if former.isRunning { running -= 1 }
        guard state.isRunning else { return }
        running += 1
        runningBefore += 1
    }
}

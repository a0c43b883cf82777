import HLS
package import HTTP
package import Library
package import Model
package import Posix
import Reactor
import Routing
import Synchronization

/// The thread-safe access to the keeper's thread.
package final class TimeShiftThread: Sendable {
    private let thread: LoopThread
    /// The server answers before the keeper is started: the keeper needs its addresses.
    private let keeper: LateLoopBound<TimeShiftKeeper>
    /// True while there is a keeper that answers, or will once it is made.
    let isStarted = Atomic<Bool>(false)
    /// True once the keeper is told to stop: what it does should end soon.
    let isStopping = Atomic<Bool>(false)
    /// How long a stop may take to save windows of players; one that is not saved lacks its last
    /// seconds, as after a kill.
    private static let patience = Interval.seconds(5 as Int64)

    /// Starts the thread.
    package init() throws(SystemError) {
        thread = try LoopThread(name: "timeshift") { _ in }
        keeper = LateLoopBound(thread.handle)
    }

    /// Starts the keeper and resumes recordings of the previous run.
    package func start(_ services: TimeShiftServices) {
        // A purge from now on waits for the recordings, which are resumed on that thread.
        isStarted.store(true, ordering: .releasing)
        keeper.make { loop in
            let made = TimeShiftKeeper(services, loop)
            made.start()
            return made
        }
    }

    /// Saves windows and ends the thread; blocks on the disk.
    package func stop() {
        isStarted.store(false, ordering: .releasing)
        isStopping.store(true, ordering: .releasing)
        let deadline = Monotonic.now() + Self.patience
        onKeeper { $0.stop(by: deadline) }
        thread.stopAndJoin()
        keeper.end()
    }

    /// Runs `body` on the keeper's thread, after `start`; ignored after `stop`.
    func onKeeper(_ body: @escaping @Sendable (TimeShiftKeeper) -> Void) {
        keeper.enqueue { keeper, _ in body(keeper) }
    }

    /// Makes the keeper follow a list that a player has requested, under the URL of that request.
    package func look(after list: ShiftedList, of resource: Resource, now: Monotonic) {
        guard list.beginsFollowing(now: now) else { return }
        onKeeper { $0.follow(list, of: resource) }
    }

    /// What a recording that has not ended does.
    enum RecordingStage: Sendable {
        case running
        case paused
    }

    private let recordings = Mutex<[SessionID: RecordingStage]>([:])

    /// Records what a recording does; nil once it has ended or is forgotten.
    func note(_ stage: RecordingStage?, of session: SessionID) {
        recordings.withLock { $0[session] = stage }
    }

    /// True if a session's playlists are those of a recording that has ended or is paused, for
    /// which no origin is contacted.
    package func isOver(_ session: Session) -> Bool {
        session.shift.recording != nil && recordings.withLock { $0[session.id] != .running }
    }

    /// Returns the id of the recording that a session plays; nil unless it is paused.
    package func pausedRecording(_ session: Session) -> String? {
        let isPaused = recordings.withLock { $0[session.id] == .paused }
        return isPaused ? session.shift.recording : nil
    }

    /// Responds to a request under `/api/recordings`; `done` is called on the keeper's thread.
    package func answer(
        _ method: HTTPMethod, _ target: String,
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        onKeeper { done($0.recorder.answer(method, target)) }
    }

    /// Removes segments that have left a window.
    func drop(_ segments: [TimeShiftSegment], of list: ShiftedList) {
        guard !segments.isEmpty else { return }
        onKeeper { $0.leaving.take(segments, of: list) }
    }
}

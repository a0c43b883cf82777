// Purges in the background: started once, asked about as often as one likes.
import HTTP
import Posix
import Reactor
import Store
import Synchronization

/// One purge at a time.
final class StorePurge: Sendable {
    private enum State {
        case none
        case running(Removal)
        case done(Removal)
        case failed(String)
    }

    /// A purge that is over by then is answered with its outcome, a longer one with its progress.
    private static let patience = Interval.seconds(1 as Int64)

    private let store: ObjectStore
    private let state = Mutex(State.none)
    private let isStopped = Atomic<Bool>(false)
    /// Held for as long as the thread may run.
    private let thread = Mutex<PosixThread?>(nil)

    init(store: ObjectStore) {
        self.store = store
    }

    /// Starts a purge, unless one runs; blocks for a second at most.
    func start(_ fits: @escaping @Sendable (StoreEntry) -> Bool) -> HandAnswer {
        let isFree = state.withLock { state in
            if case .running = state { return false }
            state = .running(Removal())
            return true
        }
        guard isFree else {
            return .failure(
                .conflict, "another purge runs; GET /api/purge tells how far it is")
        }
        do throws(SystemError) {
            let isOver = try Latch()
            let made = try PosixThread(name: "purge") {
                self.run(fits)
                isOver.open()
            }
            let former = thread.withLock { thread in
                let former = thread
                thread = made
                return former
            }
            // It has ended: only then is a purge free to start.
            former?.join()
            _ = isOver.wait(atMost: Self.patience)
        } catch {
            state.withLock { $0 = .failed("no thread for the purge: \(error)") }
        }
        return answer
    }

    /// Ends it after the object that it is removing; blocks.
    func stop() {
        isStopped.store(true, ordering: .releasing)
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        running?.join()
    }

    private func run(_ fits: (StoreEntry) -> Bool) {
        do {
            let removal = try store.purge(where: fits) { removal in
                state.withLock { $0 = .running(removal) }
                return !isStopped.load(ordering: .acquiring)
            }
            state.withLock { $0 = .done(removal) }
        } catch {
            state.withLock { $0 = .failed("the purge ended early: \(error)") }
        }
    }

    /// How far the purge is, or what it removed.
    var answer: HandAnswer {
        switch state.withLock({ $0 }) {
        case .none: .value(.ok, .object([.init("state", .text("none"))]))
        case .running(let removal): .value(.accepted, Self.json("running", removal))
        case .done(let removal): .value(.ok, Self.json("done", removal))
        case .failed(let reason): .failure(.serviceUnavailable, reason)
        }
    }

    private static func json(_ state: String, _ removal: Removal) -> JSONValue {
        .object([
            .init("state", .text(state)), .init("removed", .number(Int64(removal.objects))),
            .init("bytes", .number(removal.bytes)),
        ])
    }
}

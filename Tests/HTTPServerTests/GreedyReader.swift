import Posix
import Reactor
import Synchronization

/// A client that reads as fast as it can, on a thread of its own.
final class GreedyReader: Sendable {
    private let state: State
    private let thread: PosixThread

    private final class State: Sendable {
        let count = Atomic<Int>(0)
        let isOver = Atomic<Bool>(false)
    }

    init(port: UInt16) throws {
        let state = State()
        self.state = state
        thread = try PosixThread(name: "greedy") {
            let client = TestClient(port: port)
            client.get("/endless")
            while !state.isOver.load(ordering: .relaxed) {
                let count = client.read(1 << 16).count
                if count == 0 { return }
                state.count.add(count, ordering: .relaxed)
            }
        }
    }

    var count: Int { state.count.load(ordering: .relaxed) }

    func stop() {
        state.isOver.store(true, ordering: .relaxed)
        thread.join()
    }
}

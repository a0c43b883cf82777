// Bodies that may have no end, which the loop of origins and the server loops share.
package import Endless
package import Posix
package import Store
import Synchronization

/// One body without a length that may be a live stream: what of it is kept, and where viewers enter.
///
/// The loop of origins writes, any thread reads.
///
///     undecided ──▶ endless ──▶ over
///         └───────▶ file
package final class EndlessBody: Sendable {
    package enum Stage: String, Sendable {
        /// Viewers get it from its first byte; nothing of it is dropped.
        case undecided
        /// A live stream: viewers enter at its edge, a window of it is kept.
        case endless
        /// It has an end, and is stored like any other.
        case file
    }

    private struct State {
        var stage = Stage.undecided
        var window: EdgeWindow
        var viewers = 0
        var isOver = false
    }

    /// The generation of its object.
    package let generation: UInt64
    package let key: ObjectKey
    package let format: StreamFormat
    package let begunAt: Monotonic
    private let state: Mutex<State>
    /// The first offset that may be read.
    private let start = Atomic<Int64>(0)
    /// The end of the bytes that are gone.
    private let gone = Atomic<Int64>(0)

    package init(
        generation: UInt64, key: ObjectKey, format: StreamFormat, limits: EdgeWindow.Limits,
        now: Monotonic
    ) {
        self.generation = generation
        self.key = key
        self.format = format
        begunAt = now
        state = Mutex(State(window: EdgeWindow(limits)))
    }

    package var stage: Stage { state.withLock { $0.stage } }

    /// The number of bytes that are kept.
    package var keptBytes: Int64 {
        state.withLock {
            max(0, $0.window.end - max($0.window.start, gone.load(ordering: .relaxed)))
        }
    }

    /// The number of viewers that read it now.
    package var viewers: Int { state.withLock { $0.viewers } }

    /// True once no byte will follow.
    package var isOver: Bool { state.withLock { $0.isOver } }

    // MARK: The loop of origins

    /// Notes the bytes that have arrived, as `EdgeWindow.advance` does.
    package func advance(
        to end: Int64, accessPoints: [Int64], tables: [UInt8], packet: Int64?, now: Monotonic
    ) {
        let first = state.withLock { state in
            state.window.advance(
                to: end, accessPoints: accessPoints, tables: tables, packet: packet, now: now)
            return state.stage == .endless ? state.window.start : 0
        }
        start.store(first, ordering: .releasing)
    }

    /// Settles whether the body is a live stream or a file.
    package func settle(_ stage: Stage) { state.withLock { $0.stage = stage } }

    package func end() { state.withLock { $0.isOver = true } }

    /// Returns the end of the bytes to drop now, and marks them as gone.
    package func dispose(slowest: Int64?, now: Monotonic) -> Int64 {
        let end = state.withLock { $0.window.disposable(slowest: slowest, now: now) }
        gone.max(end, ordering: .releasing)
        return end
    }

    // MARK: Viewers

    /// Returns where a viewer enters; nil unless the body is known to be endless.
    package func entry(now: Monotonic) -> EdgeEntry? {
        state.withLock { $0.stage == .endless ? $0.window.entry(now: now) : nil }
    }

    /// Returns where a reader continues that has fallen behind the kept window; nil if it has not
    /// fallen behind.
    package func entry(after offset: Int64, now: Monotonic) -> EdgeEntry? {
        guard offset < start.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.window.entry(after: offset, now: now) }
    }

    /// True if bytes from an offset on may have been dropped while they were sent.
    package func isGone(_ offset: Int64) -> Bool { offset < gone.load(ordering: .acquiring) }

    package func viewerEntered() { state.withLock { $0.viewers += 1 } }

    package func viewerLeft() { state.withLock { $0.viewers -= 1 } }
}

/// The bodies that are arriving and may have no end.
///
/// Any thread may use it.
package final class EndlessBodies: Sendable {
    private let bodies = Mutex<[UInt64: EndlessBody]>([:])

    package init() {}

    package func add(_ body: EndlessBody) { bodies.withLock { $0[body.generation] = body } }

    package func remove(_ body: EndlessBody) { bodies.withLock { $0[body.generation] = nil } }

    /// Returns the body that a request for a key would join; nil if none is arriving.
    package func arriving(for key: ObjectKey) -> EndlessBody? {
        bodies.withLock { bodies in
            bodies.values.filter { $0.key == key && !$0.isOver && $0.stage != .file }
                .max { $0.generation < $1.generation }
        }
    }
}

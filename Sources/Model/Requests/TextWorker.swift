// The threads that parse and rewrite long texts, so that no event loop is blocked.
package import Posix
import Reactor
package import Routing
package import Store
import Synchronization

/// Runs tasks on texts that would block a loop too long; equal requests share a task.
///
/// Any thread may use it. The queue is bounded, in bytes of text and in tasks.
///
/// | state of a task | left by |
/// |---|---|
/// | waiting | a thread takes it (`run`); or the last request for it is withdrawn (`cancel`) |
/// | running | its result is available (`run`); a withdrawn request merely gets no reply |
package final class TextWorker: Sendable {
    /// Texts of this many bytes or more are not parsed on a loop.
    ///
    /// A release build parses and rewrites 12 MB in some 150 ms, so this size takes 3 to 4 ms; the
    /// thread switch costs a thousandth of that.
    package static let longText: Int64 = 256 << 10
    /// A window of this many segments makes a long text.
    package static let longWindow = 2_048

    /// The product of a task on one stored text.
    package struct Key: Hashable, Sendable {
        package enum Product: Hashable, Sendable {
            /// The text rewritten for requests under this host, in its current form or in this cut.
            case rewritten(ObjectFacts.RewriteKey, host: String, resource: ObjectKey, cut: UInt64)
            case compressed(ObjectFacts.RewriteKey)
            /// Whether it is an HLS JSON text.
            case judgement
            case position
            /// Which list of a session contained a resource whose token has expired.
            case revival(ObjectKey, session: SessionID)
            /// The current URL of that resource in this list.
            case succession(ObjectKey, session: SessionID)
            /// The target of a link without its query: its handle, and the place in the list.
            case target(Substring, LivePlace?)
        }

        /// The generation of the stored object.
        package let generation: UInt64
        package let product: Product

        package init(generation: UInt64, product: Product) {
            self.generation = generation
            self.product = product
        }
    }

    /// Identifies one request.
    package struct Request: Sendable {
        fileprivate let key: Key
        fileprivate let number: UInt64
    }

    private typealias Reply = @Sendable (any Sendable) -> Void

    private struct Job {
        let number: UInt64
        let bytes: Int
        let thread: Int
        var isRunning = false
        var replies: [UInt64: Reply]
    }

    private struct State {
        var tasks: [Key: Job] = [:]
        /// The bytes of each thread's tasks.
        var load = [Int](repeating: 0, count: TextWorker.threadCount)
        var last: UInt64 = 0
        var isStopped = false
    }

    private static let threadCount = 2
    /// Bytes of text that may wait or be processed at a time; with none waiting, a task of any size
    /// is accepted.
    private static let mostBytes = 256 << 20
    private static let mostTasks = 256

    private let threads: [LoopThread]
    private let state = Mutex(State())
    private let counters: Counters

    /// Starts the threads.
    package init(counters: Counters) throws(SystemError) {
        self.counters = counters
        var threads: [LoopThread] = []
        for index in 0..<Self.threadCount {
            threads.append(try LoopThread(name: "text-\(index)") { _ in })
        }
        self.threads = threads
    }

    /// Finishes running tasks, drops the others and joins the threads; blocks.
    package func stop() {
        state.withLock { $0.isStopped = true }
        for thread in threads { thread.stopAndJoin() }
        // Removed, since their closures would keep parts of the daemon alive.
        _ = state.withLock { state in
            defer { state.tasks = [:] }
            return state.tasks
        }
    }

    /// Runs a task on a text, or joins the task that runs already.
    ///
    /// - Parameters:
    ///   - key: the product; equal keys make equal values of one type.
    ///   - bytes: the length of the text.
    ///   - make: makes the value; blocks. Not called if a task for the key exists.
    ///   - reply: called once with the value, on a thread of the worker; not after `cancel`, nor
    ///     once the daemon stops.
    /// - Returns: the request, for `cancel`; nil if the queue is full, in which case nothing is
    ///   called.
    package func make<Value: Sendable>(
        _ key: Key, bytes: Int, _ make: @escaping @Sendable () -> Value,
        reply: @escaping @Sendable (Value) -> Void
    ) -> Request? {
        let answer: Reply = { value in
            if let value = value as? Value { reply(value) }
        }
        let (request, place) = state.withLock { state -> (Request?, Int?) in
            state.last += 1
            let request = Request(key: key, number: state.last)
            if state.tasks[key] != nil {
                state.tasks[key]?.replies[request.number] = answer
                return (request, nil)
            }
            let waiting = state.load.reduce(0, +)
            guard !state.isStopped, state.tasks.count < Self.mostTasks,
                waiting == 0 || waiting + bytes <= Self.mostBytes
            else { return (nil, nil) }
            let place = state.load.indices.min { state.load[$0] < state.load[$1] } ?? 0
            state.load[place] += bytes
            state.tasks[key] = Job(
                number: request.number, bytes: bytes, thread: place,
                replies: [request.number: answer])
            return (request, place)
        }
        guard let request, let place else { return request }
        let isTaken = threads[place].handle.enqueue { [self] _ in
            run(key, request.number) { make() }
        }
        if isTaken { return request }
        cancel(request)
        return nil
    }

    /// Withdraws a request; a task without requests is dropped if it has not begun.
    package func cancel(_ request: Request) {
        state.withLock { state in
            state.tasks[request.key]?.replies[request.number] = nil
            guard let task = state.tasks[request.key], !task.isRunning, task.replies.isEmpty else {
                return
            }
            Self.remove(request.key, &state)
        }
    }

    private func run(_ key: Key, _ number: UInt64, _ make: () -> any Sendable) {
        let isWanted = state.withLock { state in
            guard !state.isStopped, state.tasks[key]?.number == number else { return false }
            state.tasks[key]?.isRunning = true
            return true
        }
        guard isWanted else { return }
        let value = make()
        counters.add(.longTexts)
        let task = state.withLock { Self.remove(key, &$0) }
        for reply in (task?.replies ?? [:]).values { reply(value) }
    }

    @discardableResult
    private static func remove(_ key: Key, _ state: inout State) -> Job? {
        guard let task = state.tasks.removeValue(forKey: key) else { return nil }
        state.load[task.thread] -= task.bytes
        return task
    }
}

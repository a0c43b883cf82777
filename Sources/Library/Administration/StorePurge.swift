// Purges in the background: started once, polled for progress, and continued by the next run if
// this one ends before; what the disk refuses to delete is left to the next run by its keys.
import DurableState
import HTTP
import Logging
import Model
import Numbers
import Posix
import Reactor
import Store
import Synchronization

/// Runs one purge at a time; others that are given meanwhile follow it.
package final class StorePurge: Sendable {
    private enum State {
        case none
        case running(Removal)
        case done(Removal)
        case failed(String)
    }

    /// The time to wait for the outcome of a purge; a longer one is answered with its progress.
    private static let patience = Interval.seconds(1 as Int64)

    private let store: ObjectStore
    private let kept: PurgeOrders
    private let willPurge: StoreAdministration.WillPurge?
    private let removals: RemovalNotices
    private let use: KnownDiskUse
    private let state = Mutex(State.none)
    /// Purges that were given while one runs, and those who wait for the outcome.
    private struct Queue {
        var orders: [PurgeOrder] = []
        /// Those that are carried out, or wait, without a record: the disk had no room for one.
        var unsaved: [PurgeOrder] = []
        var waiting: [ThreadSemaphore] = []
    }

    /// Its lock is held over changes of the records, so that the end of a purge does not drop those
    /// of others.
    private let queue = Mutex(Queue())
    /// The most orders in the queue.
    private static let mostQueued = 10_000
    private let isStopped = Atomic<Bool>(false)
    /// True if orders are kept only for files that the disk refused to delete: the next run of the
    /// daemon would find these again.
    private let awaitsDeletion = Atomic<Bool>(false)
    /// True if the records of a purge that is done could not be replaced by those of such files.
    private let hasFormerRecords = Atomic<Bool>(false)
    /// The thread that may be running.
    private let thread = Mutex<PosixThread?>(nil)

    init(
        store: ObjectStore, willPurge: StoreAdministration.WillPurge?, removals: RemovalNotices,
        use: KnownDiskUse
    ) {
        self.store = store
        self.willPurge = willPurge
        self.removals = removals
        self.use = use
        kept = PurgeOrders(database: store.state)
    }

    /// Continues a purge that an earlier run has not finished; must be called before any object is
    /// looked up.
    ///
    /// From now on its objects are not found, whether or not their files are deleted yet.
    package func resume() {
        let orders = kept.all()
        guard !orders.isEmpty else { return }
        let unfinished = orders.filter { !$0.isDone }
        if unfinished.isEmpty {
            log.notice("deleting files of purged objects that the disk refused to delete")
        } else {
            log.notice("continuing a purge that the last run did not finish")
            _ = willPurge?(unfinished)
        }
        do throws(SystemError) {
            try begin(selection(of: orders), continuing: orders, hides: true, isResumed: true)
        } catch {
            log.error("cannot continue a purge", metadata: ["error": "\(error)"])
        }
    }

    /// Starts some purges in one pass, after the one that is running; blocks for a second at most.
    ///
    /// Those that follow another spare what was stored after the time of their orders, too.
    ///
    /// - Parameters:
    ///   - orders: what is removed.
    ///   - isGivenNow: false spares what was stored after the time of its order; the other objects are
    ///     not found from now on, whether or not they are deleted yet.
    /// - Returns: the outcome, or the progress.
    package func start(_ orders: [PurgeOrder], isGivenNow: Bool = true) -> AdministrationAnswer {
        let mayQueue = queue.withLock { $0.orders.count + orders.count <= Self.mostQueued }
        if isRunning, !mayQueue { return Self.refusal }
        _ = willPurge?(orders)
        do throws(SystemError) {
            let isOver = try ThreadSemaphore()
            let refusal = try queue.withLock { queue throws(SystemError) -> AdministrationAnswer? in
                if let refusal = try accept(orders, isGivenNow: isGivenNow, &queue) {
                    return refusal
                }
                queue.waiting.append(isOver)
                return nil
            }
            if let refusal { return refusal }
            _ = isOver.wait(atMost: Self.patience)
            return answer
        } catch {
            return .failure(.serviceUnavailable, "no thread for the purge: \(error)")
        }
    }

    /// Saves orders, and begins to carry them out or puts them into the queue.
    ///
    /// - Returns: why they cannot be saved; nil if they are accepted.
    private func accept(
        _ orders: [PurgeOrder], isGivenNow: Bool, _ queue: inout Queue
    ) throws(SystemError) -> AdministrationAnswer? {
        let isQueued = isRunning
        if !isQueued { settleRecords() }
        // Includes purges that an earlier run could not finish; those that await the deletion of
        // files have removed all that they select.
        let isDone = isQueued || awaitsDeletion.load(ordering: .acquiring)
        let former = isDone ? [] : kept.all() + queue.unsaved
        do throws(StateFault) {
            try kept.add(queue.unsaved + orders)
            queue.unsaved = []
        } catch {
            // A purge frees space, so that it is carried out without a record. A disk that rejects
            // all writes would delete nothing, and serve everything again after a restart.
            guard case .noRoom = error else {
                return .failure(
                    .insufficientStorage,
                    "nothing was purged, since the order cannot be saved: \(error)")
            }
            let subjects = Set(orders.map(\.subject))
            queue.unsaved.removeAll { subjects.contains($0.subject) }
            queue.unsaved += orders
            log.warning(
                "a purge begins without a record, for which the disk has no room",
                metadata: ["error": "\(error)"])
        }
        if isQueued {
            queue.orders += orders
            return nil
        }
        awaitsDeletion.store(false, ordering: .releasing)
        var selection = selection(of: former)
        selection.add(orders, isGivenNow: isGivenNow)
        try begin(selection, continuing: former, hides: !isGivenNow)
        return nil
    }

    private var log: Logger { store.state.log }

    private var isRunning: Bool {
        if case .running = state.withLock({ $0 }) { true } else { false }
    }

    private static let refusal = AdministrationAnswer.failure(
        .conflict,
        "too many purges wait for the one that runs; GET /api/purge tells how far it is")

    /// Returns the objects that orders of before select.
    private func selection(of orders: [PurgeOrder]) -> PurgeSelection {
        var selection = PurgeSelection(pins: store.pins())
        selection.add(orders)
        return selection
    }

    /// Starts the thread.
    private func begin(
        _ selection: PurgeSelection, continuing orders: [PurgeOrder], hides: Bool,
        isResumed: Bool = false
    ) throws(SystemError) {
        state.withLock { $0 = .running(Removal()) }
        if hides { store.hide(selection.fits) }
        do throws(SystemError) {
            let made = try PosixThread(name: "purge") {
                self.run(selection, continuing: orders, isResumed: isResumed)
            }
            let former = thread.withLock { thread in
                let former = thread
                thread = made
                return former
            }
            // It has ended, otherwise no purge could start; this does not block.
            former?.join()
        } catch {
            state.withLock { $0 = .failed("no thread for the purge: \(error)") }
            throw error
        }
    }

    /// Stops after the object that is being removed, and leaves the rest to the next run; blocks.
    package func stop() {
        isStopped.store(true, ordering: .releasing)
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        running?.join()
        settleRecords()
        let unsaved = queue.withLock { $0.unsaved }
        guard !unsaved.isEmpty else { return }
        do throws(StateFault) {
            try kept.add(unsaved)
        } catch {
            log.error(
                "a purge is interrupted, and cannot be saved: order it again after the start",
                metadata: ["error": "\(error)"])
        }
    }

    /// Drops the orders of a purge that is done, except for the files that the disk refused to
    /// delete, and these once they are deleted.
    ///
    /// Repeated as a whole by a later run, the orders would remove what was unpinned since then, and
    /// each further one would take room. If the disk rejects the change, it is tried again with the
    /// next purge and at the stop.
    private func settleRecords() {
        guard awaitsDeletion.load(ordering: .acquiring) else { return }
        let left = store.undeletedKeys
        guard left.isEmpty || hasFormerRecords.load(ordering: .acquiring) else { return }
        do throws(StateFault) {
            try kept.replaceAll(byObjects: left)
            hasFormerRecords.store(false, ordering: .releasing)
            awaitsDeletion.store(!left.isEmpty, ordering: .releasing)
        } catch {
            hasFormerRecords.store(true, ordering: .releasing)
            log.error(
                """
                the end of a purge cannot be saved, which is tried again: until then a start \
                repeats it, and may find files again that are not deleted
                """, metadata: ["error": "\(error)", "files": "\(left.count)"])
        }
    }

    /// Carries out a purge, and those that are given until its end.
    private func run(
        _ first: PurgeSelection, continuing orders: [PurgeOrder], isResumed: Bool
    ) {
        var removal = Removal()
        var tellsAll = orders.contains { !$0.isDone }
        var next: PurgeSelection? = first
        var waiting: [ThreadSemaphore] = []
        while let selection = next {
            let outcome = Result {
                try remove(selection, after: removal, tellsAll: tellsAll)
            }
            // With the lock held once: whoever begins the next purge holds it, and joins this thread.
            (next, waiting) = queue.withLock { queue -> (PurgeSelection?, [ThreadSemaphore]) in
                switch outcome {
                case .success(let all):
                    removal = all
                    if let more = end(&queue, all, continuing: orders, isResumed: isResumed) {
                        return (more, [])
                    }
                case .failure(let error):
                    // The records are left to the next purge or run.
                    queue.orders = []
                    state.withLock { $0 = .failed("the purge ended early: \(error)") }
                }
                defer { queue.waiting = [] }
                return (nil, queue.waiting)
            }
            tellsAll = false
        }
        for isOver in waiting { isOver.signal() }
    }

    /// Takes the purges that were given meanwhile from the queue, or ends.
    ///
    /// - Returns: what these select; nil at the end.
    private func end(
        _ queue: inout Queue, _ removal: Removal, continuing orders: [PurgeOrder], isResumed: Bool
    ) -> PurgeSelection? {
        var removal = removal
        if !isStopped.load(ordering: .acquiring) {
            guard queue.orders.isEmpty else {
                defer { queue.orders = [] }
                return selection(of: queue.orders)
            }
            // These have no rows, by which the purge goes.
            store.noteUnopened(orders.flatMap(\.removed))
            // The comparison and lookups hid what the last run left, so that the purge did not
            // meet it.
            if isResumed { removal.undeleted = store.undeletedKeys.count }
            queue.unsaved = []
            awaitsDeletion.store(true, ordering: .releasing)
            hasFormerRecords.store(true, ordering: .releasing)
            settleRecords()
            // This run knows the files that are left.
            store.hide(nil)
        }
        let outcome = removal
        state.withLock { $0 = .done(outcome) }
        return nil
    }

    /// Removes what some purges select.
    ///
    /// - Parameters:
    ///   - selection: what is removed.
    ///   - former: what was removed before.
    ///   - tellsAll: true if an interrupted purge is continued.
    /// - Returns: what was removed in all.
    /// - Throws: errors of `ObjectStore.purge`.
    private func remove(
        _ selection: PurgeSelection, after former: Removal, tellsAll: Bool
    ) throws -> Removal {
        let pins = store.pins()
        let pinned = Set(pins.flatMap(\.keys))
        var lost: Set<ObjectKey> = []
        // Before its outcome, after which a listing is read.
        defer {
            use.forget()
            // What an interrupted purge had removed is known to nobody, nor whether it was told. One
            // that is stopped again leaves the search for that to the next run.
            let isWhole = tellsAll && !isStopped.load(ordering: .acquiring)
            let affected = isWhole ? pins : pins.filter { !lost.isDisjoint(with: $0.keys) }
            removals.tell(Set(affected.map(\.title)))
        }
        let removal = try store.purge(
            keys: selection.keys, titles: selection.titleNumbers, readsAll: selection.needsSearch,
            where: { entry in
                guard selection.fits(entry) else { return false }
                if pinned.contains(entry.key) { lost.insert(entry.key) }
                return true
            },
            goesOn: { removal in
                state.withLock { $0 = .running(former + removal) }
                return !isStopped.load(ordering: .acquiring)
            })
        return former + removal
    }

    /// The progress of the purge, or its outcome.
    package var answer: AdministrationAnswer {
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
            .init("undeleted", .number(Int64(removal.undeleted))),
        ])
    }
}

extension Removal {
    fileprivate static func + (left: Removal, right: Removal) -> Removal {
        var sum = left
        sum.objects += right.objects
        sum.bytes = left.bytes.addingSaturated(right.bytes)
        sum.undeleted += right.undeleted
        return sum
    }
}

// Purges in the background: started once, polled for progress, and continued by the next run if
// this one ends before; what the disk refuses to delete is left to the next run by its keys.
import DurableState
import HTTP
import Logging
import Model
import Numbers
import Posix
import Reactor
package import Store
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
    /// Purges that were given while one runs.
    private struct Queue {
        var orders: [PurgeOrder] = []
        /// How many of the first of them have had what they name by key or title removed.
        var lookedUp = 0
        /// Those that are carried out, or wait, without a record: the disk had no room for one.
        var unsaved: [PurgeOrder] = []
        /// What lookups do not find of the pass that runs.
        var hidden: PurgeSelection?
        /// The orders since then, of which lookups find nothing either.
        var hiddenOrders: [PurgeOrder] = []
        /// What these select.
        var alsoHidden: PurgeSelection?
        /// Selects nothing, by the pins of the last selection; nil while no purge runs.
        ///
        /// To add up what the pins name would take long for each order.
        var blank: PurgeSelection?

        /// Takes all orders.
        mutating func take() -> [PurgeOrder] {
            defer { (orders, lookedUp) = ([], 0) }
            return orders
        }
    }

    /// What became of purges that were given.
    private enum Acceptance {
        case refused(AdministrationAnswer)
        /// They follow the one that runs.
        case queued
        /// They have begun; the semaphore is signalled at their end.
        case begun(ThreadSemaphore)
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
    private let thread = WorkThread()

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
            try queue.withLock { queue throws(SystemError) in
                let selection = selection(of: orders, &queue)
                hide(selection, &queue)
                try begin(selection, continuing: orders)
            }
        } catch {
            log.error("cannot continue a purge", metadata: ["error": "\(error)"])
        }
    }

    /// Starts some purges in one pass, and blocks for a second at most; or lets them follow the one
    /// that is running.
    ///
    /// Those that follow another spare what was stored after the time of their orders. What they
    /// select is not found from now on, but for what is in use; of this, what they name by key or
    /// title is removed in a moment, and the rest when their turn comes.
    ///
    /// - Parameters:
    ///   - orders: what is removed.
    ///   - isGivenNow: false spares what was stored after the time of its order; the other objects are
    ///     not found from now on, whether or not they are deleted yet.
    ///   - ended: called on the thread of the purge with what it has removed, unless it follows
    ///     another one, fails, or is left to the next run.
    /// - Returns: the outcome, or the progress.
    package func start(
        _ orders: [PurgeOrder], isGivenNow: Bool = true,
        ended: (@Sendable (Removal) -> Void)? = nil
    ) -> AdministrationAnswer {
        let mayQueue = queue.withLock { $0.orders.count + orders.count <= Self.mostQueued }
        if isRunning, !mayQueue { return Self.refusal }
        // Before the order has a record: the next run continues a purge before recordings can pin
        // what they need of other titles. If this one ends in between, nothing was promised.
        _ = willPurge?(orders)
        do throws(SystemError) {
            let acceptance = try queue.withLock { queue throws(SystemError) -> Acceptance in
                try accept(orders, isGivenNow: isGivenNow, ended, &queue)
            }
            switch acceptance {
            case .refused(let refusal): return refusal
            // Its turn may come in hours, and others wait for this thread.
            case .queued: break
            case .begun(let isOver): _ = isOver.wait(atMost: Self.patience)
            }
            return answer
        } catch {
            return .failure(.serviceUnavailable, "no thread for the purge: \(error)")
        }
    }

    /// Saves orders, and begins to carry them out or puts them into the queue.
    private func accept(
        _ orders: [PurgeOrder], isGivenNow: Bool, _ ended: (@Sendable (Removal) -> Void)?,
        _ queue: inout Queue
    ) throws(SystemError) -> Acceptance {
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
                return .refused(
                    .failure(
                        .insufficientStorage,
                        "nothing was purged, since the order cannot be saved: \(error)"))
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
            hideAlso(orders, &queue)
            return .queued
        }
        awaitsDeletion.store(false, ordering: .releasing)
        var selection = selection(of: former, &queue)
        selection.add(orders, isGivenNow: isGivenNow)
        if !isGivenNow { hide(selection, &queue) }
        let isOver = try ThreadSemaphore()
        try begin(selection, continuing: former, isOver: isOver, ended)
        return .begun(isOver)
    }

    /// Has lookups find nothing that is selected; nil ends that.
    private func hide(_ selection: PurgeSelection?, _ queue: inout Queue) {
        queue.hidden = selection
        (queue.hiddenOrders, queue.alsoHidden) = ([], nil)
        if let selection {
            store.hide(selection.fits)
        } else {
            store.hide(nil)
            queue.blank = nil
        }
    }

    /// Has lookups find nothing either that queued orders select.
    ///
    /// By the present pins, as their own pass will.
    private func hideAlso(_ orders: [PurgeOrder], _ queue: inout Queue) {
        queue.hiddenOrders += orders
        var selection = blank(&queue)
        if queue.alsoHidden?.pins == selection.pins {
            queue.alsoHidden?.add(orders)
        } else {
            selection.add(queue.hiddenOrders)
            queue.alsoHidden = selection
        }
        let selections = [queue.hidden, queue.alsoHidden].compactMap(\.self)
        store.hide { entry in selections.contains { $0.fits(entry) } }
    }

    private var log: Logger { store.state.log }

    /// True while a purge runs, or is left to the next run.
    var isRunning: Bool {
        if case .running = state.withLock({ $0 }) { true } else { false }
    }

    private static let refusal = AdministrationAnswer.failure(
        .conflict,
        "too many purges wait for the one that runs; GET /api/purge tells how far it is")

    /// Returns the objects that orders of before select.
    private func selection(of orders: [PurgeOrder], _ queue: inout Queue) -> PurgeSelection {
        var selection = blank(&queue)
        selection.add(orders)
        return selection
    }

    /// Returns a selection of nothing by the present pins.
    private func blank(_ queue: inout Queue) -> PurgeSelection {
        let pins = store.pins()
        if let known = queue.blank, known.pins == pins { return known }
        let made = PurgeSelection(
            pins: pins, isPinnedNow: store.isPinnedNow, namingsNow: store.namingsNow)
        queue.blank = made
        return made
    }

    /// Starts the thread, which calls `run`.
    private func begin(
        _ selection: PurgeSelection, continuing orders: [PurgeOrder],
        isOver: ThreadSemaphore? = nil, _ ended: (@Sendable (Removal) -> Void)? = nil
    ) throws(SystemError) {
        state.withLock { $0 = .running(Removal()) }
        do throws(SystemError) {
            // The purge before has ended, otherwise none could start; this does not block.
            try thread.start("purge") {
                self.run(selection, continuing: orders, isOver: isOver, ended)
            }
        } catch {
            state.withLock { $0 = .failed("no thread for the purge: \(error)") }
            throw error
        }
    }

    /// Stops after the object that is being removed, and leaves the rest to the next run; blocks.
    package func stop() {
        isStopped.store(true, ordering: .releasing)
        thread.join()
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
        let isSaved = dropRecords(leaving: left)
        hasFormerRecords.store(!isSaved, ordering: .releasing)
        if isSaved { awaitsDeletion.store(!left.isEmpty, ordering: .releasing) }
    }

    /// Drops the orders that are carried out.
    ///
    /// - Parameters:
    ///   - left: the files that the disk refused to delete, which are recorded instead.
    ///   - waiting: the subjects of the orders that are not carried out.
    /// - Returns: false if the disk rejects it.
    private func dropRecords(
        leaving left: [ObjectKey], except waiting: Set<PurgeOrder.Subject> = []
    ) -> Bool {
        do throws(StateFault) {
            try kept.replaceAll(byObjects: left, except: waiting)
            return true
        } catch {
            log.error(
                """
                the end of a purge cannot be saved, which is tried again: until then a start \
                repeats it, and may find files again that are not deleted
                """, metadata: ["error": "\(error)", "files": "\(left.count)"])
            return false
        }
    }

    /// Carries out a purge, and those that are given until its end.
    ///
    /// - Parameters:
    ///   - first: what it selects.
    ///   - orders: those of the last run among its orders.
    ///   - isOver: is signalled at the end of the first pass; nil if there are no other orders.
    ///   - ended: is called then with what the pass has removed, if it was not cut short.
    private func run(
        _ first: PurgeSelection, continuing orders: [PurgeOrder], isOver: ThreadSemaphore?,
        _ ended: (@Sendable (Removal) -> Void)?
    ) {
        var removal = Removal()
        var former = orders
        var isFirst = true
        var next: PurgeSelection? = first
        while let selection = next {
            let tellsAll = former.contains { !$0.isDone }
            let outcome = Result {
                try remove(selection, after: removal, tellsAll: tellsAll)
            }
            // With the lock held once: whoever begins the next purge holds it, and joins this thread.
            next = queue.withLock { queue -> PurgeSelection? in
                switch outcome {
                case .success(let removed):
                    removal = removed.all
                    return end(
                        &queue, &removal, continuing: former, isResumed: isFirst && isOver == nil)
                case .failure(let error):
                    // The records are left to the next purge or run.
                    _ = queue.take()
                    state.withLock { $0 = .failed("the purge ended early: \(error)") }
                    return nil
                }
            }
            if isFirst {
                isOver?.signal()
                if case .success(let removed) = outcome, !isStopped.load(ordering: .acquiring) {
                    ended?(removed.own)
                }
            }
            (former, isFirst) = ([], false)
        }
    }

    /// Ends a pass: drops the records of what it has carried out, and takes the purges that were
    /// given meanwhile from the queue.
    ///
    /// - Parameters:
    ///   - queue: the purges that were given meanwhile.
    ///   - removal: what was removed in all.
    ///   - orders: those of the last run that the pass has carried out.
    ///   - isResumed: true if it has carried out no others.
    /// - Returns: what the next pass is to remove; nil without one.
    private func end(
        _ queue: inout Queue, _ removal: inout Removal, continuing orders: [PurgeOrder],
        isResumed: Bool
    ) -> PurgeSelection? {
        // It stays as running: the next run of the daemon finishes it.
        guard !isStopped.load(ordering: .acquiring) else { return nil }
        // These have no rows, by which the purge goes.
        store.noteUnopened(orders.flatMap(\.removed))
        // The comparison and lookups hid what the last run left, so that the purge did not meet it.
        if isResumed { removal.undeleted = store.undeletedKeys.count }
        let waiting = queue.take()
        let subjects = Set(waiting.map(\.subject))
        queue.unsaved.removeAll { !subjects.contains($0.subject) }
        guard waiting.isEmpty else {
            // Purges may come so often that no pass is the last one for long.
            _ = dropRecords(leaving: store.undeletedKeys, except: subjects)
            let next = selection(of: waiting, &queue)
            hide(next, &queue)
            return next
        }
        awaitsDeletion.store(true, ordering: .releasing)
        hasFormerRecords.store(true, ordering: .releasing)
        settleRecords()
        // This run knows the files that are left.
        hide(nil, &queue)
        let outcome = removal
        state.withLock { $0 = .done(outcome) }
        return nil
    }

    /// Returns what the purges select that were queued since the last call.
    private func takeUnlooked() -> PurgeSelection? {
        queue.withLock { queue -> PurgeSelection? in
            let orders = Array(queue.orders[queue.lookedUp...])
            queue.lookedUp = queue.orders.count
            return orders.isEmpty ? nil : selection(of: orders, &queue)
        }
    }

    /// Removes what some purges select, and what those name that are queued meanwhile: the
    /// comparison of index and folder, for which a pass waits, may take hours.
    ///
    /// - Parameters:
    ///   - selection: what is removed.
    ///   - former: what was removed before.
    ///   - tellsAll: true if an interrupted purge is continued.
    /// - Returns: what the selection has removed, and what was removed in all.
    /// - Throws: errors of `ObjectStore.purge`.
    private func remove(
        _ selection: PurgeSelection, after former: Removal, tellsAll: Bool
    ) throws -> (own: Removal, all: Removal) {
        var pins = store.pins()
        let pinned = Set(pins.flatMap(\.keys))
        var lost: Set<ObjectKey> = []
        var titles: Set<UInt64> = []
        var earlier = former
        func takes(_ entry: StoreEntry, of selection: PurgeSelection) -> Bool {
            guard selection.fits(entry) else { return false }
            // Nothing else tells of the losses of a title without a pin.
            titles.insert(entry.title)
            if pinned.contains(entry.key) || selection.isPinned(entry.key) {
                lost.insert(entry.key)
            }
            return true
        }
        // Before its outcome, after which a listing is read.
        defer {
            use.forget()
            // What an interrupted purge had removed is known to nobody, nor whether it was told. One
            // that is stopped again leaves the search for that to the next run.
            let isWhole = tellsAll && !isStopped.load(ordering: .acquiring)
            let affected = isWhole ? pins : pins.filter { !lost.isDisjoint(with: $0.keys) }
            removals.tell(titles.union(affected.map(\.title)))
        }
        let removal = try store.purge(
            keys: selection.keys, titles: selection.titleNumbers, readsAll: selection.needsSearch,
            where: { takes($0, of: selection) },
            goesOn: { removal in
                if let next = takeUnlooked() {
                    // Their own pass will not find what is removed here, and tell whose it was.
                    pins = next.pins
                    // What cannot be read now is left to their own pass.
                    _ = try? store.removeNamed(
                        keys: next.keys, titles: next.titleNumbers, adding: &earlier,
                        where: { takes($0, of: next) },
                        goesOn: { _ in !isStopped.load(ordering: .acquiring) })
                }
                let progress = earlier + removal
                state.withLock { $0 = .running(progress) }
                return !isStopped.load(ordering: .acquiring)
            })
        return (removal, earlier + removal)
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

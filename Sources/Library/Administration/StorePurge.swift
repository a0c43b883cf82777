// Purges in the background: started once, polled for progress, and continued by the next run if
// this one ends before; what the disk refuses to delete is left to the next run by its keys.
import DurableState
import HTTP
package import Logging
import Model
import Posix
import Reactor
import Store
import Synchronization

/// Runs one purge at a time.
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
    private let isStopped = Atomic<Bool>(false)
    /// True if orders are kept only for files that the disk refused to delete: the next run of the
    /// daemon would find these again.
    private let awaitsDeletion = Atomic<Bool>(false)
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
    package func resume(_ log: Logger) {
        let orders = kept.all()
        guard !orders.isEmpty else { return }
        let unfinished = orders.filter { !$0.isDone }
        if unfinished.isEmpty {
            log.notice("deleting files of purged objects that the disk refused to delete")
        } else {
            log.notice("continuing a purge that the last run did not finish")
            _ = willPurge?(unfinished)
        }
        _ = start(
            selection(of: orders).fits, continuing: orders, patience: .zero, hides: true,
            isResumed: true)
    }

    /// Starts some purges in one pass, unless one is running; blocks for a second at most.
    ///
    /// - Parameters:
    ///   - orders: what is removed.
    ///   - isGivenNow: false spares what was stored after the time of its order; the other objects are
    ///     not found from now on, whether or not they are deleted yet.
    /// - Returns: the outcome, or the progress.
    package func start(_ orders: [PurgeOrder], isGivenNow: Bool = true) -> AdministrationAnswer {
        if case .running = state.withLock({ $0 }) { return Self.refusal }
        _ = willPurge?(orders)
        forgetDeleted()
        // Includes purges that an earlier run could not finish; those that await the deletion of
        // files have removed all that they select.
        let former = awaitsDeletion.load(ordering: .acquiring) ? [] : kept.all()
        do throws(StateFault) {
            try kept.add(orders)
        } catch {
            // A purge frees space, so that it is carried out without a record.
            guard case .noRoom = error else {
                return .failure(
                    .insufficientStorage,
                    "nothing was purged, since the order cannot be saved: \(error)")
            }
        }
        awaitsDeletion.store(false, ordering: .releasing)
        var selection = selection(of: former)
        selection.add(orders, isGivenNow: isGivenNow)
        return start(
            selection.fits, continuing: former, patience: Self.patience, hides: !isGivenNow)
    }

    private static let refusal = AdministrationAnswer.failure(
        .conflict, "another purge runs; GET /api/purge tells how far it is")

    /// Returns the objects that orders of before select.
    private func selection(of orders: [PurgeOrder]) -> PurgeSelection {
        var selection = PurgeSelection(pins: store.pins())
        selection.add(orders)
        return selection
    }

    private func start(
        _ fits: @escaping @Sendable (StoreEntry) -> Bool, continuing orders: [PurgeOrder],
        patience: Interval, hides: Bool, isResumed: Bool = false
    ) -> AdministrationAnswer {
        let isFree = state.withLock { state in
            if case .running = state { return false }
            state = .running(Removal())
            return true
        }
        guard isFree else { return Self.refusal }
        if hides { store.hide(fits) }
        do throws(SystemError) {
            let isOver = try ThreadSemaphore()
            let made = try PosixThread(name: "purge") {
                self.run(fits, continuing: orders, isResumed: isResumed)
                isOver.signal()
            }
            let former = thread.withLock { thread in
                let former = thread
                thread = made
                return former
            }
            // It has ended, otherwise no purge could start; this does not block.
            former?.join()
            _ = isOver.wait(atMost: patience)
        } catch {
            state.withLock { $0 = .failed("no thread for the purge: \(error)") }
        }
        return answer
    }

    /// Stops after the object that is being removed, and leaves the rest to the next run; blocks.
    package func stop() {
        isStopped.store(true, ordering: .releasing)
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        running?.join()
        forgetDeleted()
    }

    /// Drops orders that were only kept for files that are deleted by now.
    private func forgetDeleted() {
        guard awaitsDeletion.load(ordering: .acquiring), !store.hasUndeleted else { return }
        kept.replaceAll(byObjects: [])
        awaitsDeletion.store(false, ordering: .releasing)
    }

    /// Drops the orders, which are carried out, except for the files that the disk refused to
    /// delete.
    ///
    /// Repeated as a whole by a later run, they would remove what was unpinned since then, and each
    /// further order would take room.
    private func keepUndeleted() {
        awaitsDeletion.store(true, ordering: .releasing)
        forgetDeleted()
        guard awaitsDeletion.load(ordering: .acquiring) else { return }
        kept.replaceAll(byObjects: store.undeletedKeys)
    }

    private func run(
        _ fits: (StoreEntry) -> Bool, continuing orders: [PurgeOrder], isResumed: Bool
    ) {
        let continues = orders.contains { !$0.isDone }
        let pins = store.pins()
        let pinned = Set(pins.flatMap(\.keys))
        var lost: Set<ObjectKey> = []
        // What an interrupted purge had removed is known to nobody, nor whether it was told. One
        // that is stopped again leaves the search for that to the next run.
        func tellLosses() {
            let tellsAll = continues && !isStopped.load(ordering: .acquiring)
            let affected = tellsAll ? pins : pins.filter { !lost.isDisjoint(with: $0.keys) }
            removals.tell(Set(affected.map(\.title)))
        }
        do {
            var removal = try store.purge(
                where: { entry in
                    guard fits(entry) else { return false }
                    if pinned.contains(entry.key) { lost.insert(entry.key) }
                    return true
                },
                goesOn: { removal in
                    state.withLock { $0 = .running(removal) }
                    return !isStopped.load(ordering: .acquiring)
                })
            // Before its outcome, after which a listing is read.
            use.forget()
            tellLosses()
            if !isStopped.load(ordering: .acquiring) {
                // These have no rows, by which the purge goes.
                store.noteUnopened(orders.flatMap(\.removed))
                // The comparison and lookups hid what the last run left, so that the purge did not
                // meet it.
                if isResumed { removal.undeleted = store.undeletedKeys.count }
                keepUndeleted()
                // This run knows the files that are left.
                store.hide(nil)
            }
            let outcome = removal
            state.withLock { $0 = .done(outcome) }
        } catch {
            use.forget()
            tellLosses()
            state.withLock { $0 = .failed("the purge ended early: \(error)") }
        }
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

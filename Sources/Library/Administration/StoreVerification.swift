// The background check of every stored byte: started once, polled for progress.
import HTTP
import Model
import Posix
import Store
import Synchronization

/// Runs one check at a time.
final class StoreVerification: Sendable {
    private enum State {
        case none
        /// Nil before the first object.
        case running(VerifyProgress?)
        case done(VerifyReport)
        case failed(String)
    }

    private let store: ObjectStore
    private let use: KnownDiskUse
    private let state = Mutex(State.none)
    private let isStopped = Atomic<Bool>(false)
    private let thread = WorkThread()

    init(store: ObjectStore, use: KnownDiskUse) {
        self.store = store
        self.use = use
    }

    /// Starts a check, unless one is already running.
    package func start() -> AdministrationAnswer {
        let isFree = state.withLock { state in
            if case .running = state { return false }
            state = .running(nil)
            return true
        }
        guard isFree else { return answer }
        do throws(SystemError) {
            // The check before has ended, otherwise none could start; this does not block.
            try thread.start("verify") { self.run() }
        } catch {
            state.withLock { $0 = .failed("no thread for the check: \(error)") }
        }
        return answer
    }

    /// Stops after the extent that is being compared; blocks.
    ///
    /// To be called before the store is closed: damage that is found later is not saved.
    func stop() {
        isStopped.store(true, ordering: .releasing)
        thread.join()
    }

    private func run() {
        let report = store.verify(
            { progress in state.withLock { $0 = .running(progress) } },
            goesOn: { !isStopped.load(ordering: .acquiring) })
        // Before its outcome: it may have removed objects since its request was answered.
        use.forget()
        state.withLock {
            $0 =
                report.isStopped
                ? .failed("the daemon is stopping and has ended the check; start it again later")
                : .done(report)
        }
    }

    /// The progress of the check, or its result.
    package var answer: AdministrationAnswer {
        switch state.withLock({ $0 }) {
        case .none: .value(.ok, .object([.init("state", .text("none"))]))
        case .running(let progress): .value(.accepted, Self.json(progress))
        case .done(let report): .value(.ok, Self.json(report))
        case .failed(let reason): .failure(.serviceUnavailable, reason)
        }
    }

    private static func json(_ progress: VerifyProgress?) -> JSONValue {
        .object([
            .init("state", .text("running")),
            .init("objects", .number(Int64(progress?.objects ?? 0))),
            .init("objects_to_check", .number(Int64(progress?.objectsToCheck ?? 0))),
            .init("bytes", .number(progress?.bytes ?? 0)),
        ])
    }

    private static func json(_ report: VerifyReport) -> JSONValue {
        let objects =
            report.intactObjects + report.repairedObjects + report.deletedObjects
            + report.unreadableObjects
        return .object([
            .init("state", .text("done")),
            .init("sound", .truth(report.isSound)),
            .init("objects", .number(Int64(objects))),
            .init("objects_to_check", .number(Int64(objects))),
            .init("bytes", .number(report.checkedBytes)),
            .init("intact", .number(Int64(report.intactObjects))),
            .init("repaired", .number(Int64(report.repairedObjects))),
            .init("deleted", .number(Int64(report.deletedObjects))),
            .init("unreadable", .number(Int64(report.unreadableObjects))),
            .init("lost_bytes", .number(report.lostBytes)),
        ])
    }
}

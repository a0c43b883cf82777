// The settings of the second level, and its state as all threads may see it.
package import Posix
package import SharedStore
import Synchronization

/// How the second level is used; fixed at start.
package struct SharedStoreSettings: Sendable {
    package var location: BucketLocation
    package var keys: AccessKeys
    /// How much earlier the second level is asked than the origin.
    ///
    /// Default 100 ms, 0...5 s: longer than a store nearby takes for a first byte, shorter than a
    /// player notices.
    package var headStart = Interval.milliseconds(100)
    /// The time between two looks for purges and pins of other nodes.
    ///
    /// Default 5 s, 1 s...1 h.
    package var pollInterval = Interval.seconds(5)
    /// The number of this node, the same after a restart: hexadecimal digits.
    package var node = ""
    /// Machine and port, as other nodes list it.
    package var nodeName = ""
    /// The file that keeps the outstanding writes for the next run; nil for none.
    package var backlogFile: String?
    /// True if keys may be kept there.
    package var sharesKeys = false
    /// Finds the credentials again, which may have been replaced; blocks on the disk.
    package var findKeys: @Sendable () -> AccessKeys?

    package init(
        _ location: BucketLocation, keys: AccessKeys,
        findKeys: @escaping @Sendable () -> AccessKeys?
    ) {
        self.location = location
        self.keys = keys
        self.findKeys = findKeys
    }
}

/// The state of the second level, which any thread may read.
package final class SharedStoreReport: Sendable {
    package let location: BucketLocation
    private let isUsed = Atomic<Bool>(true)
    private let queued = Atomic<Int>(0)
    private let reason = Mutex<String?>(nil)
    private let troubles = Mutex(StoreTroubles())

    package init(_ location: BucketLocation) { self.location = location }

    /// True while the second level is used; false while it is left out after failures.
    package var isUp: Bool { isUsed.load(ordering: .relaxed) }

    /// Objects that wait to be written.
    package var waiting: Int { queued.load(ordering: .relaxed) }

    /// The reason why it was last left out; nil if it never was.
    package var lastFailure: String? { reason.withLock { $0 } }

    package func note(isUp: Bool, reason: String? = nil) {
        isUsed.store(isUp, ordering: .relaxed)
        if let reason { self.reason.withLock { $0 = reason } }
    }

    /// What fails although the store is used.
    package var failing: [StoreTroubles.Failing] { troubles.withLock { $0.failing } }

    /// Notes a failure of a task; true if it counts as failing from this one on.
    package func failed(_ task: StoreTroubles.Task, _ reason: String) -> Bool {
        troubles.withLock { $0.failed(task, reason) }
    }

    /// Notes the success of a task; true if it counted as failing.
    package func worked(_ task: StoreTroubles.Task) -> Bool {
        troubles.withLock { $0.worked(task) }
    }

    package func note(waiting: Int) { queued.store(waiting, ordering: .relaxed) }
}

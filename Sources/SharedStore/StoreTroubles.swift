/// What fails at a store that answers players' reads all the same, for one warning when it begins
/// and one notice when it ends.
package struct StoreTroubles: Sendable {
    /// What a node does at the store besides reading for players.
    package enum Task: String, CaseIterable, Sendable {
        /// Reads the purges and pins of other nodes.
        case changes
        /// Shows that this node lives, and reads the orders of all nodes.
        case orders
        /// Writes complete objects.
        case writes

        /// So many failures in a row count: one refused write is repeated soon, while a listing may
        /// be repeated after an hour only.
        var mostUnnoticed: Int { self == .writes ? 1 : 0 }
    }

    /// A task that fails, and why.
    package struct Failing: Equatable, Sendable {
        package let task: Task
        package let reason: String
    }

    private var rows: [Task: (count: Int, reason: String)] = [:]

    package init() {}

    /// Notes a failure.
    ///
    /// - Returns: true if the task counts as failing from this one on.
    package mutating func failed(_ task: Task, _ reason: String) -> Bool {
        let former = rows[task]?.count ?? 0
        // More are not told apart.
        rows[task] = (count: min(former, task.mostUnnoticed + 1) + 1, reason: reason)
        return former == task.mostUnnoticed
    }

    /// Notes a success.
    ///
    /// - Returns: true if the task counted as failing.
    package mutating func worked(_ task: Task) -> Bool {
        guard let former = rows.removeValue(forKey: task) else { return false }
        return former.count > task.mostUnnoticed
    }

    /// The tasks that count as failing.
    package var failing: [Failing] {
        Task.allCases.compactMap { task in
            guard let row = rows[task], row.count > task.mostUnnoticed else { return nil }
            return Failing(task: task, reason: row.reason)
        }
    }
}

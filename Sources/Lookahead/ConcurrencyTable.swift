// The controller that uses a published table: transfers by goodput, with a few rules about the task
// and the machine.

/// Looks up the number of transfers in the table; one number for all downloads.
///
/// | goodput, MiB/s | transfers |
/// |---|---|
/// | none measured yet | 2 on a cellular network, 4 on any other |
/// | below 0.5 | 2 |
/// | 0.5 to 1 | 4 |
/// | above 1, to 2 | 5 |
/// | above 2, to 3 | 6 |
/// | above 3, to 4 | 7 |
/// | above 4, to 5 | 8 |
/// | above 5, to 7 | 10 |
/// | above 7, to 10 | 12 |
/// | above 10, to 12 | 16 |
/// | above 12, to 16 | 18 |
/// | above 16 | 20 |
///
/// Then, in this order:
///
/// - 2 more while fewer than 6 parts are done and goodput is above 0.3 MiB/s; otherwise 2 more
///   for large parts while goodput is above 1 MiB/s;
/// - 2 fewer if more than 4 would run and this process uses more than one processor; otherwise if
///   more than 4 would run and 100 MiB of memory or less are available; otherwise if the battery is
///   at 2 % or below;
/// - never fewer than 2.
package struct ConcurrencyTable: Sendable, Equatable {
    /// The input of the table.
    package struct Question: Sendable, Equatable {
        /// In MiB per second, over all transfers; nil before the first measurement.
        package var goodput: Double?
        package var isCellular = false
        /// The number of finished parts of the task.
        package var partsDone = 0
        /// True if the mean part is large, as for films.
        package var hasLargeParts = false
        /// The number of processors that this process keeps busy; nil if unknown.
        package var cpuUse: Double?
        /// The bytes that the system can still provide; nil if unknown.
        package var availableMemory: Int64?
        /// In percent; nil without a battery.
        package var charge: Int?

        package init() {}
    }

    /// The inclusive upper bounds of the rows from 0.5 MiB/s on, with their transfers.
    private static let rows: [(to: Double, transfers: Int)] = [
        (1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (7, 10), (10, 12), (12, 16), (16, 18),
    ]
    private static let mebibyte = 1_048_576.0
    /// The minimum mean length of large parts, in bytes.
    private static let largePart = Int64(1) << 20

    /// Returns the number of transfers for an input.
    package static func transfers(_ question: Question) -> Int {
        let goodput = question.goodput
        var count = row(goodput, isCellular: question.isCellular)
        if let goodput {
            if question.partsDone < 6, goodput > 0.3 {
                count += 2
            } else if question.hasLargeParts, goodput > 1 {
                count += 2
            }
        }
        if count > 4, let use = question.cpuUse, use > 1 {
            count -= 2
        } else if count > 4, let memory = question.availableMemory, memory <= 100 << 20 {
            count -= 2
        } else if let charge = question.charge, charge <= 2 {
            count -= 2
        }
        return max(2, count)
    }

    private static func row(_ goodput: Double?, isCellular: Bool) -> Int {
        guard let goodput else { return isCellular ? 2 : 4 }
        if goodput < 0.5 { return 2 }
        return rows.first { goodput <= $0.to }?.transfers ?? 20
    }

    private var goodput = Goodput(halfLife: 2)
    private var partsDone = 0
    private var bytesDone: Int64 = 0
    private var conditions = MachineConditions()

    package init() {}

    /// The current maximum number of transfers.
    package var limit: Int {
        var question = Question()
        question.goodput = goodput.bytesPerSecond.map { $0 / Self.mebibyte }
        question.isCellular = conditions.isMetered
        question.partsDone = partsDone
        question.hasLargeParts = partsDone > 0 && bytesDone / Int64(partsDone) >= Self.largePart
        question.cpuUse = conditions.cpuUse
        question.availableMemory = conditions.availableMemory
        question.charge = conditions.charge
        return Self.transfers(question)
    }

    package mutating func note(_ sample: LinkSample) {
        partsDone = min(partsDone + max(0, sample.finished), 1 << 30)
        bytesDone = min(bytesDone, 1 << 60) + max(0, min(sample.bytes, 1 << 60))
        // An underused link gives no measurement.
        if sample.isFull { goodput.add(bytes: sample.bytes, seconds: sample.seconds) }
    }

    /// Restarts counting the parts for a new task; the measured goodput is kept.
    package mutating func beginTask() {
        partsDone = 0
        bytesDone = 0
    }

    package mutating func follow(_ conditions: MachineConditions) {
        self.conditions = conditions
    }
}

// Reasons for fewer concurrent transfers besides the link: load, battery, metered networks.
import Numbers

/// The known state of the machine and its link.
package struct MachineConditions: Sendable, Equatable {
    /// The percentage of the last ten seconds in which some task waited for a processor; nil if
    /// unknown.
    package var cpuPressure: Double?
    /// The same for memory; nil if unknown.
    package var memoryPressure: Double?
    /// True if the machine runs on its battery.
    package var isOnBattery = false
    /// In percent; nil without a battery.
    package var charge: Int?
    /// True if the link's bytes are metered, as on a mobile network.
    package var isMetered = false
    /// The number of processors that this process recently kept busy; nil if unknown.
    package var cpuUse: Double?
    /// The bytes that the system can still provide without swapping; nil if unknown.
    package var availableMemory: Int64?

    package init() {}

    /// Returns the maximum number of transfers ahead of players in these conditions: 1...32.
    ///
    /// | condition | from | transfers |
    /// |---|---|---|
    /// | processor pressure | 60 % | 12 |
    /// | | 90 % | 6 |
    /// | memory pressure | 10 % | 8 |
    /// | | 40 % | 2 |
    /// | battery | in use | 16 |
    /// | | under 20 % | 4 |
    /// | metered | | 4 |
    /// | goodput under 200 kB/s | | 6 |
    ///
    /// - Parameter goodput: in bytes per second; nil if not measured.
    /// - Returns: the number of transfers.
    package func ceiling(goodput: Double? = nil) -> Int {
        lowest(goodput: goodput)?.transfers ?? ConcurrencyPlan.most
    }

    /// Returns the reason for the ceiling in words; nil if nothing lowers it.
    package func reason(goodput: Double? = nil) -> String? { lowest(goodput: goodput)?.reason }

    /// Returns the condition that lowers the ceiling most.
    private func lowest(goodput: Double?) -> (transfers: Int, reason: String)? {
        var found: [(transfers: Int, reason: String)] = []
        if let cpuPressure, cpuPressure >= 60 {
            found.append((cpuPressure >= 90 ? 6 : 12, "other work waits for processors"))
        }
        if let memoryPressure, memoryPressure >= 10 {
            found.append((memoryPressure >= 40 ? 2 : 8, "memory is short"))
        }
        if isOnBattery {
            let isLow = (charge ?? 100) < 20
            found.append((isLow ? 4 : 16, isLow ? "the battery is low" : "on battery"))
        }
        if isMetered { found.append((4, "a mobile network")) }
        if let goodput, goodput < 200_000 { found.append((6, "a slow line")) }
        return found.min { $0.transfers < $1.transfers }
    }

    /// Returns the bytes of `MemAvailable` in /proc/meminfo (proc(5)); nil if the text is
    /// malformed.
    package static func availableMemory(_ text: String) -> Int64? {
        for line in text.split(separator: "\n") where line.hasPrefix("MemAvailable:") {
            let words = line.split(separator: " ")
            guard words.count == 3, words[2] == "kB",
                let kilobytes = ExternalNumber.integer(words[1], in: 0...Int64(1) << 50)
            else { return nil }
            return kilobytes * 1_024
        }
        return nil
    }

    /// Returns the percentage of the last ten seconds from a file of /proc/pressure (proc(5), PSI).
    ///
    /// - Parameter text: `some avg10=1.25 avg60=... total=...` in its first line.
    /// - Returns: the percentage; nil if the text is malformed.
    package static func pressure(_ text: String) -> Double? {
        for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
            guard word.hasPrefix("avg10=") else { continue }
            return ExternalNumber.decimal(word.dropFirst(6), in: 0...100)
        }
        return nil
    }
}

/// The limits measured on networks, kept across runs.
///
/// Each network has its name, the last concurrency limit and the goodput in bytes per second; the
/// network used last comes first.
package struct NetworkMemory: Sendable, Equatable {
    package struct Network: Sendable, Equatable {
        package let name: String
        package var transfers: Int
        package var goodput: Int64

        package init(name: String, transfers: Int, goodput: Int64) {
            self.name = name
            self.transfers = transfers
            self.goodput = goodput
        }
    }

    /// The maximum number of networks; the oldest are dropped.
    private static let most = 64

    package private(set) var networks: [Network] = []

    /// Loads the networks of an earlier run, newest first; ignores invalid ones.
    package init(_ networks: [Network] = []) {
        let valid = networks.filter {
            (1...ConcurrencyPlan.most).contains($0.transfers) && $0.goodput >= 0
        }
        self.networks = Array(valid.prefix(Self.most))
    }

    /// The last values measured on a network; nil if never measured.
    package subscript(name: String) -> Network? {
        networks.first { $0.name == name }
    }

    /// Records the current values of a network; `name` must contain no blanks.
    package mutating func note(_ name: String, transfers: Int, goodput: Int64) {
        networks.removeAll { $0.name == name }
        networks.insert(
            Network(name: name, transfers: transfers, goodput: max(0, goodput)), at: 0)
        networks = Array(networks.prefix(Self.most))
    }
}

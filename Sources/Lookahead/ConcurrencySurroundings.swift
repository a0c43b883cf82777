// What speaks against many transfers at once besides the link: load, battery, a bill.
import Numbers

/// The state of the machine and its link, as far as it is known.
package struct Surroundings: Sendable, Equatable {
    /// Percent of the last ten seconds in which some task waited for a processor; nil: not known.
    package var cpuPressure: Double?
    /// The same for memory.
    package var memoryPressure: Double?
    /// True when the machine runs on its battery.
    package var isOnBattery = false
    /// Percent; nil without a battery.
    package var charge: Int?
    /// True when bytes of the link are counted: a mobile network.
    package var isMetered = false
    /// Processors that this process kept busy of late; nil: not known.
    package var cpuUse: Double?
    /// Bytes that the system can still give without swapping; nil: not known.
    package var availableMemory: Int64?

    package init() {}

    /// The most transfers that may run ahead of players in these surroundings: 1...32.
    ///
    /// | what | from | transfers |
    /// |---|---|---|
    /// | processors wanted | 60 % | 12 |
    /// | | 90 % | 6 |
    /// | memory wanted | 10 % | 8 |
    /// | | 40 % | 2 |
    /// | battery | in use | 16 |
    /// | | under 20 % | 4 |
    /// | metered | | 4 |
    /// | goodput under 200 kB/s | | 6 |
    ///
    /// - Parameter goodput: bytes a second, where they were measured.
    /// - Returns: The number.
    package func ceiling(goodput: Double? = nil) -> Int {
        lowest(goodput: goodput)?.transfers ?? ConcurrencyPlan.most
    }

    /// Why the ceiling is what it is, for people; nil where nothing lowers it.
    package func reason(goodput: Double? = nil) -> String? { lowest(goodput: goodput)?.reason }

    /// What lowers the ceiling most.
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

    /// Bytes of `MemAvailable` in /proc/meminfo (proc(5)); nil for another form.
    package static func availableMemory(_ text: String) -> Int64? {
        for line in text.split(separator: "\n") where line.hasPrefix("MemAvailable:") {
            let words = line.split(separator: " ")
            guard words.count == 3, words[2] == "kB",
                let kilobytes = OutsideNumber.integer(words[1], in: 0...Int64(1) << 50)
            else { return nil }
            return kilobytes * 1_024
        }
        return nil
    }

    /// The percentage of the last ten seconds in a file of /proc/pressure (proc(5), PSI).
    ///
    /// - Parameter text: `some avg10=1.25 avg60=... total=...` in its first line.
    /// - Returns: percent; nil for another form.
    package static func pressure(_ text: String) -> Double? {
        for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
            guard word.hasPrefix("avg10=") else { continue }
            return OutsideNumber.decimal(word.dropFirst(6), in: 0...100)
        }
        return nil
    }
}

/// What networks allowed, kept from run to run.
///
/// One line a network: its name, the transfers it allowed, its goodput in bytes a second; the one
/// used last comes first.
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

    /// Networks beyond this number are forgotten, the oldest first.
    private static let most = 64

    package private(set) var networks: [Network] = []

    /// Takes over what an earlier run noted, the newest first; what makes no sense is left out.
    package init(_ networks: [Network] = []) {
        let valid = networks.filter {
            (1...ConcurrencyPlan.most).contains($0.transfers) && $0.goodput >= 0
        }
        self.networks = Array(valid.prefix(Self.most))
    }

    /// What a network allowed; nil for a new one.
    package subscript(name: String) -> Network? {
        networks.first { $0.name == name }
    }

    /// Notes what a network allows now; `name` holds no blanks.
    package mutating func note(_ name: String, transfers: Int, goodput: Int64) {
        networks.removeAll { $0.name == name }
        networks.insert(
            Network(name: name, transfers: transfers, goodput: max(0, goodput)), at: 0)
        networks = Array(networks.prefix(Self.most))
    }
}

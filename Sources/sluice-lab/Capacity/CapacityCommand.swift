import ArgumentParser
import CommandSupport
import Numbers
import RetentionLab

/// `sluice-lab capacity`: what flows between the levels of a tier, and when to add to it.
struct CapacityCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "capacity",
        abstract: "Model a tier of daemons: requests, bytes and prices of each level.",
        discussion: """
            Films are simulated minute by minute: players choose by Zipf's law, HAProxy's hash finds the \
            node, each node evicts by titles as the daemon does. A live event is calculated. Printed is, for each \
            number of nodes, what players, nodes and the second level ask for, and what to add.
            """)

    @Option(help: "Numbers of nodes.")
    var nodes = "2,8,64"

    @Option(help: "Number of titles.")
    var titles = "1000"

    @Option(help: "Exponent of Zipf's law by which titles are chosen.")
    var zipf = "0.8"

    @Option(help: "Minutes of a title.")
    var minutes = "90"

    @Option(help: "Mean share of a title that is watched, in per cent.")
    var watched = "50"

    @Option(help: "Megabits a second of what is watched.")
    var rate = "5"

    @Option(help: "Seconds of a segment.")
    var segment = "6"

    @Option(help: "Players of films at any time; more than some thousands change shares little.")
    var players = "5000"

    @Option(help: "Seconds in which a player watches a minute; less for a load played faster.")
    var step = "60"

    @Option(help: "Bytes that each node keeps, or with K, M, G, T.")
    var disk = "500G"

    @Option(help: "Gigabits a second that each node sends at most.")
    var line = "20"

    @Option(
        help: ArgumentHelp(
            "Bytes of the store or parent behind the nodes; all, or none.", valueName: "size"))
    var second = "all"

    @Option(
        help: ArgumentHelp(
            "Hours between replacements of a node by one with an empty disk; default never.",
            valueName: "hours"))
    var replaceEvery: String?

    @Option(help: "Hours that are counted, after as many in which disks fill.")
    var hours = "12"

    @Option(help: "Players of the live event.")
    var live = "1000000"

    @Option(
        help: ArgumentHelp("Seconds of a part, for low latency; default none.", valueName: "part"))
    var livePart: String?

    @Option(help: "Price of a gigabyte from the origin.")
    var originPrice = "0.05"

    @Option(help: "Price of a gigabyte from the second level.")
    var secondPrice = "0"

    @Option(help: "Price of a thousand requests to the second level.")
    var requestPrice = "0.0004"

    @Option(help: "The seed.")
    var seed = "1"

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let counts = try nodes.split(separator: ",").map {
            try number(String($0), "--nodes", in: 1...1_000)
        }
        guard (1...16).contains(counts.count) else {
            throw ValidationError("--nodes is 1 to 16 numbers, separated by commas")
        }
        let seed = try number(seed, "--seed", in: 0...Int.max)
        let report = CapacityReport(
            try scenario(), try event(), try prices(), nodes: counts, seed: UInt64(seed))
        print(json ? report.json : report.text)
    }

    private func scenario() throws -> CapacityScenario {
        var scenario = CapacityScenario()
        scenario.titles = try number(titles, "--titles", in: 1...100_000)
        scenario.exponent = try fraction(zipf, "--zipf", in: 0...3)
        scenario.minutes = try number(minutes, "--minutes", in: 1...1_000)
        scenario.watched = try fraction(watched, "--watched", in: 1...100) / 100
        scenario.rate = try fraction(rate, "--rate", in: 0.01...1_000) * 1e6
        scenario.segment = try fraction(segment, "--segment", in: 0.2...60)
        scenario.players = try number(players, "--players", in: 1...1_000_000)
        scenario.step = try fraction(step, "--step", in: 0.001...60)
        scenario.disk = try size(disk, "--disk")
        scenario.line = try fraction(line, "--line", in: 0.001...10_000) * 1e9
        switch second {
        case "all": scenario.second = .unlimited
        case "none": scenario.second = nil
        default: scenario.second = .init(bytes: try size(second, "--second"))
        }
        scenario.replacement = try replaceEvery.map {
            try fraction($0, "--replace-every", in: 0.1...10_000)
        }
        scenario.hours = try number(hours, "--hours", in: 1...1_000)
        scenario.warmUp = scenario.hours
        // Each node has a table of all pieces: 8 bytes each.
        guard scenario.titles * scenario.minutes <= 1_000_000 else {
            throw ValidationError("--titles times --minutes is at most 1,000,000")
        }
        guard scenario.players * scenario.hours <= 10_000_000 else {
            throw ValidationError("--players times --hours is at most 10,000,000")
        }
        return scenario
    }

    private func event() throws -> LiveEvent {
        var event = LiveEvent()
        event.players = try number(live, "--live", in: 0...1_000_000_000)
        event.rate = try fraction(rate, "--rate", in: 0.01...1_000) * 1e6
        event.part = try livePart.map { try fraction($0, "--live-part", in: 0.1...10) }
        return event
    }

    private func prices() throws -> CapacityPrices {
        var prices = CapacityPrices()
        prices.originGigabyte = try fraction(originPrice, "--origin-price", in: 0...1_000)
        prices.secondGigabyte = try fraction(secondPrice, "--second-price", in: 0...1_000)
        prices.secondThousand = try fraction(requestPrice, "--request-price", in: 0...1_000)
        return prices
    }

    private func number(
        _ text: String, _ option: String, in range: ClosedRange<Int>
    ) throws -> Int {
        guard let number = ExternalNumber.integer(text, in: range) else {
            throw ValidationError("\(option) is \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private func fraction(
        _ text: String, _ option: String, in range: ClosedRange<Double>
    ) throws -> Double {
        guard let number = ExternalNumber.decimal(text, in: range) else {
            throw ValidationError("\(option) is \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private func size(_ text: String, _ option: String) throws -> Int64 {
        guard let bytes = SimulationSize.parse(text) else {
            throw ValidationError("\(option) is a size such as 500G")
        }
        return bytes
    }
}

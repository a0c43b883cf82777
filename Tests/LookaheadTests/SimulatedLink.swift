// A simulated link: the rates of a number of concurrent transfers.
import Lookahead
import Testing

/// Shared rate, rate of one connection, time to the first byte, and faults.
struct SimulatedLink {
    /// Bytes per second of all connections together.
    var shared: Double
    /// Bytes per second of one connection.
    var single: Double
    /// Seconds from a request to its first byte.
    var latency: Double
    /// Bytes of a segment.
    var segment = 500_000.0
    /// Goodput varies by this share in either direction.
    var noise = 0.03
    /// More transfers than this are rejected.
    var refusedAbove = Int.max
    /// Each transfer above this costs a share of the whole goodput: an overflowing queue.
    var tolerated = Int.max
    private var random: UInt64 = 0x9E37_79B9_7F4A_7C15

    init(shared: Double, single: Double, latency: Double) {
        self.shared = shared
        self.single = single
        self.latency = latency
    }

    /// Bytes per second with this many transfers that follow one another without a pause.
    func goodput(_ transfers: Int) -> Double {
        let one = segment / (latency + segment / single)
        let all = min(shared, Double(min(transfers, refusedAbove)) * one)
        guard transfers > tolerated else { return all }
        return all / (1 + 0.1 * Double(transfers - tolerated))
    }

    /// The highest goodput of any number of transfers up to 32.
    var best: Double { (1...32).map(goodput).max() ?? 0 }

    mutating func sample(_ transfers: Int, seconds: Double = 0.3) -> LinkSample {
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let unit = Double(random >> 11) / Double(1 << 53)
        let rate = goodput(transfers) * (1 + noise * (2 * unit - 1))
        let queue = max(0, Double(transfers) * single / shared - 1) * 0.02
        var sample = LinkSample(
            seconds: seconds, bytes: Int64(rate * seconds), roundTrip: latency + queue)
        sample.finished = Int(rate * seconds / segment)
        if transfers > refusedAbove { sample.errors = transfers - refusedAbove }
        return sample
    }

    /// Runs a controller over a number of samples; returns the mean goodput and the highest number
    /// of transfers.
    mutating func run(_ controller: inout ConcurrencyController, samples: Int) -> (
        goodput: Double, most: Int
    ) {
        var bytes = 0.0
        var seconds = 0.0
        var most = 0
        for _ in 0..<samples {
            let limit = controller.limit
            let sample = sample(limit)
            controller.note(sample)
            bytes += Double(sample.bytes)
            seconds += sample.seconds
            most = max(most, limit)
        }
        return (bytes / seconds, most)
    }
}

extension SimulatedLink: CustomTestStringConvertible {
    var testDescription: String {
        "\(Int(shared / 1_000)) kB/s, \(Int(single / 1_000)) a connection, \(Int(latency * 1_000)) ms"
    }

    /// 3G, slow 4G, Wi-Fi with a limit per connection, fibre, and a distant host.
    static let all = [
        SimulatedLink(shared: 200_000, single: 150_000, latency: 0.3),
        SimulatedLink(shared: 875_000, single: 560_000, latency: 0.1),
        SimulatedLink(shared: 15_500_000, single: 6_000_000, latency: 0.06),
        SimulatedLink(shared: 100_000_000, single: 40_000_000, latency: 0.008),
        SimulatedLink(shared: 12_000_000, single: 500_000, latency: 0.2),
    ]
}

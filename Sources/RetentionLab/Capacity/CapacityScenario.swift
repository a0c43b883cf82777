// What a tier of caches is to serve, and with what: the input of the capacity model.
import Numbers

/// Films for many players, over nodes that each keep what the balancer's hash sends them.
package struct CapacityScenario: Sendable, Equatable {
    package var titles = 1_000
    /// The exponent of Zipf's law by which players choose titles.
    package var exponent = 0.8
    /// Minutes of a title.
    package var minutes = 90
    /// The mean share of a title that is watched, 0 to 1.
    package var watched = 0.5
    /// Bits a second.
    package var rate = 5_000_000.0
    /// Seconds.
    package var segment = 6.0
    /// Players at any time.
    package var players = 5_000
    /// Seconds in which a player watches a piece; less than a minute for a load that is played faster
    /// than people watch, which eviction by titles tells from films by its times.
    package var step = 60.0

    package var nodes = 8
    /// Bytes that a node keeps.
    package var disk: Int64 = 500_000_000_000
    /// Bits a second that a node sends at most.
    package var line = 20_000_000_000.0
    /// The level behind the nodes; nil for none.
    package var second: SecondLevel? = .unlimited
    /// Hours between replacements of a node, whose successor has an empty disk; nil for none.
    package var replacement: Double?
    /// Minutes for which the place of a replaced node is empty.
    package var absence = 10

    /// Hours before counting begins, in which disks fill, and hours that are counted.
    package var warmUp = 12
    package var hours = 12

    /// A store or a parent that all nodes share.
    package struct SecondLevel: Sendable, Equatable {
        /// Bytes that it keeps.
        package var bytes: Int64

        package static let unlimited = Self(bytes: .max)

        package init(bytes: Int64) {
            self.bytes = bytes
        }
    }

    package init() {}

    /// The bytes of one minute of a title, the piece in which the model moves.
    package var pieceBytes: Int64 { max(1, Int64(saturating: rate / 8 * 60)) }
    /// The bytes that a piece takes on a disk: each segment has a header of a page.
    package var storedBytes: Int64 {
        pieceBytes + Int64(saturating: (60 / max(segment, 0.1)).rounded(.up)) * 4_096
    }
    /// The bytes of a disk that objects take: a larger one keeps room for new objects.
    package var usableDisk: Int64 {
        let headroom = disk >= 64 << 20 ? min(64 << 20, disk / 16) : 0
        return max(0, disk - headroom)
    }
    /// The bytes of all titles.
    package var catalogue: Double { Double(pieceBytes) * Double(titles) * Double(minutes) }
}

/// What flows between players, nodes, the second level and origins.
package struct CapacityFlow: Sendable, Equatable {
    /// Pieces that players asked for, and those that nodes and the second level did not have.
    package var asked = 0
    package var missedByNodes = 0
    package var missedBySecond = 0
    /// The pieces that the busiest node sent in its busiest minute.
    package var peak = 0
    /// The minutes that were counted.
    package var minutes = 0
    let pieceBytes: Int64
    let segmentsInPiece: Double

    /// The share that nodes answered from their disks; 1 if nothing was asked.
    package var nodeHitRatio: Double { ratio(missedByNodes, of: asked) }
    /// The share of the nodes' misses that the second level answered; 0 without one.
    package var secondHitRatio: Double { ratio(missedBySecond, of: missedByNodes) }

    private func ratio(_ missed: Int, of asked: Int) -> Double {
        asked == 0 ? 1 : 1 - Double(missed) / Double(asked)
    }

    /// Requests for segments a second.
    package var nodeMissRequests: Double { requests(missedByNodes) }
    package var originRequests: Double { requests(missedBySecond) }
    /// Bits a second.
    package var playerRate: Double { bits(asked) }
    package var nodeMissRate: Double { bits(missedByNodes) }
    package var originRate: Double { bits(missedBySecond) }
    /// Bits a second of the busiest node in its busiest minute.
    package var peakRate: Double { Double(peak) * Double(pieceBytes) * 8 / 60 }

    private var seconds: Double { Double(max(minutes, 1)) * 60 }
    private func requests(_ pieces: Int) -> Double { Double(pieces) * segmentsInPiece / seconds }
    private func bits(_ pieces: Int) -> Double {
        Double(pieces) * Double(pieceBytes) * 8 / seconds
    }
}

/// One live event on the same nodes, by calculation: everybody wants the same segment now.
package struct LiveEvent: Sendable, Equatable {
    package var players = 1_000_000
    /// Variants that are watched.
    package var variants = 4
    /// Bits a second, the mean of what is watched.
    package var rate = 5_000_000.0
    /// Target duration in seconds.
    package var target = 4.0
    /// Part target in seconds, with which lists are held until a part is there; nil without.
    package var part: Double?
    /// HAProxy's hash-balance-factor, in times of a node's fair share.
    package var balanceFactor = 3.0

    package init() {}

    /// What flows at a number of nodes.
    package struct Flow: Sendable, Equatable {
        /// Nodes on which one segment or list is at the same time.
        package let copies: Int
        /// Requests of players a second, for lists and media.
        package let playerRequests: Double
        /// Requests of nodes a second that leave the tier.
        package let nodeRequests: Double
        /// Requests at the origin a second with a level of parents before it.
        package let parentRequests: Double
        /// Bits a second.
        package let playerRate: Double
        package let nodeRate: Double
        package let parentRate: Double
    }

    /// Returns what flows: a node fetches each list version and each piece of media once.
    ///
    /// All of a variant's players want the same one or two resources at a time, so that the bounded
    /// load of the balancer decides on how many nodes these are: as many as are needed to keep each
    /// below its factor of the fair share.
    package func flow(nodes: Int) -> Flow {
        let nodes = max(nodes, 1)
        let share = Double(nodes) / max(balanceFactor, 1) / Double(max(variants, 1))
        let copies = min(nodes, max(1, Int(saturating: share.rounded(.up))))
        let step = max(part ?? target, 0.05)
        // A list and a piece of media for each step; lists without parts at half the target too.
        let lists = part == nil ? 2 / max(target, 0.05) : 1 / step
        let media = 1 / step
        let perVariant = (lists + media) * Double(max(variants, 1))
        let bits = rate * Double(max(variants, 1))
        return Flow(
            copies: copies, playerRequests: Double(players) * (1 / step + media),
            nodeRequests: perVariant * Double(copies), parentRequests: perVariant,
            playerRate: Double(players) * rate, nodeRate: bits * Double(copies), parentRate: bits)
    }
}

/// Prices in any currency, by the month of 730 hours.
package struct CapacityPrices: Sendable, Equatable {
    /// For a gigabyte (10^9 bytes) from the origin, and from the second level.
    package var originGigabyte = 0.05
    package var secondGigabyte = 0.0
    /// For a thousand requests to the origin, and to the second level.
    package var originThousand = 0.0
    package var secondThousand = 0.0004

    package init() {}

    /// The price of one month.
    package func month(_ flow: CapacityFlow, hasSecond: Bool) -> Double {
        let seconds = 730.0 * 3_600
        let origin =
            flow.originRate / 8e9 * originGigabyte + flow.originRequests / 1_000 * originThousand
        guard hasSecond else { return origin * seconds }
        // What the second level misses is written to it behind the player, by one request.
        let second =
            flow.nodeMissRate / 8e9 * secondGigabyte
            + (flow.nodeMissRequests + flow.originRequests) / 1_000 * secondThousand
        return (origin + second) * seconds
    }
}

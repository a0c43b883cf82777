// Plays the films of a scenario minute by minute over nodes and a second level.
import Numbers
import Retention

/// Simulates a tier; pure, and the same for the same seed.
///
/// Each player watches a title from its beginning, a piece of one minute at a time, and then chooses
/// the next one. A piece is asked of the node that the balancer's hash names among those that are
/// there (rendezvous hashing, which moves as little as HAProxy's consistent hash). Each node evicts
/// as the daemon does (`TitleAware`); the second level keeps what was used last. Misses of the same
/// minute are one.
package struct CapacityModel {
    private let scenario: CapacityScenario
    private var random: TraceRandom
    private let ranks: ZipfRanks
    private var players: [Player] = []
    private var nodes: [Replay]
    private var second: RecentPieces?
    /// The minute at which a node is back; 0 for one that is there.
    private var absentUntil: [Int]
    /// The node of each piece while all are there.
    private let homes: [Int32]

    private struct Player {
        var title: Int
        var minute: Int
        /// The minute at which the player goes on to another title.
        var end: Int
    }

    private init(_ scenario: CapacityScenario, seed: UInt64) {
        self.scenario = scenario
        random = TraceRandom(seed: seed)
        ranks = ZipfRanks(count: max(scenario.titles, 1), exponent: scenario.exponent)
        let pieces = max(scenario.titles, 1) * max(scenario.minutes, 1)
        let count = max(scenario.nodes, 1)
        nodes = (0..<count).map { _ in Self.emptyNode(scenario) }
        second = scenario.second.map {
            RecentPieces(of: pieces, room: Int(clamping: $0.bytes / scenario.pieceBytes))
        }
        absentUntil = Array(repeating: 0, count: count)
        let everybody = Array(0..<count)
        homes = (0..<pieces).map { Int32(Self.home(of: $0, among: everybody)) }
        for _ in 0..<scenario.players {
            var player = next()
            // They did not all begin at once.
            player.minute = random.below(max(player.end, 1))
            players.append(player)
        }
    }

    /// Returns what flows in the counted hours.
    package static func run(_ scenario: CapacityScenario, seed: UInt64) -> CapacityFlow {
        var model = CapacityModel(scenario, seed: seed)
        var flow = CapacityFlow(
            pieceBytes: scenario.pieceBytes, segmentsInPiece: 60 / max(scenario.segment, 0.1))
        let warmUp = scenario.warmUp * 60
        let all = warmUp + scenario.hours * 60
        var replaced = 0
        for minute in 0..<all {
            if let hours = scenario.replacement,
                Double(minute) >= Double(replaced + 1) * max(hours, 0.1) * 60
            {
                model.replace(replaced % model.nodes.count, at: minute)
                replaced += 1
            }
            model.play(minute, counting: minute >= warmUp, into: &flow)
        }
        flow.minutes = all - warmUp
        return flow
    }

    private mutating func next() -> Player {
        let title = ranks.draw(&random)
        // Uniform around the mean share, within the title.
        let spread = min(scenario.watched, 1 - scenario.watched)
        let share = random.uniform(
            (scenario.watched - spread)...(scenario.watched + spread + 1e-9))
        let end = Int(saturating: (share * Double(scenario.minutes)).rounded(.up))
        return Player(title: title, minute: 0, end: min(max(end, 1), scenario.minutes))
    }

    private mutating func replace(_ node: Int, at minute: Int) {
        nodes[node] = Self.emptyNode(scenario)
        absentUntil[node] = minute + max(scenario.absence, 0)
    }

    private mutating func play(_ minute: Int, counting: Bool, into flow: inout CapacityFlow) {
        var sent = Array(repeating: 0, count: nodes.count)
        let present = nodes.indices.filter { absentUntil[$0] <= minute }
        for index in players.indices {
            let player = players[index]
            let piece = player.title * scenario.minutes + player.minute
            var node = Int(homes[piece])
            if absentUntil[node] > minute, !present.isEmpty {
                node = Self.home(of: piece, among: present)
            }
            sent[node] += 1
            let isHit = use(piece, of: player.title, at: node, minute)
            let isSecondHit = isHit || second?.use(piece) ?? false
            if counting {
                flow.asked += 1
                if !isHit { flow.missedByNodes += 1 }
                if !isSecondHit { flow.missedBySecond += 1 }
            }
            players[index].minute += 1
            if players[index].minute >= player.end { players[index] = next() }
        }
        if counting { flow.peak = max(flow.peak, sent.max() ?? 0) }
    }

    private static func emptyNode(_ scenario: CapacityScenario) -> Replay {
        let capacity = scenario.usableDisk
        return Replay(policy: TitleAware(capacity: capacity), capacity: capacity)
    }

    /// Uses a piece at a node, which keeps it from then on; returns whether it had it.
    private mutating func use(_ piece: Int, of title: Int, at node: Int, _ minute: Int) -> Bool {
        let time = Double(minute) * scenario.step
        let request = TraceRequest(
            time: Self.beginning + UInt32(clamping: Int(saturating: time)),
            name: UInt128(piece), size: scenario.storedBytes, title: UInt64(title) + 1)
        let hits = nodes[node].result.hits
        nodes[node].step(request)
        return nodes[node].result.hits > hits
    }

    /// Any time in seconds since 1970.
    private static let beginning: UInt32 = 1_700_000_000

    /// Returns the node with the greatest mark of a piece (rendezvous hashing).
    private static func home(of piece: Int, among nodes: [Int]) -> Int {
        var best = (node: nodes[0], mark: UInt64(0))
        for node in nodes {
            var mixer = TraceRandom(seed: UInt64(piece) << 16 | UInt64(node))
            let mark = mixer.next()
            if mark >= best.mark { best = (node, mark) }
        }
        return best.node
    }
}

/// The pieces that were used last, up to a number; each step takes constant time.
private struct RecentPieces {
    /// Neighbours in the order of use; the piece after the last one stands for both ends.
    private var newer: [Int32]
    private var older: [Int32]
    private let end: Int
    private let room: Int
    private var count = 0
    /// Marks a piece that is not kept.
    private static let absent: Int32 = -1

    init(of pieces: Int, room: Int) {
        self.room = room
        end = pieces
        newer = Array(repeating: Self.absent, count: pieces + 1)
        older = newer
        newer[end] = Int32(end)
        older[end] = Int32(end)
    }

    /// Uses a piece, which is kept from then on; returns whether it was.
    mutating func use(_ piece: Int) -> Bool {
        guard room > 0 else { return false }
        let isKept = newer[piece] != Self.absent
        if isKept {
            unlink(piece)
        } else if count >= room {
            let oldest = Int(newer[end])
            unlink(oldest)
            newer[oldest] = Self.absent
        } else {
            count += 1
        }
        // Between the newest one and the end.
        let newest = Int(older[end])
        older[piece] = Int32(newest)
        newer[piece] = Int32(end)
        newer[newest] = Int32(piece)
        older[end] = Int32(piece)
        return isKept
    }

    private mutating func unlink(_ piece: Int) {
        let (before, after) = (Int(older[piece]), Int(newer[piece]))
        newer[before] = Int32(after)
        older[after] = Int32(before)
    }
}

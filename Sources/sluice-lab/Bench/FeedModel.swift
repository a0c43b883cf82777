// The test bench of `sluice-lab bench feed` in arithmetic: the real planner, with link, flights and
// player reduced to bytes and times, so that a wide grid of parameters takes minutes.
import Lookahead

/// A link, a daemon and a viewer for one run.
final class FeedModel {
    /// The parameters shared by all runs.
    struct Terms {
        /// Bytes per second.
        var shared = 875_000.0
        var single = 560_000.0
        /// Seconds of a round trip; a new connection takes an additional one.
        var delay = 0.1
        var segments = 8
        var segmentBytes = 200_000.0
        var segmentSeconds = 2.0
        var patience = 0.15
        /// Seconds that daemon and client need for a request served from the store.
        var own = 0.004
        /// Bytes of a paused transfer that socket buffers absorb.
        var socket = 90_000.0
        /// Whether transfers of a player that left end immediately, as after a reported swipe.
        var letsGo = true
    }

    /// One step of the clock, in seconds.
    static let step = 0.004

    /// A resource of an item: 0 and 1 are its playlists, 2 its initialization section, the rest its
    /// segments.
    struct Name: Hashable {
        let item: Int
        let resource: Int
    }

    /// One request to the CDN.
    final class Transfer {
        let name: Name
        let start: Double
        let end: Double
        /// Bytes from the start of the resource that have arrived, and those that wait in socket
        /// buffers.
        var position: Double
        var waiting = 0.0
        /// The earliest time of the first byte.
        let begins: Double
        var isPlayback: Bool
        var fetch: AheadID?
        var yields = false
        /// When the transfer is re-examined after its player has left.
        var leftAt: Double?

        init(_ name: Name, from start: Double, to end: Double, begins: Double, isPlayback: Bool) {
            self.name = name
            self.start = start
            position = start
            self.end = end
            self.begins = begins
            self.isPlayback = isPlayback
        }
    }

    let terms: Terms
    var planner: FeedPlanner
    var now = 0.0
    var transfers: [Transfer] = []
    var stored: [Name: Double] = [:]
    var given: [Name: Double] = [:]
    var sent = 0.0
    private var idle = 0
    /// Fetches that wait until no player is waiting, or for another transfer.
    var held: [AheadID: (name: Name, end: Double, yields: Bool)] = [:]
    var reading: [Int: Int] = [:]
    var nextTick: Double?
    var player: ModelPlayer?

    init(_ terms: Terms, items: Int, parameters: FeedParameters) {
        self.terms = terms
        planner = FeedPlanner(
            contents: Array(0..<items), weights: Array(repeating: 1, count: items), at: 0, .forward,
            parameters)
    }

    func size(of name: Name) -> Double {
        switch name.resource {
        case 0: 110
        case 1: 150 + Double(terms.segments) * 45
        case 2: 1_200
        default: terms.segmentBytes
        }
    }

    // MARK: A run

    func run(_ visits: [ViewerPattern.Visit]) -> ViewerFigures {
        var figures = ViewerFigures()
        perform(planner.start(at: 0))
        for visit in visits {
            let before = account(of: visit.item)
            perform(planner.move(to: visit.item, at: now))
            let player = ModelPlayer(visit.item, at: now, terms)
            self.player = player
            let end = now + visit.seconds
            while now < end { advance() }
            figures.visits += 1
            figures.stalls += player.stalls
            if let shown = player.shownAfter { figures.startUps.append(shown) }
            if (player.shownAfter ?? visit.seconds) > terms.patience {
                figures.loaders += 1
                figures.reasons.append(before)
            }
            leavePlayer()
        }
        figures.played = Int64(given.values.reduce(0, +))
        figures.sent = Int64(sent)
        return figures
    }

    /// The stored amount of an item.
    private func account(of item: Int) -> String {
        let kilobytes = Int((stored[Name(item: item, resource: 3)] ?? 0) / 1_000)
        let lists = (0...2).filter { isWhole(Name(item: item, resource: $0)) }.count
        let underway = transfers.filter { $0.name.item == item }.count
        let others = transfers.map {
            "\($0.name.item).\($0.name.resource)\($0.isPlayback ? "p" : "")"
        }
        return "item \(item): \(lists) of 3 small ones, \(kilobytes) kB, \(underway) under way; "
            + "running \(others.joined(separator: " "))"
    }

    func isWhole(_ name: Name) -> Bool { (stored[name] ?? 0) >= size(of: name) - 0.5 }

    private func advance() {
        now += Self.step
        deliver()
        if let nextTick, now >= nextTick {
            self.nextTick = nil
            for (part, _) in planner.awaited {
                let name = Name(item: planner.active, resource: part + 2)
                planner.noticed(part: part, bytes: isWhole(name) ? .max : Int64(stored[name] ?? 0))
            }
            perform(planner.tick(at: now))
        }
        player?.advance(self)
        for transfer in transfers {
            if let left = transfer.leftAt, now >= left { abandon(transfer) }
        }
    }

    // MARK: The link

    private func deliver() {
        var budget = terms.shared * Self.step
        let cap = terms.single * Self.step
        var open = transfers.filter { transfer in
            transfer.begins <= now && transfer.position + transfer.waiting < transfer.end
                && transfer.waiting < terms.socket
        }
        // In rounds, as pieces of connections alternate.
        var took: [ObjectIdentifier: Double] = [:]
        while budget > 1, !open.isEmpty {
            let share = budget / Double(open.count)
            open.removeAll { transfer in
                let already = took[ObjectIdentifier(transfer)] ?? 0
                let left = transfer.end - transfer.position - transfer.waiting
                let bytes = min(share, cap - already, left)
                take(transfer, bytes)
                budget -= bytes
                took[ObjectIdentifier(transfer)] = already + bytes
                return bytes < share - 1e-6
            }
        }
        for transfer in transfers where transfer.position >= transfer.end - 0.5 { end(transfer) }
    }

    var hasPlayback: Bool {
        transfers.contains { $0.isPlayback && $0.name.resource >= 2 }
    }

    private func take(_ transfer: Transfer, _ bytes: Double) {
        sent += bytes
        if transfer.yields, !transfer.isPlayback, hasPlayback {
            transfer.waiting += bytes
        } else {
            transfer.position += bytes
        }
        stored[transfer.name] = max(stored[transfer.name] ?? 0, transfer.position)
    }

    @discardableResult
    func begin(_ name: Name, to end: Double, isPlayback: Bool) -> Transfer {
        let shake = idle > 0 ? 0 : terms.delay
        if idle > 0 { idle -= 1 }
        let transfer = Transfer(
            name, from: stored[name] ?? 0, to: end, begins: now + terms.delay + shake,
            isPlayback: isPlayback)
        transfers.append(transfer)
        return transfer
    }

    private func end(_ transfer: Transfer) {
        transfers.removeAll { $0 === transfer }
        idle += 1
        flush()
        if let fetch = transfer.fetch { ended(fetch, transfer) }
        let name = transfer.name
        if name.resource < 2, isWhole(name), reading[name.item] == name.resource {
            readOn(name.item)
        }
        retryHeld()
    }

    /// Delivers what waited for players.
    func flush() {
        guard !hasPlayback else { return }
        for transfer in transfers {
            transfer.position += transfer.waiting
            transfer.waiting = 0
            stored[transfer.name] = max(stored[transfer.name] ?? 0, transfer.position)
        }
    }

    func drop(_ transfer: Transfer) {
        transfers.removeAll { $0 === transfer }
        flush()
        retryHeld()
    }

    // MARK: Players that leave

    private func leavePlayer() {
        guard let player else { return }
        for transfer in transfers where transfer.name.item == player.item && transfer.isPlayback {
            transfer.leftAt = terms.letsGo ? now : now + 0.3
        }
        self.player = nil
    }

    private func abandon(_ transfer: Transfer) {
        transfer.leftAt = nil
        if player?.item == transfer.name.item { return }
        let left = transfer.end - transfer.position
        if left <= (terms.letsGo ? terms.single * 0.1 : 262_144) { return }
        drop(transfer)
    }
}

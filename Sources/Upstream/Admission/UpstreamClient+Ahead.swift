import HTTP
import Posix
import Reactor

/// Transfers that no player waits for: their measurements and limits.
extension UpstreamClient {
    /// Counts the body bytes received in this round.
    func measureBytes(_ transfer: Transfer) {
        let count = transfer.bytesReceived - transfer.bytesMeasured
        transfer.bytesMeasured = transfer.bytesReceived
        if count > 0, aheadInFlight > 0 { meter.add(bytes: Int(count), from: transfer.host) }
    }

    /// Measures the time until a head that was just received, and notes what it tells of its host.
    func measureAnswer(_ transfer: Transfer) {
        let status = transfer.hopState.parser.status.rawValue
        if (200..<300).contains(status) { noteSuccess(transfer) }
        guard transfer.lane >= .prefetch else { return }
        let seconds = (loop.now - transfer.hopState.startedAt).inSeconds
        meter.add(
            answerAfter: seconds, from: transfer.host, isRefusal: status == 429 || status == 503)
    }

    /// Changes the limits of prefetch and background transfers: in all, of background ones among
    /// them, and per host.
    ///
    /// Running transfers continue; waiting ones are admitted at the end of this round.
    package func limitAhead(
        _ all: Int, background: Int = .max, hosts: [String: Int] = [:]
    ) {
        queue.limitAhead(all, background: background, hosts: hosts)
        scheduleRoundEnd()
    }

    /// Preempts the newest background transfers until `most` are left.
    package func preemptBackground(over most: Int) {
        let excess = queue.ahead.background - max(0, most)
        guard excess > 0 else { return }
        let running = live.values.filter { $0.lane == .background && $0.state == .running }
        for transfer in running.sorted(by: { $0.id > $1.id }).prefix(excess) {
            fail(transfer, .preempted)
        }
    }

    /// The number of running prefetch and background transfers.
    package var aheadInFlight: Int { queue.ahead.inUse }

    /// The number of running prefetch transfers that go first.
    package var aheadFirstInFlight: Int { queue.ahead.first }

    /// The number of prefetch and background transfers that wait for a slot.
    package var aheadWaiting: Int { queue.waiting(in: .prefetch) + queue.waiting(in: .background) }

    /// Returns the measurements by host since the last call; includes every host with running
    /// transfers.
    package func takeAheadFigures() -> [String: AheadFigures] {
        var taken = meter.take()
        for (host, count) in queue.ahead.byHost.all {
            taken[host, default: AheadFigures()].inFlight = count
        }
        return taken
    }
}

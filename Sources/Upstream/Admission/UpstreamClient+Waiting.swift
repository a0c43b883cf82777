import Posix
import Reactor

/// The limit on a player's wait for a slot: other transfers may hold theirs as long as bytes
/// arrive.
///
/// Express transfers have separate places, but bodies that were requested as playlists may hold all
/// of these. Requests that the origin will hold wait for as long as others are held, and ahead
/// transfers delay no player.
extension UpstreamClient {
    /// The shortest interval between checks of waiting transfers.
    private static let leastPause = Interval.milliseconds(50)

    /// Schedules a check for when the first waiting transfer is overdue, unless there is one.
    func watchWaiting(after delay: Interval) {
        guard waitTimer == nil, !isShutDown else { return }
        waitTimer = loop.schedule(after: max(delay, Self.leastPause)) { [weak self] _ in
            self?.endOverdueWaits()
        }
    }

    private func endOverdueWaits() {
        waitTimer = nil
        let limit = configuration.slotWait
        let waiting = live.values.filter {
            $0.state == .waiting && $0.lane <= .playback && !$0.request.isLongPoll
        }
        var longest: Interval?
        for transfer in waiting {
            let waited = loop.now - transfer.waitsSince
            if waited >= limit {
                end(transfer, .failure(slotTimeout(of: transfer)))
            } else {
                longest = max(longest ?? .zero, waited)
            }
        }
        guard let longest else { return }
        watchWaiting(after: Interval(nanoseconds: limit.nanoseconds - longest.nanoseconds))
    }

    private func slotTimeout(of transfer: Transfer) -> UpstreamError {
        let isExpress = transfer.lane == .express
        let limits = queue.limits
        let isHostLimit = isExpress || queue.slotsInUse < limits.slots
        let full = isHostLimit ? queue.hosts.fullHosts(of: entry(for: transfer)).first : nil
        let count = full?.limit ?? (isExpress ? limits.expressCap : limits.slots)
        let place = full.map { " to \($0.name)" } ?? (isExpress ? " besides the slots" : "")
        let milliseconds = configuration.slotWait.nanoseconds / 1_000_000
        let time = milliseconds % 1_000 == 0 ? "\(milliseconds / 1_000) s" : "\(milliseconds) ms"
        var detail = "all \(count) transfers that may run at once\(place) were in use for \(time)"
        if configuration.hasSlotOptions {
            let option =
                full.map { $0.isOwn ? "--origin-limit" : "--host-limit" }
                ?? (isExpress ? "--express-slots" : "--slots")
            // No option raises the limit of a host that refuses a second transfer.
            let isSingle = full.map { queue.hosts.singles.isSingle($0.name) } ?? false
            detail +=
                "; raise " + (isSingle ? "" : "\(option), or ")
                + "--slot-timeout to wait for longer"
        }
        return UpstreamError(.slotTimeout, host: transfer.host, detail: detail)
    }
}

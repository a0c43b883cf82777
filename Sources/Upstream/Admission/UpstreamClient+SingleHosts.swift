package import HTTP
import Posix
import Reactor

/// Requests that a host refused beside other transfers, and that are sent once more without them.
///
/// An account for one viewer gets one transfer at a time: another one is answered with 403, 429,
/// 503 or 509. Players alone keep to that; look-ahead, downloads and a live stream whose viewers
/// have just left are transfers that the player knows nothing of. An IPTV panel counts also those
/// that it has redirected to another host.
///
/// A host with a known limit, configured or found, is not sent more than that. It may still refuse
/// a request just after a transfer has ended, since it notices that late: the request is repeated.
extension UpstreamClient {
    /// Returns true for a status with which origins refuse a second transfer of an account.
    package static func mayRefuseSecond(_ status: HTTPStatus) -> Bool {
        [403, 429, 503, 509].contains(status.rawValue)
    }

    /// True if a host may have refused a transfer because of others to it: an idle connection could
    /// count against the account, too.
    func mayBeOneTooMany(_ transfer: Transfer) -> Bool {
        Self.mayRefuseSecond(transfer.hopState.parser.status)
            && live.values.contains {
                $0 !== transfer && $0.state == .running && $0.concerns(transfer.host)
            }
    }

    /// Ends the transfers to the host of a refused transfer that no player waits for, unless it may
    /// have noticed the end of another one late, and keeps others of that kind away from it until
    /// `endTrial`.
    ///
    /// - Parameters:
    ///   - refused: the transfer; it is not ended.
    ///   - lingering: running transfers in players' lanes that no player needs any more; the caller
    ///     ends them.
    /// - Returns: the host; nil, with no change, if the request is not to be repeated: nothing can
    ///   be ended, other transfers would be left, or what is known of the host speaks against it.
    package func beginTrial(_ refused: Transfer, lingering: [Transfer]) -> String? {
        guard refused.slot != nil, !refused.request.isLongPoll else { return nil }
        if let host = hostOfLateNotice(refused) {
            queue.hosts.ends.beginRepeat(host)
            return host
        }
        let host = refused.host
        // A dismissed transfer was answered and ends by itself shortly: it is not worth a trial,
        // and does not prevent one.
        let others = live.values.filter {
            $0.slot != nil && !$0.request.isLongPoll && $0.concerns(host) && $0 !== refused
                && $0.hopState.phase != .rest
        }
        let ahead = others.filter { $0.lane >= .prefetch && $0.state == .running }
        let idle = Set((ahead + lingering).map(\.id))
        let hasOthers = !others.isEmpty && others.allSatisfy { idle.contains($0.id) }
        guard !queue.hosts.ends.isRepeating(host),
            queue.hosts.singles.mayTry(host, hasOthers: hasOthers, now: loop.now)
        else { return nil }
        queue.hosts.singles.begin(host, hasLimit: refused.hostLimit > 0, now: loop.now)
        for transfer in ahead { fail(transfer, UpstreamError(.preempted, host: host)) }
        scheduleRoundEnd()
        return host
    }

    /// Returns the host that may have refused a transfer because of one that had just ended: that
    /// of the response, or the one that has redirected the request; nil if there is none.
    private func hostOfLateNotice(_ refused: Transfer) -> String? {
        [refused.host, refused.firstHost].first { host in
            queue.hosts.ends.mayRepeat(host, now: loop.now) && !queue.hosts.singles.isTried(host)
        }
    }

    /// Notes that a transfer has ended at the hosts that count it and have a known limit.
    ///
    /// A host does not count what it has refused.
    func noteEnd(of transfer: Transfer) {
        let (limit, firstLimit) = (transfer.hostLimit, transfer.firstHostLimit)
        guard !queue.hosts.singles.isEmpty || limit > 0 || firstLimit > 0 else { return }
        guard transfer.slot != nil, !transfer.request.connectsOnly, !transfer.request.isLongPoll,
            !Self.mayRefuseSecond(transfer.hopState.parser.status)
        else { return }
        for (host, limit) in [(transfer.host, limit), (transfer.firstHost, firstLimit)]
        where limit > 0 || queue.hosts.singles.isLearned(host) {
            queue.hosts.ends.note(host, now: loop.now)
        }
    }

    /// Ends a trial, or the repetition of a request.
    ///
    /// - Parameters:
    ///   - host: the host.
    ///   - isGood: whether the request was answered this time; nil if that is not known.
    /// - Returns: true if the host gets one transfer at a time from now on.
    package func endTrial(_ host: String, isGood: Bool?) -> Bool {
        if queue.hosts.ends.endRepeat(host) {
            scheduleRoundEnd()
            return false
        }
        let isLearned = queue.hosts.singles.end(host, isGood: isGood, now: loop.now)
        if isLearned { ledger.figures.singleHosts = queue.hosts.singles.learned }
        scheduleRoundEnd()
        return isLearned
    }

    /// Notes a successful answer: with another body in transfer, its host allows two, and so does
    /// one that has redirected both.
    ///
    /// Playlists and keys do not count, since some accounts count streams only.
    func noteSuccess(_ transfer: Transfer) {
        guard transfer.lane >= .playback, !queue.hosts.singles.isEmpty else { return }
        for host in [transfer.host, transfer.firstHost] where queue.hosts.singles.isSuspected(host)
        {
            let isBesideOther = live.values.contains {
                $0 !== transfer && $0.lane >= .playback && $0.state == .running
                    && $0.concerns(host) && $0.bytesReceived > 0
            }
            if isBesideOther { queue.hosts.singles.noteSeveral(host) }
        }
    }
}

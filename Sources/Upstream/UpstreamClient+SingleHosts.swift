package import HTTP
import Posix
import Reactor

/// Requests that a host refused beside other transfers, and that are sent once more without them.
///
/// An account for one viewer gets one transfer at a time: another one is answered with 403, 429,
/// 503 or 509. Players alone keep to that; look-ahead, downloads and a live stream whose viewers
/// have just left are transfers that the player knows nothing of. An IPTV panel counts also those
/// that it has redirected to another host.
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

    /// Ends the transfers to the host of a refused transfer that no player waits for, and keeps
    /// others of that kind away from it until `endTrial`.
    ///
    /// - Parameters:
    ///   - refused: the transfer; it is not ended.
    ///   - lingering: running transfers in players' lanes that no player needs any more; the caller
    ///     ends them.
    /// - Returns: the host; nil, with no change, if nothing can be ended, if other transfers would
    ///   be left, or if what is known of the host speaks against another request.
    package func beginTrial(_ refused: Transfer, lingering: [Transfer]) -> String? {
        guard refused.slot != nil, !refused.request.isLongPoll else { return nil }
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
        guard queue.singles.mayTry(host, hasOthers: hasOthers, now: loop.now) else { return nil }
        queue.changeSingles { $0.begin(host, now: loop.now) }
        for transfer in ahead { fail(transfer, UpstreamError(.preempted, host: host)) }
        scheduleRoundEnd()
        return host
    }

    /// Ends a trial.
    ///
    /// - Parameters:
    ///   - host: the host.
    ///   - isGood: whether the request was answered this time; nil if that is not known.
    /// - Returns: true if the host gets one transfer at a time from now on.
    package func endTrial(_ host: String, isGood: Bool?) -> Bool {
        let isLearned = queue.changeSingles { $0.end(host, isGood: isGood, now: loop.now) }
        if isLearned { ledger.note(singleHosts: queue.singles.learned) }
        scheduleRoundEnd()
        return isLearned
    }

    /// Notes a successful answer: with another body in transfer, its host allows two, and so does
    /// one that has redirected both.
    ///
    /// Playlists and keys do not count, since some accounts count streams only.
    func noteSuccess(_ transfer: Transfer) {
        guard transfer.lane >= .playback, !queue.singles.isEmpty else { return }
        for host in [transfer.host, transfer.firstHost] where queue.singles.isSuspected(host) {
            let isBesideOther = live.values.contains {
                $0 !== transfer && $0.lane >= .playback && $0.state == .running
                    && $0.concerns(host) && $0.bytesReceived > 0
            }
            if isBesideOther { queue.changeSingles { $0.noteSeveral(host) } }
        }
    }
}

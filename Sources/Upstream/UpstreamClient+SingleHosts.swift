import Posix
import Reactor

/// Requests that a host refused beside other transfers, and that are sent once more without them.
///
/// An account for one viewer gets one transfer at a time: another one is answered with 403, 429, 503
/// or 509. Players alone keep to that; look-ahead, downloads and a live stream whose viewers have
/// just left are transfers that the player knows nothing of.
extension UpstreamClient {
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
        let ahead = live.values.filter {
            $0.lane >= .prefetch && $0.state == .running && $0.host == host && $0 !== refused
        }
        let idle = Set((ahead + lingering.filter { $0.host == host }).map(\.id))
        let others = queue.inFlight(to: host) - 1
        let hasOthers = others > 0 && idle.count == others
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

    /// Notes a successful answer: with another body in transfer, its host allows two.
    ///
    /// Playlists and keys do not count, since some accounts count streams only.
    func noteSuccess(_ transfer: Transfer) {
        let host = transfer.host
        guard transfer.lane >= .playback, queue.singles.isSuspected(host) else { return }
        let isBesideOther = live.values.contains {
            $0 !== transfer && $0.lane >= .playback && $0.state == .running && $0.host == host
                && $0.bytesReceived > 0
        }
        if isBesideOther { queue.changeSingles { $0.noteSeveral(host) } }
    }
}

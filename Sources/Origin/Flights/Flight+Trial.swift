import HTTP
import Logging
import Posix
import Reactor
import Upstream

/// Requests that an origin may have refused since it allows one transfer at a time.
extension Flight {
    /// The longest time for which a trial keeps other transfers to its host apart: other players
    /// would wait for it, and it would wait for a live stream that began after the refusal.
    private static let longestTrial = Interval.seconds(5 as Int64)

    /// Asks once more where the origin refused a player's request beside transfers to its host that
    /// no player waits for, which are ended, or just after the end of another one.
    ///
    /// - Returns: false if the response is the answer.
    func asksAlone(after head: TransferHead, _ transfer: Transfer) -> Bool {
        guard head.status.rawValue >= 400, transfer.parent == nil,
            machine.mayBeOneTooMany(facts(of: head))
        else { return false }
        let lingering = table.gracePeriods.lingering.filter { $0.transfer?.state == .running }
        let others = lingering.compactMap(\.transfer)
        guard let host = table.client.beginTrial(transfer, lingering: others) else { return false }
        triedHost = host
        for flight in lingering where flight.transfer?.concerns(host) == true {
            flight.abandon()
        }
        perform(machine.askAlone())
        // Each flight has one trial at most, so that this ends no later one.
        table.loop.schedule(after: Self.longestTrial) { [weak self] _ in
            self?.endTrial(isGood: nil)
        }
        return true
    }

    /// Ends a trial with the status of the response.
    ///
    /// If the host that refused the request redirects it this time, it has accepted it. What a host
    /// behind another redirect answers does not show why the former one refused it.
    func endTrial(with status: HTTPStatus, of transfer: Transfer) {
        guard let triedHost else { return }
        if UpstreamClient.mayRefuseSecond(status) { return endTrial(isGood: false) }
        let isAccepted = status.rawValue < 400 && transfer.concerns(triedHost)
        endTrial(isGood: isAccepted ? true : nil)
    }

    /// Ends a trial.
    ///
    /// - Parameter isGood: whether the request was answered this time; nil if that is not known.
    func endTrial(isGood: Bool?) {
        guard let host = triedHost else { return }
        triedHost = nil
        guard table.client.endTrial(host, isGood: isGood) else { return }
        services.log.notice(
            """
            the origin refuses a second connection, and gets one at a time until the next start; \
            --origin-limit HOST=1 sets that for the host, --host-limit 1 for all origins
            """,
            metadata: ["host": "\(host)"])
    }
}

import Glibc
import Posix
import Reactor

/// Looks up the addresses of a host; nil on failure.
///
/// May block for many seconds.
package typealias NameLookup = @Sendable (String) -> [String]?

/// Refreshes the names in use, off the loop.
extension UpstreamClient {
    /// True if libcurl looks names up through the system's resolver and caches them.
    private func asksSystem(_ transfer: Transfer) -> Bool {
        transfer.route.isPlain && configuration.dohURL == nil && configuration.resolve.isEmpty
            && configuration.dnsCache > .zero
    }

    /// Records that a transfer is about to use its host's name.
    ///
    /// - Parameters:
    ///   - transfer: the transfer.
    ///   - multi: the connections that it will use.
    ///   - sets: the connections of its route.
    /// - Returns: addresses to pass to libcurl, in the form of CURLOPT_RESOLVE(3).
    func addresses(
        for transfer: Transfer, over multi: CurlMulti, of sets: RouteConnections.Sets
    ) -> String? {
        guard asksSystem(transfer) else { return nil }
        let found = names.use(transfer.origin, over: sets.kind(of: multi), now: loop.now)
        watchNames()
        return found
    }

    private func watchNames() {
        guard nameTimer == nil, !isShutDown, names.areInUse(now: loop.now) else { return }
        nameTimer = loop.schedule(after: names.turn) { [weak self] _ in
            guard let self else { return }
            nameTimer = nil
            lookUpNames()
            watchNames()
        }
    }

    private func lookUpNames() {
        guard !isLookingUp else { return }
        let hosts = names.due(now: loop.now)
        guard !hosts.isEmpty else { return }
        let bound = LoopBound(WeakClient(self), to: loop)
        let lookUp = configuration.lookUp
        // A thread for each round: one that waits for a resolver must not delay stopping the
        // daemon.
        let thread = try? PosixThread(name: "names") {
            pthread_detach(pthread_self())
            for host in hosts {
                let found = lookUp(host)
                bound.enqueue { weak, loop in
                    weak.client?.names.take(found, of: host, now: loop.now)
                }
            }
            bound.enqueue { weak, _ in weak.client?.isLookingUp = false }
        }
        isLookingUp = thread != nil
    }

    private final class WeakClient {
        weak var client: UpstreamClient?

        init(_ client: UpstreamClient) { self.client = client }
    }
}

import Glibc
import Posix
import Reactor
import URISyntax

/// Looks up the addresses of a host; nil on failure.
///
/// May block for many seconds.
package typealias NameLookup = @Sendable (String) -> [String]?

/// Looks the names in use up again, off the loop, before their addresses expire in libcurl.
///
/// Used on its loop only; `NamesInUse` decides which names are due.
final class NameRefresh {
    private let loop: EventLoop
    private let lookUp: NameLookup
    /// True if libcurl looks names up through the system's resolver and caches them.
    private let isOn: Bool
    private var names: NamesInUse
    private var timer: TimerID?
    private var isLookingUp = false
    private var isStopped = false

    init(loop: EventLoop, configuration: UpstreamConfiguration) {
        self.loop = loop
        lookUp = configuration.lookUp
        isOn =
            configuration.dohURL == nil && configuration.resolve.isEmpty
            && configuration.dnsCache > .zero
        names = NamesInUse(life: configuration.dnsCache)
    }

    /// Records that a transfer on the plain route is about to use its host's name.
    ///
    /// - Parameters:
    ///   - origin: the origin.
    ///   - kind: the connections that the transfer will use.
    /// - Returns: addresses to pass to libcurl, in the form of CURLOPT_RESOLVE(3).
    func addresses(of origin: Origin, over kind: ConnectionKind) -> String? {
        guard isOn else { return nil }
        let found = names.use(origin, over: kind, now: loop.now)
        watch()
        return found
    }

    /// Records an address that accepted a connection.
    func connected(_ origin: Origin, to address: String) {
        names.connected(origin, to: address, now: loop.now)
    }

    /// Schedules no further lookups.
    func stop() { isStopped = true }

    private func watch() {
        guard timer == nil, !isStopped, names.areInUse(now: loop.now) else { return }
        timer = loop.schedule(after: names.turn) { [weak self] _ in
            guard let self else { return }
            timer = nil
            lookUpNames()
            watch()
        }
    }

    private func lookUpNames() {
        guard !isLookingUp else { return }
        let hosts = names.due(now: loop.now)
        guard !hosts.isEmpty else { return }
        let bound = LoopBound(WeakRefresh(self), to: loop)
        let lookUp = lookUp
        // A thread for each round: one that waits for a resolver must not delay stopping the
        // daemon.
        let thread = try? PosixThread(name: "names") {
            pthread_detach(pthread_self())
            for host in hosts {
                let found = lookUp(host)
                bound.enqueue { weak, loop in
                    weak.refresh?.names.take(found, of: host, now: loop.now)
                }
            }
            bound.enqueue { weak, _ in weak.refresh?.isLookingUp = false }
        }
        isLookingUp = thread != nil
    }

    private final class WeakRefresh {
        weak var refresh: NameRefresh?

        init(_ refresh: NameRefresh) { self.refresh = refresh }
    }
}

// Timed requests of the virtual players of `sluice-lab bench`.
import CommandSupport
import Posix

/// A client that reuses its connection, as players do.
///
/// Blocking; for one thread.
final class BenchConnection {
    private let client = BlockingClient()

    /// Sends a GET and blocks until the body is complete, aborted or failed.
    ///
    /// - Parameters:
    ///   - url: the URL to fetch.
    ///   - enough: bytes after which `enoughAt` is set.
    ///   - end: the time at which it is aborted even if no piece arrives.
    ///   - isWanted: called with every piece, and at `end`; false aborts.
    /// - Returns: what was received; nil if it failed without being aborted.
    func get(
        _ url: String, enough: Int = .max, until end: Monotonic? = nil,
        isWanted: @escaping () -> Bool = { true }
    ) -> BenchFetch? {
        let fetch = BenchFetch(enough: enough, isWanted: isWanted)
        var request = BlockingClient.Request("GET", url)
        request.failsOnErrorStatus = true
        // Late rather than early, by a clock that is coarser than ours.
        request.milliseconds = end.map { Int(($0 - .now()).nanoseconds / 1_000_000) + 3 } ?? 120_000
        do throws(BlockingClient.Failure) {
            _ = try client.perform(request) { fetch.take($0) }
            fetch.end(isWhole: true)
        } catch {
            let isCut = [.stopped, .unanswered, .unconnected].contains(error.kind)
            guard isCut, !isWanted() else { return nil }
            fetch.end(isWhole: false)
        }
        return fetch
    }
}

/// One timed GET that can be aborted.
final class BenchFetch {
    /// Called with every piece; false aborts.
    private let isWanted: () -> Bool
    private let enough: Int
    private(set) var bytes = 0
    /// At most about a megabyte: enough for a list.
    private(set) var body: [UInt8] = []
    /// When `enough` bytes, or all, had arrived; nil if they did not.
    private(set) var enoughAt: Monotonic?

    fileprivate init(enough: Int, isWanted: @escaping () -> Bool) {
        self.enough = enough
        self.isWanted = isWanted
    }

    fileprivate func take(_ raw: UnsafeRawBufferPointer) -> Bool {
        guard isWanted() else { return false }
        bytes += raw.count
        if body.count < 1 << 20 { body += raw }
        if enoughAt == nil, bytes >= enough { enoughAt = .now() }
        return true
    }

    fileprivate func end(isWhole: Bool) {
        if enoughAt == nil, isWhole || bytes >= enough { enoughAt = .now() }
    }
}

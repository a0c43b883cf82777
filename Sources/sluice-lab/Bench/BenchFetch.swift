// Timed requests of the virtual players of `sluice-lab bench`.
import CommandSupport
import Posix

/// A client that keeps its connection from request to request, as players do.
///
/// Blocking; for one thread.
final class BenchConnection {
    private let client = BlockingClient()

    /// Blocks until the body is whole, broken off or failed.
    ///
    /// - Parameters:
    ///   - url: what to get.
    ///   - enough: bytes after which `enoughAt` is set.
    ///   - end: when it is broken off although no piece comes.
    ///   - isWanted: asked with every piece, and at `end`; false breaks off.
    /// - Returns: what came; nil where it failed by itself.
    func get(
        _ url: String, enough: Int = .max, until end: Monotonic? = nil,
        isWanted: @escaping () -> Bool = { true }
    ) -> BenchFetch? {
        let fetch = BenchFetch(enough: enough, isWanted: isWanted)
        var request = BlockingClient.Request("GET", url)
        request.failsOnErrorStatus = true
        // Later rather than sooner, by a clock that is coarser than ours.
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

/// One GET that is timed, and may be broken off.
final class BenchFetch {
    /// Told of bytes; false breaks off.
    private let isWanted: () -> Bool
    private let enough: Int
    private(set) var bytes = 0
    /// At most about a megabyte: enough for a list.
    private(set) var body: [UInt8] = []
    /// When `enough` bytes, or all, were there; nil if they never were.
    private(set) var enoughAt: Monotonic?

    fileprivate init(enough: Int, isWanted: @escaping () -> Bool) {
        self.enough = enough
        self.isWanted = isWanted
    }

    /// As `BenchConnection.get`, on a connection of its own.
    static func get(
        _ url: String, enough: Int = .max, until end: Monotonic? = nil,
        isWanted: @escaping () -> Bool = { true }
    ) -> BenchFetch? {
        BenchConnection().get(url, enough: enough, until: end, isWanted: isWanted)
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

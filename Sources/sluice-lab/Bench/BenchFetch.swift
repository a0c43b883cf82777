// Timed requests of the virtual players of `sluice-lab bench`.
import CCurl
import Posix

/// A client that keeps its connection from request to request, as players do.
///
/// Blocking; for one thread.
final class BenchConnection {
    private let easy: UnsafeMutableRawPointer?

    init() { easy = curl_easy_init() }

    deinit { if let easy { curl_easy_cleanup(easy) } }

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
        guard let easy else { return nil }
        let fetch = BenchFetch(enough: enough, isWanted: isWanted)
        curl_easy_reset(easy)
        _ = sluice_curl_set_string(easy, CURLOPT_URL, url)
        _ = sluice_curl_set_string(easy, CURLOPT_PROXY, "")
        // Later rather than sooner, by a clock that is coarser than ours.
        let limit = end.map { ($0 - .now()).nanoseconds / 1_000_000 + 3 } ?? 120_000
        _ = sluice_curl_set_long(easy, CURLOPT_TIMEOUT_MS, CLong(max(1, limit)))
        _ = sluice_curl_set_long(easy, CURLOPT_FAILONERROR, 1)
        sluice_curl_set_write(
            easy,
            { bytes, size, count, context in
                guard let context, let bytes else { return 0 }
                let raw = UnsafeRawBufferPointer(start: bytes, count: size * count)
                let fetch = Unmanaged<BenchFetch>.fromOpaque(context).takeUnretainedValue()
                return fetch.take(raw) ? raw.count : 0
            }, Unmanaged.passUnretained(fetch).toOpaque())
        let result = withExtendedLifetime(fetch) { curl_easy_perform(easy) }
        let isCut = result == CURLE_WRITE_ERROR || result == CURLE_OPERATION_TIMEDOUT
        guard result == CURLE_OK || (isCut && !isWanted()) else { return nil }
        fetch.end(isWhole: result == CURLE_OK)
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

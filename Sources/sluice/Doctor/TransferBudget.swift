import Posix

/// What a command may spend on requests in all: their number, their bytes and its time.
///
/// For one thread.
final class TransferBudget {
    private let deadline: Monotonic
    private var requests: Int
    private var bytes: Int
    /// The most time that one request gets.
    private let longest: Int

    init(requests: Int, bytes: Int, seconds: Int64, each: Int64, from now: Monotonic) {
        self.requests = requests
        self.bytes = bytes
        deadline = now + .seconds(seconds)
        longest = Int(each) * 1_000
    }

    /// Counts one request.
    ///
    /// - Returns: the milliseconds and the bytes that it may take; nil where nothing is left.
    func next(now: Monotonic) -> (milliseconds: Int, bytes: Int)? {
        let left = Int((deadline - now).inMilliseconds)
        guard requests > 0, bytes > 0, left > 0 else { return nil }
        requests -= 1
        return (min(left, longest), bytes)
    }

    /// Counts bytes that came.
    func spend(_ count: Int) { bytes -= count }
}

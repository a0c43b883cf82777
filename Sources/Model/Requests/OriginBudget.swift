// What one player request may cost its origins: requests, bytes and time.
//
// The budget belongs to the player's request and not to a transfer: every fetch that the request
// causes draws on it, whether it is for a playlist, a segment, a key, a range, a redirect, a
// revalidation or a search for a URL whose token has expired. A flight that several requests share
// draws on the budget of the request that started it; once that is used up, on the budget of a
// request that joined and may still send requests.
//
// | what | bound |
// |---|---|
// | requests to origins | 24, and one more for each 64 KiB of new bytes |
// | bytes received again | 1 MiB, and twice the number of new bytes |
// | failures in a row | `ProxySettings.retries` without a new byte |
// | seconds without a new byte | `ProxySettings.patience`; no request is sent after that |
// | seconds until the answer | `ProxySettings.answerLimit` |
//
// Waits for a slot do not count as seconds. After a wait for the return of an origin, failures and
// all seconds count from its end.
import Numbers
package import Posix
package import Store
import Synchronization
package import Upstream

/// The budget's rules as a value; events and their times are passed in.
package struct OriginAllowance: Sendable {
    /// The numbers of the table above.
    package struct Limits: Sendable {
        package var requests: Int64
        /// New bytes that allow one more request.
        var bytesPerRequest: Int64 = 64 << 10
        var repeatedBytes: Int64 = 1 << 20
        /// Bytes received again that each new byte allows.
        var repeatedPerNewByte: Int64 = 2

        package init(requests: Int64 = 24) { self.requests = requests }

        /// For fetches that no player waits for: a download may be interrupted often.
        package static let ahead = Limits(requests: 256)
    }

    private var limits: Limits
    /// Requests sent, redirects included.
    package private(set) var requests: Int64 = 0
    /// Bytes received for the first time.
    private(set) var newBytes: Int64 = 0
    /// Bytes that had been received before.
    private(set) var repeatedBytes: Int64 = 0
    /// Attempts that failed since the last new byte.
    package private(set) var failuresInARow = 0
    /// When the last new byte was received, the request began or the wait for an origin's return
    /// ended; later by the waits for a slot since then.
    package private(set) var lastProgress: Monotonic
    /// When the first request was made, which may then have waited for a slot, or the wait for an
    /// origin's return ended after it; nil before.
    private var firstAskedAt: Monotonic?
    /// The nanoseconds for which requests have waited for a slot.
    private var queuedTime: Int64 = 0
    /// The end of what was received, by resource.
    private var watermarks: [ObjectKey: Int64] = [:]
    /// What is received again for a reader that was left behind, by resource.
    private var returns: [ObjectKey: Return] = [:]

    private struct Return {
        /// Where the reader requested it.
        let start: Int64
        /// The end of what has been received since.
        var watermark: Int64
    }

    /// A request deals with a handful of resources; beyond that all bytes count as repeated.
    private static let mostResources = 64

    package init(_ limits: Limits = Limits(), now: Monotonic) {
        self.limits = limits
        lastProgress = now
    }

    /// True if another request to an origin may be sent.
    package var mayAsk: Bool {
        requests < limits.requests + newBytes / limits.bytesPerRequest && mayRepeat
    }

    /// True if the bytes received again are within the budget.
    private var mayRepeat: Bool {
        repeatedBytes <= limits.repeatedBytes + limits.repeatedPerNewByte * newBytes
    }

    /// Allows more requests, for a player request that needs several resources.
    package mutating func allow(requests: Int) { limits.requests += Int64(requests) }

    /// Draws one request from the budget; returns false and changes nothing if none is left.
    package mutating func takeRequest(now: Monotonic) -> Bool {
        guard mayAsk else { return false }
        noteRequest(now: now)
        return true
    }

    /// Counts a request that is sent regardless of the budget.
    package mutating func noteRequest(now: Monotonic) {
        requests += 1
        if firstAskedAt == nil { firstAskedAt = now }
    }

    /// Records that a request waited for a slot before it was sent: the origin could send nothing
    /// meanwhile.
    package mutating func noteQueued(since: Monotonic, now: Monotonic) {
        let time = max(.zero, now - since)
        queuedTime = queuedTime.addingSaturated(time.nanoseconds)
        // Another request of the budget may have progressed during the wait.
        lastProgress = max(lastProgress, min(lastProgress + time, now))
    }

    /// Returns the time that origins have had since the first request, or since the wait for the
    /// return of one, without waits for a slot.
    ///
    /// - Returns: nil before the first request.
    package func timeAtOrigins(now: Monotonic) -> Interval? {
        firstAskedAt.map {
            Interval(nanoseconds: (now - $0).nanoseconds.subtractingSaturated(queuedTime))
        }
    }

    /// Counts bytes of a body.
    ///
    /// - Parameters:
    ///   - bytes: the position of the bytes in the body.
    ///   - key: the resource that the body belongs to.
    ///   - now: when they were received.
    /// - Returns: false if the bytes received again exceed the budget.
    package mutating func receive(_ bytes: Range<Int64>, of key: ObjectKey, now: Monotonic) -> Bool
    {
        let known = watermarks[key]
        let isTracked = known != nil || watermarks.count < Self.mostResources
        let start = isTracked ? max(bytes.lowerBound, known ?? bytes.lowerBound) : bytes.upperBound
        var fresh = max(0, bytes.upperBound - start)
        if fresh > 0 {
            watermarks[key] = bytes.upperBound
        } else if let last = returns[key], bytes.lowerBound <= last.watermark {
            fresh = max(0, bytes.upperBound - last.watermark)
            if fresh > 0 { returns[key]?.watermark = bytes.upperBound }
        }
        if fresh > 0 {
            newBytes += fresh
            failuresInARow = 0
            lastProgress = now
        }
        repeatedBytes += Int64(bytes.count) - fresh
        return mayRepeat
    }

    /// Notes that a reader needs bytes again, from an offset on: those of a body that is not stored
    /// were freed before it got there.
    ///
    /// They count as new. Each time must be for a later offset, so that an origin that sends the
    /// same bytes again and again gets no further request by this.
    package mutating func goBack(to offset: Int64, of key: ObjectKey, now: Monotonic) {
        guard let known = watermarks[key], offset < known, offset > returns[key]?.start ?? -1 else {
            return
        }
        returns[key] = Return(start: offset, watermark: offset)
        lastProgress = max(lastProgress, now)
    }

    /// Counts a failed attempt.
    ///
    /// - Returns: the number of failures since the last new byte, this one included.
    package mutating func fail() -> Int {
        failuresInARow += 1
        return failuresInARow
    }

    /// Notes that a request waits for the return of its origin: what failed before, and the wait,
    /// say nothing of the attempts afterwards.
    package mutating func noteReturnWait(now: Monotonic) {
        failuresInARow = 0
        lastProgress = max(lastProgress, now)
        if firstAskedAt != nil { (firstAskedAt, queuedTime) = (now, 0) }
    }

    /// Takes back the last request and the bytes of a list that came too early: it is polled again
    /// as often as time allows.
    package mutating func excuse(_ key: ObjectKey) {
        failuresInARow = 0
        requests = max(0, requests - 1)
        watermarks[key] = nil
        returns[key] = nil
    }
}

/// The budget shared by the fetches of one player request.
///
/// Any thread may use it; requests that contact no origin have none.
package final class OriginBudget: Sendable {
    private let allowance: Mutex<OriginAllowance>
    private let followed = Mutex<TransferTrace?>(nil)
    /// When its player request began.
    package let begunAt: Monotonic

    package init(_ limits: OriginAllowance.Limits = OriginAllowance.Limits(), now: Monotonic) {
        begunAt = now
        allowance = Mutex(OriginAllowance(limits, now: now))
    }

    package func with<Result: Sendable>(_ body: (inout OriginAllowance) -> Result) -> Result {
        allowance.withLock { body(&$0) }
    }

    /// The costs of the latest fetch's transfers; nil before the first.
    package var trace: TransferTrace? { followed.withLock { $0 } }

    /// Sets the transfers that fetch what the request waits for.
    package func follow(_ trace: TransferTrace) { followed.withLock { $0 = trace } }

    package var lastProgress: Monotonic { allowance.withLock { $0.lastProgress } }
    package var requests: Int64 { allowance.withLock { $0.requests } }
    package var mayAsk: Bool { allowance.withLock { $0.mayAsk } }
}

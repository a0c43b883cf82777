// Counters and gauges of the upstream client.

/// Totals since the client was made, and current values.
package struct UpstreamStatistics: Sendable, Hashable {
    // Counters.

    /// Transfers that were requested.
    package var started = 0
    /// Transfers whose whole body was delivered, whatever the status.
    package var succeeded = 0
    /// Transfers that failed, cancelled and preempted ones included.
    package var failed = 0
    /// Transfers that their caller cancelled.
    package var cancelled = 0
    /// Transfers that lost their slot to playback.
    package var preempted = 0
    /// Redirects that were followed.
    package var redirects = 0
    /// Connections opened, early ones included.
    package var newConnections = 0
    /// Early connections by the index of their result in `EarlyConnectionResult.allCases`.
    package var early = Array(repeating: 0, count: EarlyConnectionResult.allCases.count)
    /// How long and how often transfers have yielded.
    package var yield = YieldCounts()
    /// Body bytes of transfers that succeeded, after decoding.
    package var bytes: Int64 = 0

    // Gauges.

    /// Slots in use.
    package var slotsInUse = 0
    /// The limit of slots.
    package var slotLimit = 0
    /// The highest number of slots ever in use.
    package var peakSlotsInUse = 0
    /// Express places in use.
    package var expressInUse = 0
    /// Requests that origins hold on purpose.
    package var heldInUse = 0
    /// Waiting transfers by `Lane.rawValue`.
    package var waiting = Array(repeating: 0, count: Lane.allCases.count)
    /// Active libcurl handles.
    package var openHandles = 0

    mutating func count(_ result: TransferResult) {
        switch result {
        case .success(let timings):
            succeeded += 1
            bytes += timings.bytes
        case .failure(let error):
            failed += 1
            if error.kind == .cancelled { cancelled += 1 }
        }
    }
}

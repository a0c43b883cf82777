// Counters and gauges of the upstream client.

/// Totals since the client was made, and current values.
package struct UpstreamStatistics: Sendable, Hashable {
    // Counters.

    /// Early connections by the index of their result in `EarlyConnectionResult.allCases`.
    package var early = Array(repeating: 0, count: EarlyConnectionResult.allCases.count)
    /// How long and how often transfers have yielded.
    package var yield = YieldCounts()

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
}

// How transfers yield, for configuration and display.

/// When transfers yield to others on the line.
package enum YieldUse: String, CaseIterable, Sendable {
    /// Never.
    case off
    /// While players use the daemon.
    case players
    /// Downloads at all times, other transfers while players use the daemon.
    case always
}

/// What transfers that yield are for.
package enum YieldPurpose: Sendable, Hashable {
    /// Nobody waits for them: they leave the line to any other traffic, down to
    /// `QueueWindow.leastRate`.
    case background
    /// Players wait for them: they keep the queue short unless others keep it long.
    case players

    /// The name in JSON.
    package var name: String { self == .background ? "background" : "players" }
}

/// The present bounds of the connections to an origin, for display.
package struct YieldState: Sendable, Hashable {
    /// What the bounded transfers are for.
    package var purpose: YieldPurpose
    /// Connections whose window is bounded.
    package var connections: Int
    /// The window of all of them together, in bytes.
    package var window: Int
    /// The delay that the queue of the line adds, in seconds.
    package var queue: Double
}

/// How often and how long transfers have yielded.
package struct YieldCounts: Sendable, Hashable {
    /// Seconds in which the windows of background transfers were bounded, added up over paths.
    package var backgroundSeconds = 0.0
    /// How often players' transfers were released from their bound because others filled the queue.
    package var releases = 0
}

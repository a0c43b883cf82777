package import Lookahead
import Synchronization

/// The last decisions of the controllers, for display and for the network memory.
///
/// Any thread may use it.
package final class ConcurrencyReport: Sendable {
    package struct Figures: Sendable {
        package var plan = ConcurrencyPlan.probe
        /// The limit of transfers ahead of players.
        package var limit = ConcurrencyPlan.start
        /// The part of the limit that downloads may use.
        package var background = ConcurrencyPlan.start
        /// The reason for the limit, for display.
        package var reason = ""
        package var inFlight = 0
        /// Bytes a second over the last seconds with full load.
        package var goodput: Int64 = 0

        package init() {}
    }

    private let figures = Mutex(Figures())

    package init() {}

    package var now: Figures { figures.withLock { $0 } }

    package func note(_ figures: Figures) { self.figures.withLock { $0 = figures } }
}

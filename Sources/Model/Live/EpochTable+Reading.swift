import Posix
import Store

/// What a reading is, besides its content.
extension EpochTable {
    /// The relation of a reading to the one before; the raw value is what `why` shows.
    package enum Relation: String, Sendable {
        case first
        /// The same bytes, or a reading received no later than the last.
        case same
        case goesOn = "goes-on"
        case doubtful
        case reset
    }

    /// When a reading was requested and when it was received.
    package struct Times: Sendable {
        let requested: Moment
        package let received: Moment

        init(requested: WallTime, received: WallTime, steady: SteadyTimes? = nil) {
            self.requested = Moment(wall: requested, steady: steady?.requested)
            self.received = Moment(wall: received, steady: steady?.received)
        }
    }
}

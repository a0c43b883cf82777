import Model
import Posix

/// How long readers have been where they are, while a flight waits for the slowest one.
struct StandingReaders {
    private struct Place {
        let position: Int64
        let since: Monotonic
    }

    private var places: [Readers.ID: Place] = [:]

    /// Notes the positions of all readers.
    ///
    /// - Returns: those where no reader has made progress for as long as a flight waits; a reader
    ///   that came to such a place later is given its own time.
    mutating func stuck(at positions: [Readers.ID: Int64], now: Monotonic) -> Set<Int64> {
        let known = places
        places = [:]
        var stuck = Set(positions.values)
        for (id, position) in positions {
            var since = now
            if let place = known[id], place.position == position { since = place.since }
            places[id] = Place(position: position, since: since)
            if now - since < UnstoredBody.readerPatience { stuck.remove(position) }
        }
        return stuck
    }
}

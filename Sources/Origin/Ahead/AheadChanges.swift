// The ahead fetches that must be looked at when a round ends: looking at each of thousands whenever
// one ends would cost the loop most of its time.
import Upstream

/// The ahead fetches and flights that changed since the last look, and the lanes held back then.
struct AheadChanges<Fetch: AnyObject, Flight: AnyObject> {
    private var held: [Lane] = []
    private var flights: [ObjectIdentifier: Flight] = [:]
    private var waiting: [ObjectIdentifier: Fetch] = [:]

    /// Notes a flight that got another transfer, or another set of fetches.
    mutating func note(_ flight: Flight) { flights[ObjectIdentifier(flight)] = flight }

    /// Notes a fetch that began to wait for players, or that waits under other terms.
    mutating func note(waiting fetch: Fetch) { waiting[ObjectIdentifier(fetch)] = fetch }

    /// Returns the fetches to look at, each once, and forgets what was noted.
    ///
    /// - Parameters:
    ///   - held: the lanes that are held back now.
    ///   - all: returns all fetches; asked only if other lanes were held back before.
    ///   - sharing: returns all fetches of a flight.
    /// - Returns: the fetches, in no order.
    mutating func take(
        held: [Lane], all: () -> [Fetch], sharing: (Flight) -> [Fetch]
    ) -> [Fetch] {
        let isOther = held != self.held
        var changed = waiting
        if !isOther {
            for flight in flights.values {
                for fetch in sharing(flight) { changed[ObjectIdentifier(fetch)] = fetch }
            }
        }
        self.held = held
        flights = [:]
        waiting = [:]
        return isOther ? all() : Array(changed.values)
    }
}

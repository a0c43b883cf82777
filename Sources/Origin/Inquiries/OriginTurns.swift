// How requests to an origin that refuses connections wait for the one that is under way.
import Posix
import URISyntax

/// The flight to each origin that was last seen waiting for a response.
///
/// After an outage thousands of flights may wait for one. Each asks whether there is one more often
/// than flights begin and end, so that a walk through all of them would hold the upstream loop.
struct AskingFlights<Asker: AnyObject> {
    private struct Sighting {
        weak var asker: Asker?
    }

    private var seen: [Origin: Sighting] = [:]
    /// As many as there are origins that do not answer.
    private static var mostOrigins: Int { 256 }

    /// Returns a flight that waits for a response of an origin; nil if there is none.
    ///
    /// Walks through all flights only if the one that was returned last has stopped waiting.
    mutating func find(
        of origin: Origin, among all: some Sequence<Asker>, where isAsking: (Asker) -> Bool
    ) -> Asker? {
        if let known = seen[origin]?.asker, isAsking(known) { return known }
        guard let found = all.first(where: isAsking) else {
            seen[origin] = nil
            return nil
        }
        if seen.count >= Self.mostOrigins { seen = [:] }
        seen[origin] = Sighting(asker: found)
        return found
    }
}

/// The pauses of those that wait while another request is under way.
enum OriginTurns {
    static let shortestPause = Interval.milliseconds(20)
    static let longestPause = Interval.milliseconds(500)

    /// Returns the time until the next look at a request that another flight has sent.
    ///
    /// A quarter of the time that it has taken so far at most: those that wait lose little by a
    /// late look, and together cost the loop little.
    ///
    /// - Parameters:
    ///   - time: for how long the request has been under way.
    ///   - jitter: the random part, from 0 to 1, so that not all look in the same round.
    /// - Returns: the pause.
    static func pause(whileAskedFor time: Interval, jitter: Double) -> Interval {
        let longest = min(time.inSeconds / 4, longestPause.inSeconds)
        return max(shortestPause, Interval(seconds: longest * (1 - jitter / 2)))
    }
}

import Numbers
import Posix

/// The pause after a search for victims that found none.
///
/// Such a search looks at every object: with millions of pinned ones, for a third of a second.
/// Without a pause, each new object that is refused would cause another, and the store thread would
/// do nothing else.
struct SearchPause {
    private var end = Monotonic(nanoseconds: .min)
    /// A pause is this many times as long as the search.
    private static let share: Int64 = 20
    /// Shorter searches are repeated without a pause.
    private static let least = Interval.milliseconds(1)
    /// A search may have been interrupted for long, for example by a sleep of the machine.
    private static let longest = Interval.seconds(10 as Int64)

    /// Returns the pause after work that took some time.
    static func pause(after duration: Interval, atMost most: Interval) -> Interval {
        let pause = duration.nanoseconds.multipliedSaturated(by: share)
        return min(Interval(nanoseconds: pause), most)
    }

    mutating func noteFruitless(from began: Monotonic, to now: Monotonic) {
        guard now - began >= Self.least else { return }
        end = now + Self.pause(after: now - began, atMost: Self.longest)
    }

    /// Ends the pause, after a change that may allow evictions.
    mutating func cut() { end = Monotonic(nanoseconds: .min) }

    /// Returns how long the pause lasts from now on; nil if it is over.
    func left(at now: Monotonic) -> Interval? { now < end ? end - now : nil }
}

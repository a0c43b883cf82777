import Numbers
import Posix

/// The pause after a search for victims that found none.
///
/// Such a search looks at every object: with millions of pinned ones, for a third of a second.
/// Without a pause, each new object that is refused would cause another, and the store thread would
/// do nothing else. The objects are counted, since the time of a search is also that of other
/// threads on a busy machine.
struct SearchPause {
    private var end = Monotonic(nanoseconds: .min)
    /// A pause is this many times as long as the work.
    private static let share: Int64 = 20
    /// The pause for each object examined, which takes about 150 ns.
    private static let perObject = Interval(nanoseconds: 150 * share)
    /// Searches of fewer objects are repeated without a pause.
    private static let least = 10_000
    private static let longest = Interval.seconds(10 as Int64)

    /// Returns the pause after work that took some time.
    static func pause(after duration: Interval, atMost most: Interval) -> Interval {
        let pause = duration.nanoseconds.multipliedSaturated(by: share)
        return min(Interval(nanoseconds: pause), most)
    }

    /// Begins a pause after a search that examined so many objects in vain.
    mutating func noteFruitless(examined: Int, at now: Monotonic) {
        guard examined >= Self.least else { return }
        let pause = Int64(examined).multipliedSaturated(by: Self.perObject.nanoseconds)
        end = now + min(Interval(nanoseconds: pause), Self.longest)
    }

    /// Ends the pause, after a change that may allow evictions.
    mutating func cut() { end = Monotonic(nanoseconds: .min) }

    /// Returns how long the pause lasts from now on; nil if it is over.
    func left(at now: Monotonic) -> Interval? { now < end ? end - now : nil }
}

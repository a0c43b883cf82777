/// An epoch of a name: which of the resources that a name has stood for is meant.
///
/// Origins of live streams reuse the names of segments after a restart of the stream; what is stored
/// under a name from before must not be served then. Links and cache keys hold the epoch, so that both
/// resources can be kept beside each other.
package struct Epoch: Hashable, Sendable, Comparable {
    /// Seconds since 1970 at which the name was seen to stand for something new; 0 for the first.
    package let number: UInt32

    package init(number: UInt32) { self.number = number }

    package static let first = Epoch(number: 0)

    /// The epoch that begins at a time, and is never the one before it, nor the first.
    ///
    /// - Parameters:
    ///   - seconds: since 1970; times outside 32 bits are brought to their nearest.
    ///   - former: the epoch before.
    /// - Returns: the new one.
    package static func beginning(at seconds: Int64, after former: Epoch) -> Epoch {
        let now = UInt32(clamping: seconds)
        if former.number < now { return Epoch(number: now) }
        // Behind the last number comes the one after the first epoch, whose names mean another thing.
        return Epoch(number: former.number == .max ? 1 : former.number + 1)
    }

    /// The number, most significant byte first, as handles hold it.
    package var bytes: [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> UInt32($0)) }
    }

    package static func < (a: Epoch, b: Epoch) -> Bool { a.number < b.number }
}

/// The epoch of a name: distinguishes the resources that have had the same name over time.
///
/// Origins of live streams reuse segment names after a restart of the stream; then the resource
/// stored under that name before the restart must not be served. Links and cache keys include the
/// epoch, so that both resources can be stored side by side.
package struct Epoch: Hashable, Sendable, Comparable {
    /// The time in seconds since 1970 at which the name was found to identify a new resource; 0 for
    /// the first epoch.
    package let number: UInt32

    package init(number: UInt32) { self.number = number }

    package static let first = Epoch(number: 0)

    /// Returns the epoch that begins at a time; it differs from the one before it and from the
    /// first.
    ///
    /// - Parameters:
    ///   - seconds: since 1970; clamped to 32 bits.
    ///   - former: the epoch before.
    /// - Returns: the new epoch.
    package static func beginning(at seconds: Int64, after former: Epoch) -> Epoch {
        let now = UInt32(clamping: seconds)
        if former.number < now { return Epoch(number: now) }
        // Wraps around to 1, since 0 is the first epoch.
        return Epoch(number: former.number == .max ? 1 : former.number + 1)
    }

    /// The number, most significant byte first, as handles hold it.
    package var bytes: [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> UInt32($0)) }
    }

    package static func < (a: Epoch, b: Epoch) -> Bool { a.number < b.number }
}

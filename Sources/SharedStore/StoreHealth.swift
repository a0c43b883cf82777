package import Posix

/// Whether the store is asked: left out after failures, and asked again when a probe succeeded.
package struct StoreHealth: Sendable, Equatable {
    /// The state, for reports.
    package enum State: String, Sendable {
        case up, out
    }

    /// So many failures in a row leave it out.
    package static let mostFailures = 3
    /// So many races in a row that it lost against the origin leave it out: it costs each of them a
    /// head start.
    package static let mostLosses = 8
    /// The time before the first probe; each one that fails doubles it.
    package static let firstPause = Interval.seconds(1 as Int64)
    package static let longestPause = Interval.seconds(30 as Int64)
    /// A probe that takes longer has failed: players would wait as long.
    package static let probeLimit = Interval.milliseconds(500)

    package private(set) var state = State.up
    private var failures = 0
    private var losses = 0
    private var slowReads = 0
    private var pause = StoreHealth.firstPause

    package init() {}

    /// Notes an answer in time: what was asked for, or that it is not there.
    package mutating func answered() {
        failures = 0
        losses = 0
    }

    /// Notes that an object was written, which does not tell how soon one can be read: races that
    /// were lost still count.
    package mutating func wrote() { failures = 0 }

    /// Notes a failure: no answer, a refusal, wrong bytes.
    ///
    /// - Returns: the time until the first probe if this one leaves the store out; otherwise nil.
    package mutating func failed() -> Interval? {
        failures += 1
        return failures >= Self.mostFailures ? leaveOut() : nil
    }

    /// Notes that the origin, asked after the head start, answered first.
    ///
    /// - Returns: as `failed`.
    package mutating func lost() -> Interval? {
        losses += 1
        return losses >= Self.mostLosses ? leaveOut() : nil
    }

    /// Notes a read that began in time and then was so slow that the origin sends the rest.
    ///
    /// - Returns: as `failed`.
    package mutating func slowed() -> Interval? {
        slowReads += 1
        return slowReads >= Self.mostFailures ? leaveOut() : nil
    }

    /// Notes a read that brought all of its bytes; a short one does not tell how fast the store is.
    package mutating func completed(_ bytes: Int64) {
        if bytes >= ReadPace.leastBytes { slowReads = 0 }
    }

    /// Notes that the store does not have the bucket: reads alone would take that for misses.
    ///
    /// - Returns: as `failed`.
    package mutating func missedBucket() -> Interval? { leaveOut() }

    private mutating func leaveOut() -> Interval? {
        guard state == .up else { return nil }
        state = .out
        pause = Self.firstPause
        return pause
    }

    /// Notes the end of a probe.
    ///
    /// - Returns: the time until the next one; nil if the store is asked again.
    package mutating func probed(_ succeeded: Bool) -> Interval? {
        guard state == .out else { return nil }
        guard succeeded else {
            pause = min(Self.longestPause, Interval(nanoseconds: pause.nanoseconds * 2))
            return pause
        }
        state = .up
        failures = 0
        losses = 0
        slowReads = 0
        return nil
    }
}

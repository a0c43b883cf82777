/// The lowest or the highest of the values of some minutes.
///
/// Values are kept by minute, so that its size does not depend on how many there are.
struct RecentExtreme: Sendable {
    enum Kind: Sendable { case lowest, highest }

    private let kind: Kind
    private let most: Int
    private var minutes: [(minute: Int, value: Double)] = []

    init(_ kind: Kind, minutes: Int) {
        self.kind = kind
        most = minutes
    }

    /// Nil before the first value.
    var value: Double? {
        extreme(of: minutes)
    }

    /// Returns the extreme without the values that are too old; nil without one.
    func value(at now: Double) -> Double? {
        let minute = Int(now / 60)
        return extreme(of: minutes.filter { minute - $0.minute < most })
    }

    private func extreme(of minutes: [(minute: Int, value: Double)]) -> Double? {
        let values = minutes.lazy.map(\.value)
        return kind == .lowest ? values.min() : values.max()
    }

    /// Takes a value at a time in seconds of a monotonic clock.
    mutating func note(_ value: Double, at now: Double) {
        let minute = Int(now / 60)
        if let last = minutes.last, last.minute == minute {
            let extreme = kind == .lowest ? min(last.value, value) : max(last.value, value)
            minutes[minutes.count - 1].value = extreme
        } else {
            minutes = (minutes + [(minute, value)]).suffix(most)
        }
        minutes.removeAll { minute - $0.minute >= most }
    }
}

/// The lowest delay of a path over the last ten minutes (RFC 6817 section 2.4.2).
///
/// It begins with the delay of a handshake. That is one sample, and may have met little of the
/// jitter: a full line is never as quick, and each later round trip would look like a queue.
struct LowestDelay: Sendable {
    private static let minutes = 10
    /// What makes the difference between a handshake and the means of later round trips jitter.
    ///
    /// No more than the share of the target is as good as none. More than the most, in seconds, is
    /// the queue of others: without the handshake, one that comes late would take it for the line.
    private static let jitter = (share: 0.5, most: 0.02)

    private var means = RecentExtreme(.lowest, minutes: LowestDelay.minutes)
    private var handshake: (delay: Double, notedAt: Double)?

    /// In seconds; nil before the first sample.
    var value: Double? {
        guard let mean = means.value else { return handshake?.delay }
        return min(mean, handshake?.delay ?? mean)
    }

    /// Takes the delay of a handshake, in seconds; now is in seconds of a monotonic clock.
    mutating func note(handshake delay: Double, at now: Double) { handshake = (delay, now) }

    /// Takes the mean of some round trips, in seconds; now is in seconds of a monotonic clock.
    mutating func note(_ delay: Double, at now: Double) {
        means.note(delay, at: now)
        if let known = handshake, now - known.notedAt >= 60 * Double(Self.minutes) {
            handshake = nil
        }
    }

    /// Forgets the handshake if it met less jitter than the round trips since; called when a window
    /// has been drained, so that these hold no queue of its own.
    ///
    /// - Parameter target: the queue that the window aims at, in seconds.
    mutating func noteDrained(target: Double) {
        guard let known = handshake, let mean = means.value else { return }
        let excess = mean - known.delay
        if excess > Self.jitter.share * target, excess <= Self.jitter.most { handshake = nil }
    }
}

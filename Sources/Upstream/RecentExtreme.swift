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
struct LowestDelay: Sendable {
    private var lowest = RecentExtreme(.lowest, minutes: 10)

    /// In seconds; nil before the first sample.
    var value: Double? { lowest.value }

    mutating func note(_ delay: Double, at now: Double) { lowest.note(delay, at: now) }
}

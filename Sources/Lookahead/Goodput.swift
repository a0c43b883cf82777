// How fast bytes arrive, from samples of any length.

/// A mean of a rate in which old samples fade.
///
/// A sample weighs by the time that it covers, so that many short transfers say as much as one long
/// one. Pure: the caller tells the times.
package struct Goodput: Sendable, Equatable {
    /// After so many seconds of samples an older one weighs half.
    package let halfLife: Double
    private var weightedBytes = 0.0
    private var weightedSeconds = 0.0

    /// `halfLife` in seconds of transfer, above 0.
    package init(halfLife: Double = 4) {
        self.halfLife = max(halfLife, 0.001)
    }

    /// Takes note of `bytes` that arrived within `seconds`; what took no time or less is ignored.
    package mutating func add(bytes: Int64, seconds: Double) {
        guard seconds > 0, bytes >= 0 else { return }
        let fading = halved(seconds / halfLife)
        weightedBytes = weightedBytes * fading + Double(bytes)
        weightedSeconds = weightedSeconds * fading + seconds
    }

    /// Bytes per second; nil before the first sample.
    package var bytesPerSecond: Double? {
        weightedSeconds > 0 ? weightedBytes / weightedSeconds : nil
    }

    /// 1 halved `count` times, by the secant between whole counts: exact enough for a weight, and
    /// it needs no library of mathematics.
    private func halved(_ count: Double) -> Double {
        guard count < 60 else { return 0 }
        var value = 1.0
        for _ in 0..<Int(count) { value /= 2 }
        return value * (1 - (count - count.rounded(.down)) / 2)
    }
}

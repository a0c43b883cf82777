// The rate at which bytes arrive, from samples of any length.

/// A mean rate in which old samples decay.
///
/// A sample is weighted by its duration, so that many short transfers count as much as one long
/// one. Pure: the caller measures times.
package struct Goodput: Sendable, Equatable {
    /// The seconds of samples after which an older sample's weight has halved.
    package let halfLife: Double
    private var weightedBytes = 0.0
    private var weightedSeconds = 0.0

    /// Creates a mean; `halfLife` is in seconds of transfer, above 0.
    package init(halfLife: Double = 4) {
        self.halfLife = max(halfLife, 0.001)
    }

    /// Adds a sample of `bytes` that arrived within `seconds`; ignores it unless `seconds` is
    /// positive.
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

    /// Returns 1 halved `count` times, interpolated linearly between whole counts: exact enough for
    /// a weight, and needs no math library.
    private func halved(_ count: Double) -> Double {
        guard count < 60 else { return 0 }
        var value = 1.0
        for _ in 0..<Int(count) { value /= 2 }
        return value * (1 - (count - count.rounded(.down)) / 2)
    }
}

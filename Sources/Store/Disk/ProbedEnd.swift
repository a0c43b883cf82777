package import Posix

/// Where an origin has said that a growing body ends for now.
///
/// Each range beyond it would cost a request as often as a player asks for it: it is refused until
/// the list of the body has moved on, or a second has passed.
package struct ProbedEnd: Sendable, Equatable {
    /// The origin had no byte at this offset, nor after it.
    private let offset: Int64
    /// The end of the last range that the list named then.
    private let listedEnd: Int64
    private let time: Monotonic

    private static let lifetime = Interval.seconds(1 as Int64)

    /// Notes the origin's answer to a request for a range.
    ///
    /// - Parameters:
    ///   - first: the first byte of the range.
    ///   - total: the length that the answer states; nil if it states none.
    ///   - listedEnd: the end of the last range that the list names.
    ///   - time: the time of the answer.
    package init(refusing first: Int64, total: Int64?, listedEnd: Int64, at time: Monotonic) {
        offset = min(first, total ?? first)
        self.listedEnd = listedEnd
        self.time = time
    }

    /// True if a range is refused without a request.
    ///
    /// - Parameters:
    ///   - first: the first byte of the range.
    ///   - end: the end of the stored bytes.
    ///   - listedEnd: the end of the last range that the list names now.
    ///   - now: the time.
    /// - Returns: false if the origin may have it.
    package func refuses(
        _ first: Int64, storedEnd end: Int64, listedEnd: Int64, now: Monotonic
    ) -> Bool {
        first >= offset && end <= offset && listedEnd == self.listedEnd
            && now - time < Self.lifetime
    }
}

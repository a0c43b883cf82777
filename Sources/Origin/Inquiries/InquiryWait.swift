// How long a caller waits for inquiries of some origins, or of parents.
import Posix

/// The wait of one caller for some inquiries.
///
/// A single refusal does not count, so an inquiry that is refused asks once more. While any other
/// inquiry has heard nothing, the caller waits as long as for that one; afterwards only until the
/// refusals must have been confirmed.
struct InquiryWait {
    /// True if one answer is enough.
    private let needsOne: Bool
    /// How many inquiries have not ended.
    private var missing: Int
    /// How many of those were refused once.
    private var refused = 0
    private var hasAnswer = false
    /// When the wait ends while one of them has heard nothing.
    private let silentUntil: Monotonic
    /// When the last of the refusals must have been confirmed.
    private var confirmedBy = Monotonic(nanoseconds: .min)

    init(for count: Int, until end: Monotonic, needsOne: Bool) {
        missing = count
        silentUntil = end
        self.needsOne = needsOne
    }

    /// Notes that one of them was refused for the first time.
    mutating func wasRefused(confirmedBy time: Monotonic) {
        refused += 1
        confirmation(by: time)
    }

    /// Notes that the confirmation of a refusal may take longer than expected.
    mutating func confirmation(by time: Monotonic) { confirmedBy = max(confirmedBy, time) }

    /// Notes the end of one of them.
    ///
    /// - Parameters:
    ///   - wasRefused: true if that was noted before.
    ///   - isAnswer: true if its origin answered.
    mutating func ended(wasRefused: Bool, isAnswer: Bool) {
        missing -= 1
        if wasRefused { refused -= 1 }
        if isAnswer { hasAnswer = true }
    }

    /// True once nothing has to be waited for.
    var isOver: Bool { missing <= 0 || (needsOne && hasAnswer) }

    /// When the wait ends at the latest.
    var end: Monotonic { refused >= missing ? confirmedBy : max(silentUntil, confirmedBy) }
}

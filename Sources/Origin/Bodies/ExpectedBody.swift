// What is known of a body before its bytes arrive, and how they relate to stored ones.
//
// The bytes that fill a hole may be of another version than those after it. Therefore the request
// for a hole extends a little beyond it, the last byte of the hole is held back, what follows it is
// compared with the stored bytes, and only then do readers pass.
import Posix

/// The extent of a body according to its response head, which each piece is checked against.
struct ExpectedBody {
    /// The end of the bytes to write according to the response; later bytes are not written.
    var end: Int64?
    /// The end of the response's bytes, as far as it states it.
    var receivedEnd: Int64?
    var ahead = StoredAhead.unchecked
    /// True until the first bytes of a response are written, which readers wait for.
    var isAwaited = false

    /// How stored bytes that the transfer reaches are treated.
    enum StoredAhead: Equatable {
        /// Nothing has to be compared.
        case unchecked
        /// Stored bytes are compared before the transfer continues over them.
        case checked
        /// The bytes around the end of a hole are being compared.
        case meeting(Meeting)
    }

    /// The bytes around the end of a hole while they are compared.
    struct Meeting: Equatable {
        /// Where the stored bytes begin.
        let start: Int64
        /// How many of them are compared.
        let count: Int
        /// The last byte of the hole and those after it, as far as received.
        var held: [UInt8] = []

        /// How many bytes are still to be held back.
        var lacking: Int { 1 + count - held.count }
    }

    /// What is done with the next bytes of a body whose stored bytes are compared.
    enum Step: Equatable {
        /// This many bytes belong to the body.
        case take(Int)
        /// This many bytes are held back.
        case hold(Int)
        /// They were requested only for comparison, which is done.
        case skip
        /// The transfer has sent what it was to send.
        case end
    }

    /// Returns how many of the next bytes lie before the end that the response has stated.
    func proven(of count: Int, at position: Int64) -> Int {
        guard let end else { return count }
        return Int(max(0, min(Int64(count), end - position)))
    }

    /// Decides on the next bytes.
    ///
    /// - Parameters:
    ///   - count: the number of bytes that have arrived, not 0.
    ///   - position: the offset of the first one.
    ///   - stored: the first stored bytes at the position or after it.
    ///   - total: the length of the body, if known.
    /// - Returns: the step to take before this is called again with the bytes that are left.
    mutating func next(
        _ count: Int, at position: Int64, stored: @autoclosure () -> Range<Int64>?, total: Int64?
    ) -> Step {
        if case .meeting(let meeting) = ahead { return .hold(min(count, meeting.lacking)) }
        if let end, position >= end {
            return receivedEnd.map { position + Int64(count) <= $0 } == true ? .skip : .end
        }
        guard let next = stored(), next.lowerBound <= position + Int64(count) else {
            return .take(count)
        }
        // Compared already; written over the stored ones.
        guard next.lowerBound > position else { return .take(min(count, next.count)) }
        let safe = Int(next.lowerBound - 1 - position)
        guard safe == 0 else { return .take(safe) }
        let known = (receivedEnd ?? total ?? .max) - next.lowerBound
        let compared = min(StoredBody.mostCompared, Int64(next.count), known)
        // The last byte of the hole is left to another request, which extends beyond it.
        guard compared > 0 else { return .end }
        let meeting = Meeting(start: next.lowerBound, count: Int(compared))
        ahead = .meeting(meeting)
        return .hold(min(count, meeting.lacking))
    }

    /// Holds bytes back, as `next` has said.
    ///
    /// - Returns: what is to be compared, once all of it is there.
    mutating func hold(_ bytes: UnsafeRawBufferPointer) -> Meeting? {
        guard case .meeting(var meeting) = ahead else { return nil }
        // Gives up its copy, so that the bytes are appended in place.
        ahead = .checked
        meeting.held += bytes
        guard meeting.lacking == 0 else {
            ahead = .meeting(meeting)
            return nil
        }
        return meeting
    }

    /// Returns how many of the held bytes belong to the body once they were found to be the same.
    func taken(of meeting: Meeting) -> Int {
        Int(min(Int64(meeting.held.count), max(1, (end ?? .max) - meeting.start + 1)))
    }
}

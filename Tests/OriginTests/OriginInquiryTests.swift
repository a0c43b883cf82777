import Model
@testable import Origin
import Posix
import Testing

/// How long an inquiry waits for an origin.
@Suite struct OriginInquiryTests {
    @Test func `only an origin that is up and answered lately is trusted after a short wait`() {
        let lately = Interval.seconds(3)
        #expect(OriginInquiries.isThere(.up, sinceAnswer: lately))
        #expect(!OriginInquiries.isThere(.up, sinceAnswer: Interval.seconds(11)))
        #expect(!OriginInquiries.isThere(.up, sinceAnswer: nil))
        // It has failed since: a far origin's next refusal needs more time than that.
        #expect(!OriginInquiries.isThere(.suspected, sinceAnswer: lately))
    }

    @Test func `all origins have to be there for a short wait, but only one of several parents`() {
        func waits(for count: Int, there: Int, needsOne: Bool) -> Bool {
            OriginInquiries.waitsShortly(for: count, there: there, needsOne: needsOne)
        }
        #expect(waits(for: 2, there: 2, needsOne: false))
        #expect(!waits(for: 2, there: 1, needsOne: false))
        #expect(waits(for: 2, there: 1, needsOne: true))
        #expect(!waits(for: 2, there: 0, needsOne: true))
    }

    /// What a wait is told.
    enum Event {
        /// An inquiry is refused; the time until which that must have been confirmed.
        case refused(Int64)
        /// The second request begins late.
        case late(Int64)
        /// A refused inquiry ends, with an answer or without.
        case confirmed(isAnswer: Bool)
        /// One that was not refused ends.
        case ended(isAnswer: Bool)
    }

    /// Returns when a wait ends, in milliseconds, after each event; nil where it is over.
    private func ends(_ wait: InquiryWait, _ events: [Event]) -> [Int64?] {
        var wait = wait
        return events.map { event in
            switch event {
            case .refused(let time): wait.wasRefused(confirmedBy: at(time))
            case .late(let time): wait.confirmation(by: at(time))
            case .confirmed(let isAnswer): wait.ended(wasRefused: true, isAnswer: isAnswer)
            case .ended(let isAnswer): wait.ended(wasRefused: false, isAnswer: isAnswer)
            }
            return wait.isOver ? nil : wait.end.nanoseconds / 1_000_000
        }
    }

    private func at(_ milliseconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + .milliseconds(milliseconds)
    }

    @Test(
        arguments: [
            // A refusal cuts no wait for another origin, of which nothing is known.
            ([.refused(500)], [5_200]),
            ([.refused(500), .confirmed(isAnswer: false)], [5_200, 5_200]),
            // Only confirmations are missing, from a refusal on or once the others have ended.
            ([.refused(500), .refused(510)], [5_200, 510]),
            ([.refused(500), .refused(510), .confirmed(isAnswer: false)], [5_200, 510, 510]),
            ([.refused(500), .confirmed(isAnswer: false), .refused(900)], [5_200, 5_200, 900]),
            ([.refused(500), .ended(isAnswer: false)], [5_200, 500]),
            ([.refused(500), .refused(510), .late(540)], [5_200, 510, 540]),
            ([.ended(isAnswer: false), .ended(isAnswer: false)], [5_200, nil]),
        ] as [([Event], [Int64?])])
    func `once only refused ones are left, a caller waits for their confirmation`(
        _ events: [Event], _ expected: [Int64?]
    ) {
        for needsOne in [false, true] {
            let wait = InquiryWait(for: 2, until: at(5_200), needsOne: needsOne)
            #expect(wait.end == at(5_200) && !wait.isOver)
            #expect(ends(wait, events) == expected)
        }
    }

    @Test func `one answer ends a wait for parents, but not a wait for all origins`() {
        let events: [Event] = [.refused(500), .ended(isAnswer: true), .confirmed(isAnswer: true)]
        let all = InquiryWait(for: 2, until: at(5_200), needsOne: false)
        #expect(ends(all, events) == [5_200, 500, nil])
        let one = InquiryWait(for: 2, until: at(5_200), needsOne: true)
        #expect(ends(one, events) == [5_200, nil, nil])
    }

    @Test func `a confirmation takes longer than the short wait`() {
        let wait = InquiryWait(for: 2, until: at(50), needsOne: false)
        #expect(ends(wait, [.refused(500)]) == [500])
    }
}

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

    @Test func `a refusal cuts no wait for another origin`() {
        func wait(left: Int64, isLast: Bool) -> Interval {
            OriginInquiries.wait(
                forConfirmation: .milliseconds(500), left: .milliseconds(left), isLast: isLast)
        }
        #expect(wait(left: 5_200, isLast: false) == .milliseconds(5_200))
        // The other one has answered lately, but the confirmation takes longer.
        #expect(wait(left: 50, isLast: false) == .milliseconds(500))
        #expect(wait(left: -5, isLast: false) == .milliseconds(500))
        #expect(wait(left: 5_200, isLast: true) == .milliseconds(500))
    }
}

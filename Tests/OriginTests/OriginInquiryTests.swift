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
}

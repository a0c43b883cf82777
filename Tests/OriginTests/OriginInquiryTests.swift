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
}

@testable import Serving
import Testing

@Suite struct FirstUseTests {
    @Test func `what is looked for at the start is what tables go by`() {
        // A type that stands there for nothing ends the process.
        FirstUse.lookForConformances()
        FirstUse.lookForDigest()
    }
}

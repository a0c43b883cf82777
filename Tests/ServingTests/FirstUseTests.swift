@testable import Serving
import Testing

@Suite struct FirstUseTests {
    @Test func `conformances that are resolved at start are those that tables use`() {
        // A wrong type would end the process.
        FirstUse.lookForConformances()
    }
}

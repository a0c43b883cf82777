import HTTP
import Model
import Origin
import Testing

/// Why a fill ended, in words for the log.
@Suite struct FillEndTests {
    @Test func `the description of an end is its reason`() {
        let failure = ProxyFailure(.origin, .badGateway, "http://h/a: cut off")
        for end in [FillEnd.refused(failure), FillEnd.spent(failure)] {
            #expect("\(end)" == "http://h/a: cut off")
        }
        for end in [FillEnd.streamEnded, FillEnd.representationChanged] {
            #expect("\(end)".contains(" "))
        }
    }
}

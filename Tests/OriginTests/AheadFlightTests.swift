import Testing

@testable import Origin

/// Flights that several ahead fetches share.
@Suite struct AheadFlightTests {
    private final class Flight {}

    @Test(arguments: [[true, false], [false, true], [true, false, true]])
    func `a flight goes on if one of its fetches does not wait, in whatever order`(
        _ waits: [Bool]
    ) {
        let (shared, other) = (Flight(), Flight())
        var flights = AheadFlightsGoingOn()
        for isWaiting in waits { flights.note(ObjectIdentifier(shared), waits: isWaiting) }
        flights.note(ObjectIdentifier(other), waits: true)
        #expect(flights.contains(ObjectIdentifier(shared)))
        #expect(!flights.contains(ObjectIdentifier(other)))
    }
}

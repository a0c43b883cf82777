import HTTP
@testable import Origin
import Testing

/// Which answers of an origin wait for the second level.
@Suite struct FlightSharingTests {
    @Test(arguments: [400, 401, 403, 404, 408, 410, 425, 429, 451, 500, 503, 599] as [UInt16])
    func `an error waits, since the second level may have what is wanted`(_ status: UInt16) {
        #expect(FlightSharing.mayBeSpared(HTTPStatus(rawValue: status)))
    }

    @Test(arguments: [200, 204, 206, 304, 416] as [UInt16])
    func `an answer that is of use wins`(_ status: UInt16) {
        #expect(!FlightSharing.mayBeSpared(HTTPStatus(rawValue: status)))
    }
}

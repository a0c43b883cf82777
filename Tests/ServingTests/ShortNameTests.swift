import HTTP
@testable import Model
import Routing
@testable import Serving
import Store
import Testing

/// Links that name a long URL in the index.
@Suite struct ShortNameTests {
    /// The status of a request for the URL of a handle; nil if it is known.
    private func status(_ handle: Handle, _ links: Links) -> HTTPStatus? {
        do throws(ProxyFailure) {
            _ = try links.namedURL(of: handle)
            return nil
        } catch {
            return error.status
        }
    }

    @Test func `a short name gets 503 while the index cannot be read and 410 if it has none`()
        throws
    {
        let stage = try LinksStage(OwnAddresses(hostNames: []))
        let name = [UInt8](repeating: 1, count: 16)
        let handle = Handle(session: SessionID(7), target: .name(name))
        #expect(status(handle, stage.links) == .gone)
        // Its index cannot be read any more.
        stage.store.close()
        #expect(status(handle, stage.links) == .serviceUnavailable)
    }
}

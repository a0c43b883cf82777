import FixtureCDN
import ScenarioSupport
import Testing

/// Links before the sample CDN.
@Suite(.serialized) struct ShapingTests {
    /// The seconds that a body takes over a link.
    private func seconds(_ shape: LinkShape, bytes: Int) throws -> Double {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        cdn.shape(shape)
        let start = ContinuousClock.now
        let response = try ScriptedPlayer(cdn.baseURL).get(cdn.url("/bytes/a/\(bytes)"))
        #expect(response.body.count == bytes)
        return (ContinuousClock.now - start) / .seconds(1)
    }

    @Test func `a connection gets no more than its rate`() throws {
        let shape = LinkShape(shared: 10_000_000, single: 1_000_000)
        #expect(try seconds(shape, bytes: 300_000) > 0.25)
    }

    @Test func `a first response is delayed by handshake and request`() throws {
        let shape = LinkShape(connectDelay: 60, responseDelay: 60)
        #expect(try seconds(shape, bytes: 10) > 0.115)
    }

    @Test(arguments: ["3g", "4g", "wifi", "fibre", "burst"])
    func `profiles are found by name`(name: String) {
        #expect(LinkShape.profile(name) != nil)
        #expect(LinkShape.profile(name + "x") == nil)
    }
}

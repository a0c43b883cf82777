import Testing
import URISyntax
import Upstream

/// The origins that may be fetched from, where the operator names them.
@Suite struct OnlyOriginsTests {
    private static let named = "127.0.0.1"

    private func harness() throws -> Harness {
        try Harness {
            $0.onlyOrigins = OnlyOriginsInForce(OnlyOrigins { $0.host == Self.named })
        }
    }

    @Test func `every origin is permitted without a limit`() throws {
        let origin = try AbsoluteURL("http://other.example/").origin
        #expect(OnlyOrigins().refusal(of: origin) == nil)
        let refusal = OnlyOrigins { $0.host == Self.named }.refusal(of: origin)
        #expect(refusal?.kind == .originNotNamed(isRedirect: false))
        #expect(refusal?.message.contains("other.example") == true)
        #expect(refusal?.message.contains("--only-origin") == true)
        #expect(refusal?.fault == .policy && refusal?.isRetryable == false)
    }

    @Test func `a request to another origin is rejected before a connection`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: [1]); return .keep
        }
        let harness = try harness()
        let record = try harness.fetch(origin.url("/", host: "localhost"))
        #expect(record.failure?.kind == .originNotNamed(isRedirect: false))
        #expect(origin.connections == 0)
        #expect(try harness.fetch(origin.url("/")).body == [1])
        harness.stop()
        origin.stop()
    }

    @Test func `a redirect to another origin is rejected before a connection`() throws {
        let inner = try TestOrigin {
            $0.respond(); return .keep
        }
        let location = inner.url("/", host: "localhost")
        let origin = try TestOrigin {
            $0.respond(302, ["Location: \(location)"]); return .keep
        }
        let harness = try harness()
        let record = try harness.fetch(origin.url("/start"))
        #expect(record.failure?.kind == .originNotNamed(isRedirect: true))
        #expect(record.failure?.message.contains("localhost") == true)
        #expect(inner.connections == 0)
        harness.stop()
        origin.stop()
        inner.stop()
    }

    @Test func `a replaced limit applies to the next request`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: [1]); return .keep
        }
        let limit = OnlyOriginsInForce(OnlyOrigins { _ in false })
        let harness = try Harness { $0.onlyOrigins = limit }
        #expect(
            try harness.fetch(origin.url("/")).failure?.kind == .originNotNamed(isRedirect: false))
        limit.replace(with: OnlyOrigins())
        #expect(try harness.fetch(origin.url("/")).body == [1])
        harness.stop()
        origin.stop()
    }
}

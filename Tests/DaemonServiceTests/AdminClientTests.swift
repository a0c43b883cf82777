import Testing

@testable import CommandSupport

/// What commands make of the daemon's answers.
struct AdminClientTests {
    private func failure(_ status: Int, _ body: String) -> String? {
        let client = AdminClient(base: "http://127.0.0.1:9000", token: nil)
        let outcome = client.outcome(status, body, of: "GET /api/new")
        if case .failed(let failure) = outcome { return failure.message }
        return nil
    }

    @Test func `a page that the daemon does not know is told as one of another version`() {
        let message = failure(404, "client error: nothing is at this path; see / for what is\n")
        #expect(message?.contains("does not know GET /api/new") == true)
        #expect(message?.contains("another version than this command (\(sluiceVersion))") == true)
    }

    @Test func `other failures are told in the daemon's words`() {
        #expect(
            failure(404, "no such download\n")
                == "sluice: the daemon answered 404: no such download")
        #expect(failure(200, "nothing is at this path") == nil)
    }
}

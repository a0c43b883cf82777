import ArgumentParser
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

    @Test(
        arguments: [(400, false, 64), (400, true, 1), (404, false, 1), (507, false, 1)]
            as [(Int, Bool, Int32)])
    func `an argument that the daemon refuses is wrong usage`(
        _ status: Int, _ hasContent: Bool, _ code: Int32
    ) {
        let client = AdminClient(base: "http://127.0.0.1:9000", token: nil)
        let outcome = client.outcome(status, "no", of: "PUT /api/new", hasContent: hasContent)
        guard case .failed(let failure) = outcome else {
            Issue.record("\(status) is taken for a success")
            return
        }
        #expect(failure.code.rawValue == code)
    }
}

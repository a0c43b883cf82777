import HTTP
import Model
import Testing

@testable import Library

/// Clears, which spare what pins name.
@Suite struct ClearTests {
    @Test(
        arguments: [
            (StoreAdministration.Pinning.done, nil),
            (.underWay, "still pin"),
            (.failed("the disk is full"), "cannot be pinned: the disk is full"),
        ] as [(StoreAdministration.Pinning, String?)])
    func `a clear that is to spare pinned titles waits for what is to be pinned`(
        _ pinning: StoreAdministration.Pinning, _ words: String?
    ) throws {
        let stage = try TitleStage()
        let administration = stage.administration(willPurge: { _ in pinning })
        switch administration.answer(.post, "/api/clear") {
        case .value: #expect(words == nil)
        case .failure(let status, let reason):
            #expect(status == .serviceUnavailable, "\(reason)")
            #expect(words.map { reason.contains($0) } == true, "\(reason)")
        case .methodNotAllowed: Issue.record("it is no matter of the method")
        }
        guard case .value = administration.answer(.post, "/api/clear?pinned=true") else {
            Issue.record("a clear of all titles spares nothing")
            return
        }
    }
}

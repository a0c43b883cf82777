import CachePolicy
import HTTP
import Model
@testable import Serving
import Testing

/// Playlists under a mount that are not named like one.
@Suite struct MountedTextTests {
    private let playlist = "application/vnd.apple.mpegurl"

    /// The plan of a range of a fresh response with a strong validator, of which a part is stored.
    private func plan(
        _ type: String, _ change: (inout PlanStage) -> Void = { _ in }
    ) throws -> RequestPlan {
        var stage = PlanStage.mounted("max-age=600", age: 100)
        stage.head.append(.contentType, type)
        stage.head.append(.etag, "\"v\"")
        stage.isComplete = false
        stage.range = .ranges([.bounded(12, 30)])
        change(&stage)
        return try stage.outcome().plan
    }

    @Test func `a stored part of a playlist is not used, since only a whole is rewritten`() throws {
        let part = MissingPart(wanted: .span(start: 12, end: 31))
        #expect(try plan(playlist) == .fetch(.unusable(.halfText), part))
        #expect(try plan(playlist) { $0.policy = .offline } == .refuse(.notStored))
        #expect(try plan("video/mp2t") == .serve(.hit, ttl: 500))
        // What has the type of a playlist and is none.
        #expect(try plan(playlist) { $0.isComplete = true } == .serve(.hit, ttl: 500))
    }
}
